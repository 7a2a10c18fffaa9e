//! Our own format: a header line, then one line per call. See `docs/traces.md`.

use std::collections::HashMap;
use std::io::BufRead;

use dynamiccl_spec::Role;
use serde_json::Value;

use super::error::TraceError;
use super::fields::Fields;
use super::lines::Lines;
use super::{CALLS_MAX, Header, PROFILE_SCHEMA, SCHEMA, Trace, TracedCall, TracedComm};
use crate::cluster;

const HEADER_KEYS: [&str; 4] = ["schema", "cluster", "nodes", "communicators"];
const COMM_KEYS: [&str; 5] = ["id", "ranks", "nodes", "ranks_per_node", "role"];
const CALL_KEYS: [&str; 11] =
    ["comm", "coll", "bytes", "t_us", "us", "algo", "proto", "nchannels", "pipelined", "stage", "role"];

/// Most ranks of a job.
pub(super) const RANKS_MAX: u64 = cluster::RANKS_MAX as u64;
/// Most bytes of a call: 1 PiB.
pub(super) const BYTES_MAX: u64 = 1 << 50;
/// Most communicators.
pub(super) const COMMS_MAX: usize = 1 << 16;
/// Most channels of NCCL.
pub(super) const CHANNELS_MAX: u64 = 64;

/// Reads the header and every call after it.
pub(super) fn read<R: BufRead>(first: Fields<'_>, mut lines: Lines<'_, R>) -> Result<Trace, TraceError> {
    let header = header(first)?;
    let places: HashMap<&str, u32> =
        header.communicators.iter().enumerate().map(|(at, comm)| (comm.id.as_str(), at as u32)).collect();
    let mut calls = Vec::new();
    while let Some(fields) = lines.next()? {
        if calls.len() == CALLS_MAX {
            return Err(TraceError::TooManyCalls(
                fields.fault("", &format!("give at most {CALLS_MAX} calls")),
            ));
        }
        calls.push(call(fields, &header, &places)?);
    }
    drop(places);
    Ok(Trace { header, calls, warnings: Vec::new() })
}

fn header(mut fields: Fields<'_>) -> Result<Header, TraceError> {
    let schema = fields.text("schema")?;
    let schema = fields.required("schema", schema)?;
    if schema != SCHEMA {
        return Err(TraceError::Version(
            fields.fault(&schema, &format!("this release reads {SCHEMA} and {PROFILE_SCHEMA}")),
        ));
    }
    let cluster = fields.text("cluster")?;
    let nodes = fields.whole("nodes", 1..=RANKS_MAX)?.map(|nodes| nodes as u32);
    let listed = fields.take("communicators");
    let listed = match fields.required("communicators", listed)? {
        Value::Array(listed) if !listed.is_empty() && listed.len() <= COMMS_MAX => listed,
        other => {
            let remedy = format!("give a list of 1 to {COMMS_MAX} communicators");
            return Err(fields.bad("communicators", &other, &remedy));
        }
    };
    let mut communicators: Vec<TracedComm> = Vec::with_capacity(listed.len());
    let mut seen = std::collections::HashSet::new();
    for value in listed {
        let communicator = communicator(fields.inside("communicators", value)?)?;
        if !seen.insert(communicator.id.clone()) {
            let fault = fields.fault(&communicator.id, "give each communicator a name of its own");
            return Err(TraceError::RepeatedCommunicator(fault));
        }
        communicators.push(communicator);
    }
    fields.finish(&HEADER_KEYS)?;
    Ok(Header { cluster, nodes, communicators })
}

fn communicator(mut fields: Fields<'_>) -> Result<TracedComm, TraceError> {
    let id = fields.text("id")?;
    let id = fields.required("id", id)?;
    let ranks = fields.required_whole("ranks", 1..=RANKS_MAX)? as u32;
    let nodes = fields.required_whole("nodes", 1..=u64::from(ranks))? as u32;
    // At least an equal share, at most all that leave one for every other node.
    let least = ranks.div_ceil(nodes);
    let most = ranks - (nodes - 1);
    let given = fields.whole("ranks_per_node", u64::from(least)..=u64::from(most))?;
    let ranks_per_node = given.map_or(least, |given| given as u32);
    let role = fields.word("role")?.unwrap_or_default();
    fields.finish(&COMM_KEYS)?;
    Ok(TracedComm { id, ranks, nodes, ranks_per_node, role })
}

fn call(
    mut fields: Fields<'_>,
    header: &Header,
    places: &HashMap<&str, u32>,
) -> Result<TracedCall, TraceError> {
    let comm = fields.text("comm")?;
    let comm = fields.required("comm", comm)?;
    let Some(&comm) = places.get(comm.as_str()) else {
        let remedy = "list it among the header's communicators";
        return Err(TraceError::UnknownCommunicator(fields.fault(&comm, remedy)));
    };
    let collective = fields.word("coll")?;
    let collective = fields.required("coll", collective)?;
    let said: Option<Role> = fields.word("role")?;
    let call = TracedCall {
        comm,
        collective,
        bytes: fields.required_whole("bytes", 0..=BYTES_MAX)?,
        start_us: fields.micros("t_us")?,
        duration_us: fields.micros("us")?,
        algorithm: fields.word("algo")?,
        protocol: fields.word("proto")?,
        channels: fields.whole("nchannels", 1..=CHANNELS_MAX)?.map(|channels| channels as u32),
        pipelined: fields.whole("pipelined", 1..=u64::from(u16::MAX))?.map_or(1, |n| n as u32),
        stage: fields.whole("stage", 0..=255)?.map(|stage| stage as u8),
        role: said.unwrap_or(header.communicators[comm as usize].role),
    };
    fields.finish(&CALL_KEYS)?;
    Ok(call)
}
