//! What NCCL sees of the profiler: `ncclProfiler_v1` to `ncclProfiler_v6`.
//!
//! NCCL takes the newest that it knows. Versions differ in how they describe an event; each has a file that
//! turns its description into an [`Event`], and all hand on to the same recorder. This
//! is the profiler's only `unsafe` that touches NCCL's memory: it reads what NCCL points to and writes the
//! three words that NCCL asks for, each of which may be missing. Whatever happens, NCCL is told success: an
//! error would cost it the profiler, and a panic the job.

mod border;
#[cfg(test)]
mod tests;
mod text;
mod v1;
mod v2;
mod v3;
mod v4;
mod v5;
mod v6;

use std::ffi::{c_int, c_void};

use super::event::Event;
use crate::abi::{NAME, Name, NcclResult, SUCCESS, assert_table};
use border::Opening;

/// Kinds of events, by NCCL's bits.
const GROUP: u64 = 1 << 0;
const COLLECTIVE: u64 = 1 << 1;
const KERNEL: u64 = 1 << 6;

/// ncclProfilerKernelChStop: the state that carries the GPU's clock.
const KERNEL_STOP: c_int = 22;

/// NCCL's table of functions; only how it begins differs between versions.
#[repr(C)]
pub struct Table<Init, Description, State> {
    name: Name,
    init: Init,
    start: unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut Description) -> NcclResult,
    stop: unsafe extern "C" fn(*mut c_void) -> NcclResult,
    state: unsafe extern "C" fn(*mut c_void, c_int, *mut State) -> NcclResult,
    finalize: unsafe extern "C" fn(*mut c_void) -> NcclResult,
}

/// A version's description of an event.
trait Describes {
    /// What it describes; nothing for events that are not recorded.
    ///
    /// # Safety
    /// Pointers in it are null or as NCCL fills them.
    unsafe fn event(&self) -> Option<Event>;
}

/// The states of v1 to v3, of which none is read.
#[repr(C)]
pub struct OldState {
    transferred: usize,
    steps: c_int,
}

/// The states of v4 and newer: one word, which is the GPU's clock where a kernel stops.
#[repr(C)]
pub struct KernelState {
    gpu_ns: u64,
}

const _: () = {
    assert!(size_of::<usize>() == 8, "handles need 64 bits");
    assert!(size_of::<OldState>() == 16);
    assert!(size_of::<KernelState>() == 8);
};

assert_table!(Table<InitUnknown, (), OldState>: name init start stop state finalize);

unsafe extern "C" fn start<D: Describes>(
    context: *mut c_void,
    handle: *mut *mut c_void,
    description: *mut D,
) -> NcclResult {
    // SAFETY: NCCL's pointers, or null.
    border::start(context, unsafe { handle.as_mut() }, || unsafe { description.as_ref()?.event() })
}

/// Nobody but the host says when a kernel stopped.
unsafe extern "C" fn stop_by_host(handle: *mut c_void) -> NcclResult {
    border::stop(handle, true)
}

unsafe extern "C" fn stop(handle: *mut c_void) -> NcclResult {
    border::stop(handle, false)
}

unsafe extern "C" fn no_state(_: *mut c_void, _: c_int, _: *mut OldState) -> NcclResult {
    SUCCESS
}

unsafe extern "C" fn kernel_state(handle: *mut c_void, state: c_int, args: *mut KernelState) -> NcclResult {
    if state != KERNEL_STOP {
        return SUCCESS;
    }
    // SAFETY: NCCL's pointer, or null.
    border::kernel_ended(handle, unsafe { args.as_ref() }.map(|args| args.gpu_ns))
}

unsafe extern "C" fn finalize(context: *mut c_void) -> NcclResult {
    border::finalize(context)
}

type InitUnknown = unsafe extern "C" fn(*mut *mut c_void, *mut c_int) -> NcclResult;

/// v1 to v3 say nothing of the communicator, and v1 and v2 know no kernel events.
unsafe extern "C" fn init_unknown<const KERNELS: bool>(
    context: *mut *mut c_void,
    mask: *mut c_int,
) -> NcclResult {
    // SAFETY: NCCL's pointers, or null.
    let opening = unsafe { Opening::new(context, mask) };
    opening.attach(border::Told::default(), if KERNELS { COLLECTIVE | KERNEL } else { COLLECTIVE })
}
