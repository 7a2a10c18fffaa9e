//! A panic at every entry point is success to NCCL, and nothing is written.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::{KERNEL_STOP, KernelState, v1, v5};
use crate::abi::SUCCESS;
use crate::fault;

#[test]
fn a_panic_at_every_entry_point_is_success() {
    let table = &v5::PROFILER;
    let mut here: *mut c_void = null_mut();
    let mut mask: c_int = 7;
    let mut state = KernelState { gpu_ns: 5 };
    // Whatever it holds, the injected panic comes before it is read.
    let handle = 3_usize as *mut c_void;
    let at = |name, work: &mut dyn FnMut() -> c_int| {
        assert!(fault::with(name, || assert_eq!(work(), SUCCESS)), "{name} was not passed");
    };
    // SAFETY: every pointer is null or leads to what the function may write.
    unsafe {
        at("profiler init", &mut || {
            (table.init)(&raw mut here, 1, &raw mut mask, std::ptr::null(), 1, 2, 0, None)
        });
        // The mask is the whole process's: what others asked for stays.
        assert_eq!((here, mask), (null_mut(), 7));
        at("profiler init", &mut || (v1::PROFILER.init)(&raw mut here, &raw mut mask));
        here = handle;
        at("profiler start", &mut || (table.start)(null_mut(), &raw mut here, null_mut()));
        assert_eq!(here, null_mut());
        at("profiler stop", &mut || (table.stop)(handle));
        at("profiler state", &mut || (table.state)(handle, KERNEL_STOP, &raw mut state));
        at("profiler finalize", &mut || (table.finalize)(handle));
    }
}
