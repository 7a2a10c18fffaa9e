//! What NCCL's inspector plugin writes (`plugins/profiler/inspector`, format v4): a line per finished
//! operation of each rank.
//!
//! Lines of several ranks may stand in one file. Keys that we do not know are left alone, because the
//! format is NCCL's to extend.

use std::io::BufRead;

use dynamiccl_spec::{Collective, Role};
use serde_json::Value;

use super::error::TraceError;
use super::fields::Fields;
use super::jsonl::{BYTES_MAX, RANKS_MAX};
use super::lines::Lines;
use super::ranks::{Ranks, Record};
use super::{Trace, TracedCall};

/// Reads every line.
pub(super) fn read<R: BufRead>(first: Fields<'_>, mut lines: Lines<'_, R>) -> Result<Trace, TraceError> {
    let mut ranks = Ranks::default();
    let mut unknown = 0usize;
    let mut next = Some(first);
    while let Some(fields) = next {
        unknown += usize::from(!record(fields, &mut ranks)?);
        next = lines.next()?;
    }
    let mut trace = ranks.trace();
    if unknown > 0 {
        trace.warnings.push(format!("{unknown} operations that have no word here left out"));
    }
    let has_times = trace.calls.iter().all(|call| call.start_us.is_some());
    if !has_times && trace.header.communicators.len() > 1 {
        let remedy =
            "order between communicators is that of the dump; NCCL_INSPECTOR_DUMP_VERBOSE=1 records times";
        trace.warnings.push(remedy.to_owned());
    }
    Ok(trace)
}

/// One line; `false` where it is of a kind that we have no word for.
fn record(mut fields: Fields<'_>, ranks: &mut Ranks) -> Result<bool, TraceError> {
    check_version(&mut fields)?;
    let (comm, rank) = place(take_object(&mut fields, "header")?, ranks)?;
    let is_pair = fields.has("p2p_perf");
    let key = if is_pair { "p2p_perf" } else { "coll_perf" };
    let prefix = if is_pair { "p2p" } else { "coll" };
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
            return Ok(false);
        }
        let remedy = "this release reads AllGather, AllReduce, Broadcast, Reduce, ReduceScatter, All2All, \
                      Send, Recv and SendRecv";
        return Err(perf.bad(prefix, &Value::String(name), remedy));
    };
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
    // The plugin counts one rank's part of what NCCL counts whole.
    let is_part = collective.is_sharded() || collective == Collective::AllToAll;
    ranks.add(&perf, &name, Record { process: 0, rank, number, is_pair, is_part, call })?;
    Ok(true)
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

/// Position of a header's communicator, and the rank that wrote the line.
fn place(mut header: Fields<'_>, ranks: &mut Ranks) -> Result<(u32, u32), TraceError> {
    let id = header.text("id")?;
    let id = header.required("id", id)?;
    let size = header.required_whole("n_ranks", 1..=RANKS_MAX)? as u32;
    let rank = header.required_whole("rank", 0..=u64::from(size) - 1)? as u32;
    let nodes = header.required_whole("nnodes", 1..=u64::from(size))? as u32;
    Ok((ranks.place(&header, &id, Some((size, nodes)), rank, 0)?, rank))
}
