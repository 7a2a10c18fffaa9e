//! A thread that leaves nothing behind on the thread that started it.
//!
//! The standard library's own would leave a destructor on NCCL's thread, which keeps the library in memory
//! after NCCL has unloaded it, for as long as that thread lives.

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `pthread_t`, as glibc and musl have it on Linux.
type Id = usize;

/// As large as `sigset_t` is on Linux, in glibc and in musl.
#[repr(C, align(8))]
struct Signals([u64; 16]);

const SIG_SETMASK: c_int = 2;
/// What `ps -L` shows of it.
const NAME: *const c_char = c"dynamiccl".as_ptr();

unsafe extern "C" {
    fn pthread_create(
        id: *mut Id,
        attributes: *const c_void,
        begin: extern "C" fn(*mut c_void) -> *mut c_void,
        with: *mut c_void,
    ) -> c_int;
    fn pthread_join(id: Id, result: *mut *mut c_void) -> c_int;
    fn pthread_detach(id: Id) -> c_int;
    fn pthread_self() -> Id;
    fn pthread_setname_np(id: Id, name: *const c_char) -> c_int;
    fn sigfillset(set: *mut Signals) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const Signals, old: *mut Signals) -> c_int;
}

/// Has a destructor on our thread, so that the system does not take the library from under it, whenever the
/// library is unloaded.
struct Pin;

impl Drop for Pin {
    fn drop(&mut self) {}
}

thread_local! {
    static PIN: Pin = const { Pin };
}

/// A thread that runs.
#[derive(Debug)]
pub struct Thread {
    id: Id,
    is_done: Arc<AtomicBool>,
}

struct Task {
    body: Box<dyn FnOnce() + Send>,
    is_pinned: Arc<AtomicBool>,
    is_done: Arc<AtomicBool>,
}

impl Thread {
    /// Runs this on a thread that gets none of the host's signals. It must not panic.
    pub fn spawn(body: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let [is_pinned, is_done] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        let [pinned, done] = [&is_pinned, &is_done].map(Arc::clone);
        let task = Box::new(Task { body: Box::new(body), is_pinned: pinned, is_done: done });
        let with = Box::into_raw(task);
        let mut id = 0;
        // A thread begins with the signals of the one that makes it, so that none may be let in before it exists.
        let (mut all, mut before) = (Signals([0; 16]), Signals([0; 16]));
        // SAFETY: the calls take a `sigset_t`, of which these are two in size and alignment; `begin` takes what it is given
        // here, once, unless there is no thread.
        let error = unsafe {
            sigfillset(&raw mut all);
            pthread_sigmask(SIG_SETMASK, &raw const all, &raw mut before);
            let error = pthread_create(&raw mut id, std::ptr::null(), begin, with.cast());
            pthread_sigmask(SIG_SETMASK, &raw const before, std::ptr::null_mut());
            error
        };
        if error != 0 {
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(with) });
            return Err(io::Error::from_raw_os_error(error));
        }
        while !is_pinned.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        Ok(Thread { id, is_done })
    }

    /// Whether its work is done.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Waits for its end.
    pub fn join(self) {
        // SAFETY: it runs or has ended, and is joined or detached once.
        unsafe { pthread_join(self.id, std::ptr::null_mut()) };
    }

    /// Lets it run on alone.
    pub fn detach(self) {
        // SAFETY: as for `join`.
        unsafe { pthread_detach(self.id) };
    }
}

extern "C" fn begin(with: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn` made it for this thread alone.
    let Task { body, is_pinned, is_done } = *unsafe { Box::from_raw(with.cast::<Task>()) };
    PIN.with(|_| ());
    is_pinned.store(true, Ordering::Release);
    // SAFETY: it takes a short C string.
    unsafe { pthread_setname_np(pthread_self(), NAME) };
    body();
    is_done.store(true, Ordering::Release);
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_by_its_name_without_signals_and_ends() {
        let (send, receive) = std::sync::mpsc::channel();
        let thread = Thread::spawn(move || {
            let read = |file: &str| std::fs::read_to_string(format!("/proc/thread-self/{file}")).unwrap();
            send.send((read("comm"), read("status"))).unwrap();
        })
        .unwrap();
        let (name, status) = receive.recv().unwrap();
        while !thread.is_done() {
            std::thread::yield_now();
        }
        thread.join();
        assert_eq!(name, "dynamiccl\n");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
        for signal in [1, 2, 10, 14, 15, 17] {
            assert_ne!(blocked >> (signal - 1) & 1, 0, "signal {signal}");
        }
    }
}
