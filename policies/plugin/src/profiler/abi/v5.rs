//! v5 (NCCL 2.28): kinds have 64 bits, init another order, and more kinds are there that are not read.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use super::border::{Opening, Told};
use super::v4::{Collective, Kernel};
use super::{
    COLLECTIVE, Describes, GROUP, KERNEL, KernelState, NAME, NcclResult, Table, finalize, kernel_state,
    start, stop,
};
use crate::logger::RawLogger;
use crate::profiler::event::Event;

/// `ncclProfilerEventDescr_v5_t`, and `_v6_t`, which is as large and differs in kinds that are not read.
#[repr(C)]
pub struct Description {
    kind: u64,
    parent: *mut c_void,
    rank: c_int,
    of: Kinds,
}

/// The kinds that are read; the collective is the largest of all.
#[repr(C)]
union Kinds {
    collective: InGroup,
    kernel: Kernel,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct InGroup {
    collective: Collective,
    group: *mut c_void,
}

const _: () = {
    assert!(size_of::<Description>() == 112);
    assert!(offset_of!(Description, parent) == 8);
    assert!(offset_of!(Description, rank) == 16);
    assert!(offset_of!(Description, of) == 24);
    assert!(offset_of!(InGroup, group) == 80);
};

impl Describes for Description {
    unsafe fn event(&self) -> Option<Event> {
        match self.kind {
            GROUP => Some(Event::Group),
            // SAFETY: the kind says which it is.
            COLLECTIVE => unsafe { self.of.collective.collective.event(self.rank) },
            // SAFETY: the kind says which it is.
            KERNEL => unsafe { self.of.kernel }.event(self.parent),
            _ => None,
        }
    }
}

/// Begins a communicator, in v5 and v6.
pub unsafe extern "C" fn init(
    context: *mut *mut c_void,
    id: u64,
    mask: *mut c_int,
    name: *const c_char,
    nodes: c_int,
    ranks: c_int,
    _: c_int,
    logger: Option<RawLogger>,
) -> NcclResult {
    // SAFETY: NCCL's pointers, or null.
    let (opening, told) = unsafe { (Opening::new(context, mask), Told::new(id, name, nodes, ranks, logger)) };
    opening.attach(told, COLLECTIVE | KERNEL)
}

type Init = unsafe extern "C" fn(
    *mut *mut c_void,
    u64,
    *mut c_int,
    *const c_char,
    c_int,
    c_int,
    c_int,
    Option<RawLogger>,
) -> NcclResult;

/// The table of v5 and v6.
pub type Profiler = Table<Init, Description, KernelState>;

/// The same functions serve v5 and v6.
pub const TABLE: Profiler =
    Table { name: NAME, init, start: start::<Description>, stop, state: kernel_state, finalize };

/// What NCCL 2.28 looks for.
#[unsafe(export_name = "ncclProfiler_v5")]
pub static PROFILER: Profiler = TABLE;
