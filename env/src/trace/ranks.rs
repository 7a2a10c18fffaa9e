//! One job out of the views of its ranks.
//!
//! A trace is one rank's view. Of the processes that were recorded, the one with the lowest rank of the largest
//! communicator is followed, and in each of its communicators its lowest rank. All other records of the same
//! collective only correct its time: a rank that comes early waits inside the call, so the shortest time is
//! nearest to what the network needed. NCCL numbers the collectives of each kind apart, so records belong
//! together by communicator, kind and number, and never by how many there were before.

use std::collections::{BTreeSet, HashMap};

use dynamiccl_spec::{Collective, Role};
use serde_json::Value;

use super::error::TraceError;
use super::fields::Fields;
use super::jsonl::COMMS_MAX;
use super::{CALLS_MAX, Header, Trace, TracedCall, TracedComm};

/// One rank's record of a call.
pub(super) struct Record {
    /// The process that wrote it.
    pub process: u32,
    /// The rank.
    pub rank: u32,
    /// NCCL's number of the call among those of its kind in its communicator.
    pub number: u64,
    /// Whether it is one of a pair of ranks, which are counted apart.
    pub is_pair: bool,
    /// Whether its bytes are one rank's part of what NCCL counts whole.
    pub is_part: bool,
    /// What it was, by this rank's clock.
    pub call: TracedCall,
}

/// What makes two ranks' records those of one collective.
type Key = (u32, Collective, u64);

/// A communicator, and who was seen of it.
struct Comm {
    id: String,
    /// Ranks and nodes, where a line has said.
    shape: Option<(u32, u32)>,
    ranks_seen: BTreeSet<u32>,
    hosts_seen: BTreeSet<u32>,
}

/// The records of all ranks.
#[derive(Default)]
pub(super) struct Ranks {
    comms: Vec<Comm>,
    places: HashMap<String, u32>,
    records: Vec<Record>,
    bytes: HashMap<Key, u64>,
}

impl Record {
    fn key(&self) -> Key {
        (self.call.comm, self.call.collective, self.number)
    }
}

impl Comm {
    fn traced(&self) -> TracedComm {
        let unsaid = || {
            let ranks = self.ranks_seen.last().map_or(1, |last| last + 1);
            (ranks, (self.hosts_seen.len() as u32).clamp(1, ranks))
        };
        let (ranks, nodes) = self.shape.unwrap_or_else(unsaid);
        let ranks_per_node = ranks.div_ceil(nodes);
        TracedComm { id: self.id.clone(), ranks, nodes, ranks_per_node, role: Role::Unknown }
    }
}

impl Ranks {
    /// The position of the communicator `id`, of which a rank on a host has a record.
    pub fn place(
        &mut self,
        fields: &Fields<'_>,
        id: &str,
        shape: Option<(u32, u32)>,
        rank: u32,
        host: u32,
    ) -> Result<u32, TraceError> {
        let at = match self.places.get(id) {
            Some(&at) => at,
            None => self.add_communicator(fields, id, shape)?,
        };
        let comm = &mut self.comms[at as usize];
        if comm.shape != shape {
            let remedy = "the id had other ranks or nodes before: give lines of one job";
            let value = match shape {
                Some((ranks, nodes)) => format!("{id} with {ranks} ranks on {nodes} nodes"),
                None => format!("{id} without ranks and nodes"),
            };
            return Err(TraceError::Contradiction(fields.fault(&value, remedy)));
        }
        comm.ranks_seen.insert(rank);
        comm.hosts_seen.insert(host);
        Ok(at)
    }

    fn add_communicator(
        &mut self,
        fields: &Fields<'_>,
        id: &str,
        shape: Option<(u32, u32)>,
    ) -> Result<u32, TraceError> {
        if self.comms.len() == COMMS_MAX {
            let remedy = format!("give at most {COMMS_MAX} communicators");
            return Err(fields.bad("id", &Value::String(id.to_owned()), &remedy));
        }
        let at = self.comms.len() as u32;
        self.places.insert(id.to_owned(), at);
        let (ranks_seen, hosts_seen) = (BTreeSet::new(), BTreeSet::new());
        self.comms.push(Comm { id: id.to_owned(), shape, ranks_seen, hosts_seen });
        Ok(at)
    }

    /// Adds a record of the call that its line calls `name`.
    pub fn add(&mut self, fields: &Fields<'_>, name: &str, record: Record) -> Result<(), TraceError> {
        if self.records.len() == CALLS_MAX {
            let remedy = format!("give at most {CALLS_MAX} operations");
            return Err(TraceError::TooManyCalls(fields.fault("", &remedy)));
        }
        let size = record.call.bytes;
        if !record.is_pair && *self.bytes.entry(record.key()).or_insert(size) != size {
            let remedy = "ranks disagree on its size: give lines of one job, in which no id repeats";
            let value = format!("{name} {} with {size} bytes", record.number);
            return Err(TraceError::Contradiction(fields.fault(&value, remedy)));
        }
        self.records.push(record);
        Ok(())
    }

    /// The followed process's calls, with the shortest time of any rank.
    pub fn trace(self) -> Trace {
        let shortest = self.shortest();
        let process = self.followed();
        let mut lowest: HashMap<u32, u32> = HashMap::new();
        for record in self.records.iter().filter(|record| record.process == process) {
            let entry = lowest.entry(record.call.comm).or_insert(record.rank);
            *entry = (*entry).min(record.rank);
        }
        let mut communicators: Vec<TracedComm> = Vec::new();
        let mut places: HashMap<u32, u32> = HashMap::new();
        let mut calls = Vec::new();
        for record in self.records.iter().filter(|record| record.process == process) {
            let mut call = record.call;
            if lowest[&call.comm] != record.rank {
                continue;
            }
            let place = *places.entry(call.comm).or_insert_with(|| {
                communicators.push(self.comms[call.comm as usize].traced());
                communicators.len() as u32 - 1
            });
            if !record.is_pair {
                call.duration_us = shortest.get(&record.key()).copied();
            }
            if record.is_part {
                call.bytes = call.bytes.saturating_mul(communicators[place as usize].ranks.into());
            }
            calls.push(TracedCall { comm: place, ..call });
        }
        in_order(&mut calls);
        let header = Header { cluster: None, nodes: None, communicators };
        Trace { header, calls, warnings: Vec::new() }
    }

    /// Communicators of which some ranks have no record, with how many have one.
    pub fn incomplete(&self) -> impl Iterator<Item = (TracedComm, usize)> {
        let seen = self.comms.iter().map(|comm| (comm.traced(), comm.ranks_seen.len()));
        seen.filter(|(comm, seen)| *seen < comm.ranks as usize)
    }

    fn shortest(&self) -> HashMap<Key, f64> {
        let mut shortest = HashMap::new();
        for record in self.records.iter().filter(|record| !record.is_pair) {
            if let Some(time) = record.call.duration_us {
                let entry = shortest.entry(record.key()).or_insert(time);
                *entry = time.min(*entry);
            }
        }
        shortest
    }

    /// The process with the lowest rank of the largest communicator.
    fn followed(&self) -> u32 {
        let size = |comm: u32| self.comms[comm as usize].traced().ranks;
        let order = |record: &&Record| {
            let comm = record.call.comm;
            (u32::MAX - size(comm), &self.comms[comm as usize].id, record.rank, record.process)
        };
        self.records.iter().min_by_key(order).map_or(0, |record| record.process)
    }
}

/// In the order of their starts, which count from the first, where all are known.
fn in_order(calls: &mut [TracedCall]) {
    if calls.iter().any(|call| call.start_us.is_none()) {
        calls.iter_mut().for_each(|call| call.start_us = None);
        return;
    }
    let began = calls.iter().filter_map(|call| call.start_us).fold(f64::INFINITY, f64::min);
    calls.iter_mut().for_each(|call| call.start_us = call.start_us.map(|start| start - began));
    let start = |call: &TracedCall| call.start_us.unwrap_or(0.0);
    calls.sort_by(|a, b| start(a).total_cmp(&start(b)));
}
