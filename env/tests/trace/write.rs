//! Our own format, written for whoever reads it back.

use dynamiccl_env::trace::{SCHEMA, Trace, TracedCall, TracedComm};
use dynamiccl_spec::{Algorithm, Collective, Protocol, Role};
use serde::Serialize;

#[derive(Serialize)]
struct HeaderLine<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<u32>,
    communicators: Vec<CommEntry>,
}

#[derive(Serialize)]
struct CommEntry {
    id: String,
    ranks: u32,
    nodes: u32,
    ranks_per_node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
}

#[derive(Serialize)]
struct CallLine<'a> {
    comm: &'a str,
    coll: Collective,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    t_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    algo: Option<Algorithm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proto: Option<Protocol>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nchannels: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pipelined: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
}

/// A trace in our own format.
pub fn written(trace: &Trace) -> Vec<u8> {
    let header = &trace.header;
    let mut output = Vec::new();
    write_line(
        &mut output,
        &HeaderLine {
            schema: SCHEMA,
            cluster: header.cluster.as_deref(),
            nodes: header.nodes,
            communicators: header.communicators.iter().map(entry).collect(),
        },
    );
    trace
        .calls
        .iter()
        .for_each(|call| write_line(&mut output, &line(call, trace.communicator(call).unwrap())));
    output
}

fn entry(comm: &TracedComm) -> CommEntry {
    CommEntry {
        id: comm.id.clone(),
        ranks: comm.ranks,
        nodes: comm.nodes,
        ranks_per_node: comm.ranks_per_node,
        role: Some(comm.role).filter(|role| *role != Role::Unknown),
    }
}

fn line<'a>(call: &TracedCall, comm: &'a TracedComm) -> CallLine<'a> {
    CallLine {
        comm: &comm.id,
        coll: call.collective,
        bytes: call.bytes,
        t_us: call.start_us.map(to_nanoseconds),
        us: call.duration_us.map(to_nanoseconds),
        algo: call.algorithm,
        proto: call.protocol,
        nchannels: call.channels,
        pipelined: Some(call.pipelined).filter(|&calls| calls != 1),
        stage: call.stage,
        role: Some(call.role).filter(|role| *role != comm.role),
    }
}

fn write_line(output: &mut Vec<u8>, line: &impl Serialize) {
    serde_json::to_writer(&mut *output, line).unwrap();
    output.push(b'\n');
}

/// Digits beyond the nanosecond are noise, and without them a number is read back to the same bits.
fn to_nanoseconds(micros: f64) -> f64 {
    (micros * 1e3).round() / 1e3
}
