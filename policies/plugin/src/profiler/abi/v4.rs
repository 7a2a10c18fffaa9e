//! v4 (NCCL 2.27): the communicator once, at init; kernel events with the GPU's clock.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use super::super::event::{Channels, Counted, Event, Started};
use super::super::names;
use super::border::{Opening, Told, number};
use super::text::bytes;
use super::{
    COLLECTIVE, Describes, GROUP, KERNEL, KernelState, NAME, NcclResult, Table, finalize, kernel_state,
    start, stop,
};
use crate::logger::RawLogger;

/// `ncclProfilerEventDescr_v4_t`.
#[repr(C)]
pub struct Description {
    kind: u8,
    parent: *mut c_void,
    rank: c_int,
    of: Kinds,
}

/// The kinds that are read; the collective is the largest of all.
#[repr(C)]
union Kinds {
    collective: Collective,
    kernel: Kernel,
}

/// A collective, in v4 and as the beginning of one in v5 and v6.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Collective {
    seq: u64,
    function: *const c_char,
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    root: c_int,
    datatype: *const c_char,
    channels: u8,
    warps: u8,
    algorithm: *const c_char,
    protocol: *const c_char,
}

/// A kernel's start, in v4, v5 and v6.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Kernel {
    channel: u8,
    gpu_ns: u64,
}

const _: () = {
    assert!(size_of::<Description>() == 104);
    assert!(offset_of!(Description, rank) == 16);
    assert!(offset_of!(Description, of) == 24);
    assert!(offset_of!(Collective, function) == 8);
    assert!(offset_of!(Collective, count) == 32);
    assert!(offset_of!(Collective, datatype) == 48);
    assert!(offset_of!(Collective, channels) == 56);
    assert!(offset_of!(Collective, warps) == 57);
    assert!(offset_of!(Collective, algorithm) == 64);
    assert!(offset_of!(Collective, protocol) == 72);
    assert!(offset_of!(Kernel, gpu_ns) == 8);
};

impl Collective {
    /// # Safety
    /// Its pointers are null or as NCCL fills them.
    pub unsafe fn event(&self, rank: c_int) -> Option<Event> {
        // SAFETY: the caller's promise.
        let [function, datatype, algorithm, protocol] =
            [self.function, self.datatype, self.algorithm, self.protocol].map(|text| unsafe { bytes(text) });
        let element = names::element_bytes(datatype)?;
        Some(Event::Collective(Started {
            comm: None,
            rank: u32::try_from(rank).unwrap_or(0),
            seq: self.seq,
            collective: names::collective(function)?,
            bytes: Counted::Part((self.count as u64).saturating_mul(element)),
            algorithm: names::algorithm(algorithm),
            protocol: names::protocol(protocol),
            channels: Channels::Exactly(self.channels),
            warps: self.warps,
        }))
    }
}

impl Kernel {
    /// A kernel of the collective with this handle.
    pub fn event(&self, parent: *mut c_void) -> Option<Event> {
        Some(Event::Kernel { parent: number(parent), channel: self.channel, gpu_ns: Some(self.gpu_ns) })
    }
}

impl Describes for Description {
    unsafe fn event(&self) -> Option<Event> {
        match u64::from(self.kind) {
            GROUP => Some(Event::Group),
            // SAFETY: the kind says which it is.
            COLLECTIVE => unsafe { self.of.collective.event(self.rank) },
            // SAFETY: the kind says which it is.
            KERNEL => unsafe { self.of.kernel }.event(self.parent),
            _ => None,
        }
    }
}

/// The id comes behind the name here, and before the mask from v5 on.
unsafe extern "C" fn init(
    context: *mut *mut c_void,
    mask: *mut c_int,
    name: *const c_char,
    id: u64,
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
    *mut c_int,
    *const c_char,
    u64,
    c_int,
    c_int,
    c_int,
    Option<RawLogger>,
) -> NcclResult;

/// What NCCL 2.27 looks for.
#[unsafe(export_name = "ncclProfiler_v4")]
pub static PROFILER: Table<Init, Description, KernelState> =
    Table { name: NAME, init, start: start::<Description>, stop, state: kernel_state, finalize };
