//! The tuner, driven through version 6 of NCCL's interface, the first that asks for chunk sizes too. Below it no chunk is
//! chosen, and a gain that counts on one is none: the same code decides, with less to choose. So ranks whose library is the
//! same file ([`Plugin::fingerprint`]) and who decide alike here do so through every version.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use dynamiccl_spec::fnv::Fnv;
use dynamiccl_spec::ids::{ALGORITHMS, PROTOCOLS};
use serde::{Deserialize, Serialize};

use crate::calls::{self, Call, SHAPES};
use crate::library::{OpenError, Plugin};
use crate::logger::{self, RawLogger};

/// `ncclTuner_v6_t` of NCCL 2.30.7.
#[repr(C)]
struct Table {
    name: *const c_char,
    init: unsafe extern "C" fn(
        *mut *mut c_void,
        u64,
        usize,
        usize,
        Option<RawLogger>,
        *mut Domains,
        *mut Constants,
    ) -> c_int,
    get_coll_info: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        usize,
        c_int,
        *mut *mut f32,
        c_int,
        c_int,
        c_int,
        *mut c_int,
    ) -> c_int,
    finalize: unsafe extern "C" fn(*mut c_void) -> c_int,
    get_chunk_size: unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, c_int, c_int, *mut usize) -> c_int,
}

/// `ncclNvlDomainInfo_v5_t`: domains, the fewest and the most ranks of one.
#[repr(C)]
struct Domains([c_int; 3]);

/// `ncclTunerConstants_v5_t`, which is nothing but numbers.
#[repr(C)]
struct Constants([f64; 144]);

/// The interface by name.
const INTERFACE: &str = "ncclTunerPlugin_v6";
/// The chunk that NCCL would take by itself.
const CHUNK: usize = 128 << 10;

/// What a plugin decides about the calls that every rank asks about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// Calls.
    pub asked: u32,
    /// Those whose table it changed.
    pub changed: u32,
    /// The fingerprint of all that it answered.
    pub digest: String,
}

/// Decides all calls; nothing where a communicator may not begin.
pub fn decide(plugin: &Plugin) -> Result<Option<Decisions>, OpenError> {
    // SAFETY: the layout is NCCL's.
    let table: &Table = unsafe { plugin.table(INTERFACE) }?;
    let (mut digest, mut asked, mut changed) = (Fnv::new(), 0, 0);
    for (number, (ranks, nodes)) in SHAPES.into_iter().enumerate() {
        let Some(communicator) = Communicator::begin(table, number as u64, ranks, nodes) else {
            return Ok(None);
        };
        for call in calls::of(ranks, nodes) {
            asked += 1;
            changed += u32::from(communicator.decide(&call, &mut digest));
        }
    }
    Ok(Some(Decisions { asked, changed, digest: format!("{:016x}", digest.value()) }))
}

/// A communicator of the plugin, ended when it goes.
struct Communicator<'a> {
    table: &'a Table,
    context: *mut c_void,
}

impl<'a> Communicator<'a> {
    fn begin(table: &'a Table, id: u64, ranks: usize, nodes: usize) -> Option<Self> {
        let per_node = c_int::try_from(ranks / nodes).unwrap_or(c_int::MAX);
        let mut domains = Domains([c_int::try_from(nodes).unwrap_or(c_int::MAX), per_node, per_node]);
        let (mut context, mut constants) = (ptr::null_mut(), Constants([0.0; 144]));
        // SAFETY: all that NCCL passes is passed, and outlives the call; the log outlives the plugin.
        let result = unsafe {
            (table.init)(&mut context, id, ranks, nodes, logger::raw(), &mut domains, &mut constants)
        };
        (result == 0).then_some(Communicator { table, context })
    }

    /// Asks about a call, adds the answer to the fingerprint, and says whether anything was changed.
    fn decide(&self, call: &Call, digest: &mut Fnv) -> bool {
        let (mut costs, mut channels) = (call.costs, 0);
        let collective = call.collective.id() as c_int;
        let entries = costs.as_mut_ptr().cast::<*mut f32>();
        let (algorithms, protocols) = (ALGORITHMS as c_int, PROTOCOLS as c_int);
        // SAFETY: the context is the plugin's own; the table is as large as it says.
        let result = unsafe {
            (self.table.get_coll_info)(
                self.context,
                collective,
                call.bytes,
                call.pipelined,
                entries,
                algorithms,
                protocols,
                0,
                &mut channels,
            )
        };
        let best = cheapest(costs.as_flattened());
        let mut chunk = CHUNK;
        // SAFETY: as above.
        let chunk_result = unsafe {
            let (algorithm, protocol) = ((best / PROTOCOLS) as c_int, (best % PROTOCOLS) as c_int);
            let bytes = call.bytes;
            (self.table.get_chunk_size)(self.context, collective, bytes, algorithm, protocol, 1, &mut chunk)
        };
        digest.numbers(costs.as_flattened());
        [i64::from(result), i64::from(chunk_result), i64::from(channels), chunk as i64, best as i64]
            .into_iter()
            .for_each(|number| digest.number(number.cast_unsigned()));
        costs != call.costs || channels != 0 || chunk != CHUNK
    }
}

impl Drop for Communicator<'_> {
    fn drop(&mut self) {
        // SAFETY: the plugin's own context, once.
        unsafe { (self.table.finalize)(self.context) };
    }
}

/// The available entry that NCCL takes.
fn cheapest(costs: &[f32]) -> usize {
    let available = costs.iter().enumerate().filter(|(_, cost)| **cost >= 0.0);
    available.min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(at, _)| at)
}
