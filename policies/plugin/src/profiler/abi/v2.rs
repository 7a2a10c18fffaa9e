//! v2 (NCCL 2.24 and 2.25): as v1, with names in place of integers.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use super::super::event::{Channels, Counted, Event, Started};
use super::super::names;
use super::text::bytes;
use super::{
    COLLECTIVE, Describes, GROUP, InitUnknown, NAME, OldState, Table, finalize, init_unknown, no_state,
    start, stop,
};

/// `ncclProfilerEventDescr_v2_t`, whose largest kind is the collective.
#[repr(C)]
pub struct Description {
    kind: u8,
    parent: *mut c_void,
    rank: c_int,
    collective: Collective,
}

#[repr(C)]
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
    traffic: usize,
    channels_max: u8,
    warps: u8,
    algorithm: *const c_char,
    protocol: *const c_char,
}

const _: () = {
    assert!(size_of::<Description>() == 128);
    assert!(offset_of!(Description, rank) == 16);
    assert!(offset_of!(Description, collective.comm) == 32);
    assert!(offset_of!(Description, collective.seq) == 40);
    assert!(offset_of!(Description, collective.function) == 48);
    assert!(offset_of!(Description, collective.count) == 72);
    assert!(offset_of!(Description, collective.datatype) == 88);
    assert!(offset_of!(Description, collective.traffic) == 96);
    assert!(offset_of!(Description, collective.channels_max) == 104);
    assert!(offset_of!(Description, collective.algorithm) == 112);
    assert!(offset_of!(Description, collective.protocol) == 120);
};

impl Describes for Description {
    unsafe fn event(&self) -> Option<Event> {
        match u64::from(self.kind) {
            GROUP => Some(Event::Group),
            COLLECTIVE => {
                let Collective {
                    comm, seq, traffic, channels_max, warps, function, algorithm, protocol, ..
                } = self.collective;
                // SAFETY: NCCL's strings, or null.
                let [function, algorithm, protocol] =
                    [function, algorithm, protocol].map(|text| unsafe { bytes(text) });
                let collective = names::collective(function)?;
                Some(Event::Collective(Started {
                    comm: Some(comm),
                    rank: u32::try_from(self.rank).unwrap_or(0),
                    seq,
                    collective,
                    bytes: Counted::from_traffic(collective, traffic as u64),
                    algorithm: names::algorithm(algorithm),
                    protocol: names::protocol(protocol),
                    channels: Channels::Untimed(channels_max),
                    warps,
                }))
            }
            _ => None,
        }
    }
}

/// What NCCL 2.24 and 2.25 look for.
#[unsafe(export_name = "ncclProfiler_v2")]
pub static PROFILER: Table<InitUnknown, Description, OldState> = Table {
    name: NAME,
    init: init_unknown::<false>,
    start: start::<Description>,
    stop,
    state: no_state,
    finalize,
};
