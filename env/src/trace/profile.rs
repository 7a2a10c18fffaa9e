//! What our own profiler writes: a header line per process, then a line per finished collective of a rank.
//!
//! Files of all ranks belong together, in one folder or one after the other in one file. A line that counts
//! what was dropped is no call. Times by the launch alone are none: the collective may still have been running.

use std::collections::HashMap;
use std::io::BufRead;

use dynamiccl_spec::{Collective, Role};
use serde_json::Value;

use super::error::TraceError;
use super::fields::Fields;
use super::jsonl::{BYTES_MAX, CHANNELS_MAX, RANKS_MAX};
use super::lines::Lines;
use super::ranks::{Ranks, Record};
use super::{PROFILE_SCHEMA, Trace, TracedCall};

const HEADER_KEYS: [&str; 4] = ["schema", "host", "pid", "start"];
const CALL_KEYS: [&str; 16] = [
    "comm",
    "rank",
    "ranks",
    "nodes",
    "seq",
    "coll",
    "bytes",
    "part_bytes",
    "algo",
    "proto",
    "nchannels",
    "nchannels_max",
    "warps",
    "t_us",
    "us",
    "clock",
];
const CLOCKS: [&str; 3] = ["gpu", "host", "launch"];

/// Files of a job, being read.
#[derive(Default)]
pub(super) struct Profile {
    ranks: Ranks,
    processes: HashMap<Process, u32>,
    hosts: HashMap<String, u32>,
    dropped: u64,
    untimed: u64,
}

/// A host's name, the id of a process there, and when that began: containers give the same id again and again. Earlier releases
/// do not say when.
type Process = (String, u64, Option<u64>);

/// Who wrote the lines.
#[derive(Clone, Copy)]
struct Writer {
    process: u32,
    host: u32,
}

impl Profile {
    /// Adds a file.
    pub fn add<R: BufRead>(&mut self, first: Fields<'_>, mut lines: Lines<'_, R>) -> Result<(), TraceError> {
        let mut writer = self.header(first)?;
        while let Some(mut fields) = lines.next()? {
            if fields.has("schema") {
                writer = self.header(fields)?;
            } else if fields.has("dropped") {
                self.dropped += fields.required_whole("dropped", 0..=u64::from(u32::MAX))?;
                fields.finish(&["dropped"])?;
            } else {
                self.record(fields, writer)?;
            }
        }
        Ok(())
    }

    fn header(&mut self, mut fields: Fields<'_>) -> Result<Writer, TraceError> {
        let schema = fields.text("schema")?;
        let schema = fields.required("schema", schema)?;
        if schema != PROFILE_SCHEMA {
            let remedy = format!("this release reads {PROFILE_SCHEMA}");
            return Err(TraceError::Version(fields.fault(&schema, &remedy)));
        }
        let host = fields.text("host")?;
        let host = fields.required("host", host)?;
        let pid = fields.required_whole("pid", 0..=u64::MAX)?;
        let start = fields.whole("start", 0..=u64::MAX)?;
        fields.finish(&HEADER_KEYS)?;
        let next = self.processes.len() as u32;
        let process = *self.processes.entry((host.clone(), pid, start)).or_insert(next);
        let next = self.hosts.len() as u32;
        let host = *self.hosts.entry(host).or_insert(next);
        Ok(Writer { process, host })
    }

    fn record(&mut self, mut fields: Fields<'_>, writer: Writer) -> Result<(), TraceError> {
        let id = fields.text("comm")?;
        let id = fields.required("comm", id)?;
        let shape = match fields.whole("ranks", 1..=RANKS_MAX)? {
            Some(ranks) => Some((ranks as u32, fields.required_whole("nodes", 1..=ranks)? as u32)),
            None => None,
        };
        let most = shape.map_or(RANKS_MAX, |(ranks, _)| ranks.into());
        let rank = fields.required_whole("rank", 0..=most - 1)? as u32;
        let number = fields.required_whole("seq", 0..=u64::MAX)?;
        let collective: Option<Collective> = fields.word("coll")?;
        let collective = fields.required("coll", collective)?;
        let whole = fields.whole("bytes", 0..=BYTES_MAX)?;
        let is_part = whole.is_none();
        let bytes = match whole {
            Some(bytes) => bytes,
            None => fields.required_whole("part_bytes", 0..=BYTES_MAX)?,
        };
        let time = fields.micros("us")?;
        let is_timed = clock(&mut fields)? != "launch";
        self.untimed += u64::from(!is_timed);
        let call = TracedCall {
            comm: self.ranks.place(&fields, &id, shape, rank, writer.host)?,
            collective,
            bytes,
            start_us: fields.whole("t_us", 0..=1 << 53)?.map(|start| start as f64),
            duration_us: time.filter(|&time| is_timed && time > 0.0),
            algorithm: fields.word("algo")?,
            protocol: fields.word("proto")?,
            channels: fields.whole("nchannels", 1..=CHANNELS_MAX)?.map(|channels| channels as u32),
            pipelined: 1,
            stage: None,
            role: Role::Unknown,
        };
        fields.whole("nchannels_max", 1..=255)?;
        fields.whole("warps", 0..=255)?;
        let record = Record { process: writer.process, rank, number, is_pair: false, is_part, call };
        self.ranks.add(&fields, collective.name(), record)?;
        fields.finish(&CALL_KEYS)
    }

    /// The trace of what was added.
    pub fn trace(self) -> Trace {
        let mut warnings = Vec::new();
        if self.dropped > 0 {
            warnings.push(format!("{} collectives could not be recorded in their time", self.dropped));
        }
        if self.untimed > 0 {
            warnings.push(format!("{} records have no time but that of their launch", self.untimed));
        }
        let incomplete: Vec<_> = self.ranks.incomplete().collect();
        if let Some((comm, seen)) = incomplete.first() {
            warnings.push(format!(
                "of {} communicators not all ranks were recorded (of {}: {seen} of {}): times may hold the \
                 wait for the others",
                incomplete.len(),
                comm.id,
                comm.ranks
            ));
        }
        Trace { warnings, ..self.ranks.trace() }
    }
}

fn clock(fields: &mut Fields<'_>) -> Result<String, TraceError> {
    let clock = fields.text("clock")?;
    let clock = fields.required("clock", clock)?;
    if CLOCKS.contains(&clock.as_str()) {
        return Ok(clock);
    }
    let remedy = format!("give one of {}", CLOCKS.join(", "));
    Err(fields.bad("clock", &Value::String(clock), &remedy))
}
