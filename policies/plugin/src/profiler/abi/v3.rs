//! v3 (NCCL 2.26): kernel events, without the GPU's clock and without saying how many there will be.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use super::super::event::{Channels, Counted, Event, Started};
use super::super::names;
use super::border::number;
use super::text::bytes;
use super::{
    COLLECTIVE, Describes, GROUP, InitUnknown, KERNEL, NAME, OldState, Table, finalize, init_unknown,
    no_state, start, stop_by_host,
};

/// `ncclProfilerEventDescr_v3_t`.
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

#[repr(C)]
#[derive(Clone, Copy)]
struct Collective {
    name: *const c_char,
    comm: u64,
    seq: u64,
    function: *const c_char,
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    root: c_int,
    datatype: *const c_char,
    channels_max: u8,
    warps: u8,
    algorithm: *const c_char,
    protocol: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Kernel {
    channel: u8,
}

const _: () = {
    assert!(size_of::<Description>() == 120);
    assert!(offset_of!(Description, rank) == 16);
    assert!(offset_of!(Description, of) == 24);
    assert!(offset_of!(Collective, comm) == 8);
    assert!(offset_of!(Collective, seq) == 16);
    assert!(offset_of!(Collective, function) == 24);
    assert!(offset_of!(Collective, count) == 48);
    assert!(offset_of!(Collective, datatype) == 64);
    assert!(offset_of!(Collective, channels_max) == 72);
    assert!(offset_of!(Collective, algorithm) == 80);
    assert!(offset_of!(Collective, protocol) == 88);
};

impl Describes for Description {
    unsafe fn event(&self) -> Option<Event> {
        match u64::from(self.kind) {
            GROUP => Some(Event::Group),
            KERNEL => {
                // SAFETY: the kind says which it is.
                let channel = unsafe { self.of.kernel.channel };
                Some(Event::Kernel { parent: number(self.parent), channel, gpu_ns: None })
            }
            COLLECTIVE => {
                // SAFETY: the kind says which it is.
                let Collective {
                    comm,
                    seq,
                    count,
                    channels_max,
                    warps,
                    function,
                    datatype,
                    algorithm,
                    protocol,
                    ..
                } = unsafe { self.of.collective };
                // SAFETY: NCCL's strings, or null.
                let [function, datatype, algorithm, protocol] =
                    [function, datatype, algorithm, protocol].map(|text| unsafe { bytes(text) });
                let element = names::element_bytes(datatype)?;
                Some(Event::Collective(Started {
                    comm: Some(comm),
                    rank: u32::try_from(self.rank).unwrap_or(0),
                    seq,
                    collective: names::collective(function)?,
                    bytes: Counted::Part((count as u64).saturating_mul(element)),
                    algorithm: names::algorithm(algorithm),
                    protocol: names::protocol(protocol),
                    channels: Channels::AtMost(channels_max),
                    warps,
                }))
            }
            _ => None,
        }
    }
}

/// What NCCL 2.26 looks for.
#[unsafe(export_name = "ncclProfiler_v3")]
pub static PROFILER: Table<InitUnknown, Description, OldState> = Table {
    name: NAME,
    init: init_unknown::<true>,
    start: start::<Description>,
    stop: stop_by_host,
    state: no_state,
    finalize,
};
