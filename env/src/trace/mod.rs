//! Recorded jobs as sequences of calls, to be replayed.
//!
//! Two formats, one meaning: our own lines (`docs/traces.md`) and what NCCL's inspector plugin writes.
//! Readers take any bytes whatsoever: the worst a file can do is to be refused with one line. Nothing
//! here knows a cluster or a model; a trace says what was called and, where known, how long it took.

mod error;
mod fields;
mod inspector;
mod jsonl;
mod lines;
mod write;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use dynamiccl_spec::{Algorithm, Collective, Protocol, Role};

pub use error::TraceError;
pub use write::TraceWriter;

use crate::measure::Fault;
use lines::Lines;

/// Name and version of our format.
pub const SCHEMA: &str = "dynamiccl-trace-1";
/// Most calls of one trace.
pub const CALLS_MAX: usize = 1 << 24;

/// A recorded job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// Where it ran and who talked.
    pub header: Header,
    /// What was called, in order; never empty when read.
    pub calls: Vec<TracedCall>,
    /// What the reader noticed but could live with, one line each.
    pub warnings: Vec<String>,
}

/// What holds for the whole job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// Name of the cluster.
    pub cluster: Option<String>,
    /// Nodes of the job.
    pub nodes: Option<u32>,
    /// Its communicators.
    pub communicators: Vec<TracedComm>,
}

/// A communicator of a recorded job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedComm {
    /// Its name, unique in the trace.
    pub id: String,
    /// Its ranks.
    pub ranks: u32,
    /// The nodes that it spans.
    pub nodes: u32,
    /// Its ranks on each node; the most where they differ.
    pub ranks_per_node: u32,
    /// What its calls are for, where a call does not say otherwise.
    pub role: Role,
}

/// One recorded call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracedCall {
    /// Position of its communicator in the header.
    pub comm: u32,
    /// What was called.
    pub collective: Collective,
    /// Bytes as NCCL counts them: allgather and reducescatter count every rank's part.
    pub bytes: u64,
    /// µs since the recording began.
    pub start_us: Option<f64>,
    /// µs that it took.
    pub duration_us: Option<f64>,
    /// The algorithm that carried it.
    pub algorithm: Option<Algorithm>,
    /// The protocol.
    pub protocol: Option<Protocol>,
    /// The channels.
    pub channels: Option<u32>,
    /// Calls that were launched together with it, itself included.
    pub pipelined: u32,
    /// The pipeline stage that called.
    pub stage: Option<u8>,
    /// What it was for; the communicator's role where the call says nothing.
    pub role: Role,
}

impl Trace {
    /// Reads a trace of either format.
    pub fn read(file: &Path) -> Result<Trace, TraceError> {
        let input = File::open(file).map_err(|e| TraceError::unreadable(file, &e))?;
        Trace::read_from(BufReader::new(input), file)
    }

    /// Reads a trace of either format from anywhere; errors call it `file`.
    pub fn read_from(input: impl BufRead, file: &Path) -> Result<Trace, TraceError> {
        let mut lines = Lines::new(input, file);
        let Some(first) = lines.next()? else {
            let remedy = "give a header line and at least one call";
            return Err(TraceError::Empty(Fault::new(file, 0, "nothing", remedy)));
        };
        let trace = if first.has("schema") {
            jsonl::read(first, lines)?
        } else if first.has("header") {
            inspector::read(first, lines)?
        } else {
            let remedy = format!("start with {{\"schema\": \"{SCHEMA}\", …}} or give NCCL inspector's JSON");
            return Err(TraceError::NotATrace(first.fault("first line", &remedy)));
        };
        if trace.calls.is_empty() {
            return Err(TraceError::Empty(Fault::new(file, 0, "no call", "add a line for each call")));
        }
        Ok(trace)
    }

    /// Calls of the communicator at this position, in order.
    pub fn calls_of(&self, comm: u32) -> impl Iterator<Item = &TracedCall> {
        self.calls.iter().filter(move |call| call.comm == comm)
    }

    /// The communicator of a call.
    pub fn communicator(&self, call: &TracedCall) -> Option<&TracedComm> {
        self.header.communicators.get(call.comm as usize)
    }

    /// µs between the end of the previous call and the start of each, where both are known.
    pub fn gaps(&self) -> impl Iterator<Item = Option<f64>> {
        let ends = self.calls.iter().map(|call| Some(call.start_us? + call.duration_us?));
        let before = std::iter::once(None).chain(ends);
        self.calls.iter().zip(before).map(|(call, end)| Some((call.start_us? - end?).max(0.0)))
    }
}
