//! v1 (NCCL 2.23): NCCL's integers, the communicator with each event, and no kernel events.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use dynamiccl_spec::{Algorithm, Protocol};

use super::super::event::{Channels, Counted, Event, Started};
use super::super::names;
use super::{
    COLLECTIVE, Describes, GROUP, InitUnknown, NAME, OldState, Table, finalize, init_unknown, no_state,
    start, stop,
};

/// `ncclProfilerEventDescr_v1_t`, whose largest kind is the collective.
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
    function: u8,
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    root: c_int,
    datatype: u8,
    operation: u32,
    traffic: usize,
    channels_max: u8,
    warps: u8,
    algorithm: u8,
    protocol: u8,
    is_collnet: c_int,
    is_nvls: c_int,
}

const _: () = {
    assert!(size_of::<Description>() == 120);
    assert!(offset_of!(Description, rank) == 16);
    assert!(offset_of!(Description, collective.comm) == 32);
    assert!(offset_of!(Description, collective.seq) == 40);
    assert!(offset_of!(Description, collective.function) == 48);
    assert!(offset_of!(Description, collective.count) == 72);
    assert!(offset_of!(Description, collective.datatype) == 84);
    assert!(offset_of!(Description, collective.traffic) == 96);
    assert!(offset_of!(Description, collective.channels_max) == 104);
    assert!(offset_of!(Description, collective.protocol) == 107);
};

impl Describes for Description {
    unsafe fn event(&self) -> Option<Event> {
        match u64::from(self.kind) {
            GROUP => Some(Event::Group),
            COLLECTIVE => {
                let Collective { comm, seq, traffic, channels_max, warps, .. } = self.collective;
                let collective = names::collective_of(self.collective.function)?;
                Some(Event::Collective(Started {
                    comm: Some(comm),
                    rank: u32::try_from(self.rank).unwrap_or(0),
                    seq,
                    collective,
                    bytes: Counted::from_traffic(collective, traffic as u64),
                    algorithm: Algorithm::from_id(self.collective.algorithm.into()),
                    protocol: Protocol::from_id(self.collective.protocol.into()),
                    channels: Channels::Untimed(channels_max),
                    warps,
                }))
            }
            _ => None,
        }
    }
}

/// What NCCL 2.23 looks for.
#[unsafe(export_name = "ncclProfiler_v1")]
pub static PROFILER: Table<InitUnknown, Description, OldState> = Table {
    name: NAME,
    init: init_unknown::<false>,
    start: start::<Description>,
    stop,
    state: no_state,
    finalize,
};
