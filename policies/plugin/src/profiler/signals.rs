//! Keeps the host's signals away from a thread of ours: its handlers belong on its own threads.

use std::ffi::c_int;

/// As large as `sigset_t` is on Linux, in glibc and in musl.
#[repr(C, align(8))]
struct Signals([u64; 16]);

const SIG_SETMASK: c_int = 2;

unsafe extern "C" {
    fn sigfillset(set: *mut Signals) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const Signals, old: *mut Signals) -> c_int;
}

/// Blocks every signal that can be blocked, for the calling thread.
pub fn block_all() {
    let mut all = Signals([0; 16]);
    // SAFETY: both calls take a `sigset_t`, of which this is one in size and alignment; no old set is asked for.
    unsafe {
        sigfillset(&raw mut all);
        pthread_sigmask(SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}
