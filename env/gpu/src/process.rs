//! How a worker's process ends: with who started it, and at once.

use std::ffi::{c_int, c_ulong};

const SET_PARENT_DEATH_SIGNAL: c_int = 1;
const KILL: c_ulong = 9;

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn getppid() -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
}

/// The process that started this one.
pub fn parent() -> i32 {
    // SAFETY: it only answers.
    unsafe { getppid() }
}

/// Lets the kernel kill this process when the thread that started it is gone, even while it is stopped or hangs in a
/// driver.
pub fn die_with_parent() {
    // SAFETY: the option takes a signal.
    unsafe { prctl(SET_PARENT_DEATH_SIGNAL, KILL) };
}

/// Ends the process without asking any library, for one of them may be what hangs.
pub fn leave(code: i32) -> ! {
    // SAFETY: nothing of this process is looked at afterwards.
    unsafe { _exit(code) }
}

/// Ends another process of ours at once.
pub fn kill_process(pid: u32) {
    // 0 and 1 would be everybody.
    let Some(pid) = c_int::try_from(pid).ok().filter(|pid| *pid > 1) else { return };
    // SAFETY: a signal to a process; one that is gone is no fault.
    unsafe { kill(pid, KILL as c_int) };
}
