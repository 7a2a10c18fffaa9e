//! Recorded jobs as sequences of calls, to be replayed.
//!
//! Three formats, one meaning: our own lines (`docs/traces.md`), what the profiler of our plugin writes, and
//! what NCCL's inspector plugin writes.
//! Readers take any bytes whatsoever: the worst a file can do is to be refused with one line. Nothing
//! here knows a cluster or a model; a trace says what was called and, where known, how long it took.

mod error;
mod fields;
mod inspector;
mod jsonl;
mod lines;
mod pairs;
mod profile;
mod ranks;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use dynamiccl_spec::{Algorithm, Collective, Protocol, Role};

pub use error::TraceError;

use crate::measure::Fault;
use lines::Lines;
use profile::Profile;

/// Name and version of our format.
pub const SCHEMA: &str = "dynamiccl-trace-1";
/// Name and version of the format of our profiler.
pub const PROFILE_SCHEMA: &str = "dynamiccl-profile-1";
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
    /// Reads a trace of any format, or a folder of what our profiler wrote on all ranks.
    pub fn read(file: &Path) -> Result<Trace, TraceError> {
        if file.is_dir() {
            return Trace::read_folder(file);
        }
        let input = File::open(file).map_err(|e| TraceError::unreadable(file, &e))?;
        Trace::read_from(BufReader::new(input), file)
    }

    /// Reads a trace of any format from anywhere; errors call it `file`.
    pub fn read_from(input: impl BufRead, file: &Path) -> Result<Trace, TraceError> {
        let mut lines = Lines::new(input, file);
        let Some(first) = lines.next()? else {
            let remedy = "give a header line and at least one call";
            return Err(TraceError::Empty(Fault::new(file, 0, "nothing", remedy)));
        };
        let trace = if first.says("schema", PROFILE_SCHEMA) {
            let mut profile = Profile::default();
            profile.add(first, lines)?;
            profile.trace()
        } else if first.has("schema") {
            jsonl::read(first, lines)?
        } else if first.has("header") {
            inspector::read(first, lines)?
        } else {
            let remedy = format!("start with {{\"schema\": \"{SCHEMA}\", …}} or give NCCL inspector's JSON");
            return Err(TraceError::NotATrace(first.fault("first line", &remedy)));
        };
        trace.with_calls(Fault::new(file, 0, "no call", "add a line for each call"))
    }

    /// Reads every `.jsonl` of a folder as one job.
    fn read_folder(folder: &Path) -> Result<Trace, TraceError> {
        let unreadable = |error: io::Error| TraceError::unreadable(folder, &error);
        let listed = fs::read_dir(folder).map_err(unreadable)?;
        let listed = listed.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
        let mut files = listed.map_err(unreadable)?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
        // The order of a folder is nobody's promise.
        files.sort();
        let mut profile = Profile::default();
        for file in &files {
            let input = File::open(file).map_err(|e| TraceError::unreadable(file, &e))?;
            let mut lines = Lines::new(BufReader::new(input), file);
            match lines.next()? {
                Some(first) if first.says("schema", PROFILE_SCHEMA) => profile.add(first, lines)?,
                Some(first) => {
                    let remedy = format!("a folder may hold {PROFILE_SCHEMA} only: give this file by itself");
                    return Err(TraceError::NotATrace(first.fault("first line", &remedy)));
                }
                // The profiler had nothing to write yet.
                None => {}
            }
        }
        let missing = if files.is_empty() { "no .jsonl file" } else { "no call in its .jsonl files" };
        let remedy = "give the folder that DYNAMICCL_PROFILE named while a job made calls";
        profile.trace().with_calls(Fault::new(folder, 0, missing, remedy))
    }

    /// The fault where there is no call.
    fn with_calls(self, fault: Fault) -> Result<Trace, TraceError> {
        if self.calls.is_empty() { Err(TraceError::Empty(fault)) } else { Ok(self) }
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
