//! Writing our own format, call by call, to anything that takes bytes.

use std::io::{self, Write};

use dynamiccl_spec::{Algorithm, Collective, Protocol, Role};
use serde::Serialize;

use super::{Header, SCHEMA, Trace, TracedCall, TracedComm};

/// Writes a trace. Putting the file in its place is the caller's business.
#[derive(Debug)]
pub struct TraceWriter<W> {
    output: W,
    communicators: Vec<TracedComm>,
}

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

impl<W: Write> TraceWriter<W> {
    /// Starts a trace with its header.
    pub fn new(mut output: W, header: &Header) -> io::Result<Self> {
        let entry = |comm: &TracedComm| CommEntry {
            id: comm.id.clone(),
            ranks: comm.ranks,
            nodes: comm.nodes,
            ranks_per_node: comm.ranks_per_node,
            role: Some(comm.role).filter(|role| *role != Role::Unknown),
        };
        let line = HeaderLine {
            schema: SCHEMA,
            cluster: header.cluster.as_deref(),
            nodes: header.nodes,
            communicators: header.communicators.iter().map(entry).collect(),
        };
        write_line(&mut output, &line)?;
        Ok(TraceWriter { output, communicators: header.communicators.clone() })
    }

    /// Adds a call.
    pub fn call(&mut self, call: &TracedCall) -> io::Result<()> {
        let Some(comm) = self.communicators.get(call.comm as usize) else {
            let count = self.communicators.len();
            let message = format!("call of communicator {}, but the header lists {count}", call.comm);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let line = CallLine {
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
        };
        write_line(&mut self.output, &line)
    }

    /// Ends the trace and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

impl Trace {
    /// Writes the whole trace.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let mut writer = TraceWriter::new(output, &self.header)?;
        self.calls.iter().try_for_each(|call| writer.call(call))?;
        writer.finish().map(drop)
    }
}

fn write_line(output: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *output, line)?;
    output.write_all(b"\n")
}

/// Digits beyond the nanosecond are noise, and without them a number is read back to the same bits.
fn to_nanoseconds(micros: f64) -> f64 {
    (micros * 1e3).round() / 1e3
}
