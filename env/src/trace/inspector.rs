//! What NCCL's inspector plugin writes (`plugins/profiler/inspector`, format v4): a line per finished
//! operation of each rank.
//!
//! A trace is one rank's view, so of each communicator the lowest rank in the file is the one that is
//! followed. The other ranks' lines of the same collective only correct its time: a rank that comes
//! early waits inside the call, so the shortest time is nearest to what the network needed. Keys that
//! we do not know are left alone, because the format is NCCL's to extend.

use std::collections::HashMap;
use std::io::BufRead;

use dynamiccl_spec::{Collective, Role};
use serde_json::Value;

use super::error::TraceError;
use super::fields::Fields;
use super::jsonl::{BYTES_MAX, COMMS_MAX, RANKS_MAX};
use super::lines::Lines;
use super::{CALLS_MAX, Header, Trace, TracedCall, TracedComm};

/// A line, before ranks are brought together.
struct Record {
    comm: u32,
    rank: u64,
    /// Number of the operation in its communicator.
    number: u64,
    /// Whether it is one of a pair of ranks, which are counted apart.
    pair: bool,
    call: TracedCall,
}

/// Communicators by their id, and the lowest rank seen of each.
#[derive(Default)]
struct Communicators {
    listed: Vec<TracedComm>,
    lowest: Vec<u64>,
    places: HashMap<String, u32>,
}

/// Reads every line.
pub(super) fn read<R: BufRead>(first: Fields<'_>, mut lines: Lines<'_, R>) -> Result<Trace, TraceError> {
    let mut comms = Communicators::default();
    let mut records: Vec<Record> = Vec::new();
    let mut unknown = 0usize;
    let mut next = Some(first);
    let mut bytes: HashMap<(u32, u64), u64> = HashMap::new();
    while let Some(fields) = next {
        if records.len() == CALLS_MAX {
            return Err(TraceError::TooManyCalls(
                fields.fault("", &format!("give at most {CALLS_MAX} operations")),
            ));
        }
        match record(fields, &mut comms, &mut bytes)? {
            Some(record) => records.push(record),
            None => unknown += 1,
        }
        next = lines.next()?;
    }
    let mut warnings = Vec::new();
    if unknown > 0 {
        warnings.push(format!("{unknown} operations that have no word here left out"));
    }
    let calls = view(records, &comms, &mut warnings);
    let header = Header { cluster: None, nodes: None, communicators: comms.listed };
    Ok(Trace { header, calls, warnings })
}

/// One line; nothing where it is of a kind that we have no word for.
fn record(
    mut fields: Fields<'_>,
    comms: &mut Communicators,
    bytes: &mut HashMap<(u32, u64), u64>,
) -> Result<Option<Record>, TraceError> {
    check_version(&mut fields)?;
    let header = take_object(&mut fields, "header")?;
    let (comm, rank) = comms.place(header)?;
    let pair = fields.has("p2p_perf");
    let key = if pair { "p2p_perf" } else { "coll_perf" };
    let prefix = if pair { "p2p" } else { "coll" };
    let mut perf = take_object(&mut fields, key)?;
    let name = perf.text(prefix)?;
    let name = perf.required(prefix, name)?;
    let number = perf.required_whole(&format!("{prefix}_sn"), 0..=u64::MAX)?;
    let size = perf.required_whole(&format!("{prefix}_msg_size_bytes"), 0..=BYTES_MAX)?;
    let time = perf.micros(&format!("{prefix}_exec_time_us"))?;
    let time = perf.required(&format!("{prefix}_exec_time_us"), time)?;
    let (start_us, channels) = events(&mut perf, prefix)?;
    let Some(collective) = collective(&name) else {
        if name == "Invalid" || name == "AllGatherV" {
            return Ok(None);
        }
        let remedy = "this release reads AllGather, AllReduce, Broadcast, Reduce, ReduceScatter, All2All, \
                      Send, Recv and SendRecv";
        return Err(perf.bad(prefix, &Value::String(name), remedy));
    };
    // The plugin counts one rank's part of what NCCL counts whole.
    let parts = if collective.is_sharded() || collective == Collective::AllToAll {
        u64::from(comms.listed[comm as usize].ranks)
    } else {
        1
    };
    let size = size.saturating_mul(parts);
    if !pair && *bytes.entry((comm, number)).or_insert(size) != size {
        let remedy = "ranks disagree on its size: give lines of one job, in which no id repeats";
        let value = format!("{name} {number} with {size} bytes");
        return Err(TraceError::Contradiction(perf.fault(&value, remedy)));
    }
    let call = TracedCall {
        comm,
        collective,
        bytes: size,
        start_us,
        duration_us: Some(time).filter(|&time| time > 0.0),
        algorithm: None,
        protocol: None,
        channels,
        pipelined: 1,
        stage: None,
        role: Role::Unknown,
    };
    Ok(Some(Record { comm, rank, number, pair, call }))
}

/// Absolute start and number of channels, which only a verbose dump has.
fn events(perf: &mut Fields<'_>, prefix: &str) -> Result<(Option<f64>, Option<u32>), TraceError> {
    let Some(value) = perf.take("event_trace_ts") else { return Ok((None, None)) };
    let mut events = perf.inside("event_trace_ts", value)?;
    // 0 is an event that the plugin did not see.
    let start = events.whole(&format!("{prefix}_start_ts"), 0..=u64::MAX)?.filter(|&start| start > 0);
    let channels = match events.take("kernel_events") {
        Some(Value::Array(kernels)) => Some(kernels.len() as u32).filter(|&count| count > 0),
        _ => None,
    };
    Ok((start.map(|start| start as f64), channels))
}

fn check_version(fields: &mut Fields<'_>) -> Result<(), TraceError> {
    let mut metadata = take_object(fields, "metadata")?;
    let version = metadata.text("inspector_output_format_version")?;
    let version = metadata.required("inspector_output_format_version", version)?;
    if version.starts_with("v4") {
        return Ok(());
    }
    Err(TraceError::Version(metadata.fault(&version, "this release reads v4 (NCCL 2.29 and 2.30)")))
}

fn take_object<'a>(fields: &mut Fields<'a>, key: &str) -> Result<Fields<'a>, TraceError> {
    let value = fields.take(key);
    let value = fields.required(key, value)?;
    fields.inside(key, value)
}

fn collective(name: &str) -> Option<Collective> {
    match name {
        "All2All" => Some(Collective::AllToAll),
        "Send" | "Recv" | "SendRecv" => Some(Collective::SendRecv),
        "AllGather" | "AllReduce" | "Broadcast" | "Reduce" | "ReduceScatter" => name.parse().ok(),
        _ => None,
    }
}

impl Communicators {
    /// Position of a header's communicator, and the rank that wrote the line.
    fn place(&mut self, mut header: Fields<'_>) -> Result<(u32, u64), TraceError> {
        let id = header.text("id")?;
        let id = header.required("id", id)?;
        let ranks = header.required_whole("n_ranks", 1..=RANKS_MAX)? as u32;
        let rank = header.required_whole("rank", 0..=u64::from(ranks) - 1)?;
        let nodes = header.required_whole("nnodes", 1..=u64::from(ranks))? as u32;
        let this = TracedComm {
            id: id.clone(),
            ranks,
            nodes,
            ranks_per_node: ranks.div_ceil(nodes),
            role: Role::Unknown,
        };
        if let Some(&at) = self.places.get(&id) {
            if self.listed[at as usize] != this {
                let remedy = "the id had other ranks or nodes before: give lines of one job";
                let value = format!("{id} with {ranks} ranks on {nodes} nodes");
                return Err(TraceError::Contradiction(header.fault(&value, remedy)));
            }
            let lowest = &mut self.lowest[at as usize];
            *lowest = (*lowest).min(rank);
            return Ok((at, rank));
        }
        if self.listed.len() == COMMS_MAX {
            let remedy = format!("give at most {COMMS_MAX} communicators");
            return Err(header.bad("id", &Value::String(id), &remedy));
        }
        let at = self.listed.len() as u32;
        self.places.insert(id, at);
        self.listed.push(this);
        self.lowest.push(rank);
        Ok((at, rank))
    }
}

/// The calls of the followed ranks, with the shortest time of any rank.
fn view(records: Vec<Record>, comms: &Communicators, warnings: &mut Vec<String>) -> Vec<TracedCall> {
    let mut shortest: HashMap<(u32, u64), f64> = HashMap::new();
    for record in records.iter().filter(|record| !record.pair) {
        if let Some(time) = record.call.duration_us {
            let entry = shortest.entry((record.comm, record.number)).or_insert(time);
            *entry = entry.min(time);
        }
    }
    let followed = |record: &&Record| record.rank == comms.lowest[record.comm as usize];
    let mut calls: Vec<TracedCall> = Vec::new();
    for record in records.iter().filter(followed) {
        let mut call = record.call;
        if !record.pair {
            call.duration_us = shortest.get(&(record.comm, record.number)).copied();
        }
        calls.push(call);
    }
    if calls.iter().all(|call| call.start_us.is_some()) {
        let began = calls.iter().filter_map(|call| call.start_us).fold(f64::INFINITY, f64::min);
        calls.iter_mut().for_each(|call| call.start_us = call.start_us.map(|start| start - began));
        let start = |call: &TracedCall| call.start_us.unwrap_or(0.0);
        calls.sort_by(|a, b| start(a).total_cmp(&start(b)));
    } else {
        calls.iter_mut().for_each(|call| call.start_us = None);
        if comms.listed.len() > 1 {
            warnings.push(
                "order between communicators is that of the dump; NCCL_INSPECTOR_DUMP_VERBOSE=1 records times"
                    .to_owned(),
            );
        }
    }
    calls
}
