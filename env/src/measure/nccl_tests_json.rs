//! The JSON that nccl-tests writes with `-J FILE`, since 2.17.3.
//!
//! Its writer is hand-made: truth values are strings, a time that is not a number is `"nan"`, and
//! only the first device of each process is listed. Per-iteration times (file version 2 and later)
//! are skipped without being kept.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use dynamiccl_spec::Collective;
use serde::Deserialize;

use super::collective::{Named, named, named_by_file};
use super::error::{Fault, MeasureError};
use super::forced::Forced;
use super::nccl_tests_text::version_of;
use super::{Log, Row};

/// Bytes that a JSON log may have; per-iteration times of a thousand ranks fit.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Deserialize)]
struct Document {
    version: Option<u64>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    nccl_version: Option<u64>,
    config: Option<Config>,
    results: Option<Vec<Entry>>,
    #[serde(default)]
    errors: Vec<String>,
    average_bus_bandwidth: Option<serde::de::IgnoredAny>,
    // As 2.17.3 to 2.17.8 spelt it.
    average_bus_bandwidith: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Config {
    nthreads: Option<u32>,
    ngpus: Option<u32>,
    #[serde(default)]
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    rank: Option<u32>,
    hostname: Option<String>,
    device_info: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    size: Option<u64>,
    out_of_place: Option<Half>,
    in_place: Option<Half>,
}

#[derive(Deserialize)]
struct Half {
    time: Option<Number>,
    cpu_time: Option<Number>,
    nwrong: Option<Number>,
}

/// A number, or the text that stands for one that is none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Value(f64),
    Text(String),
}

/// Reads the JSON of nccl-tests. `told` overrides what the file says it measured.
pub fn read(file: &Path, told: Option<Collective>) -> Result<Log, MeasureError> {
    let input = File::open(file).map_err(|e| MeasureError::unreadable(file, &e))?;
    let mut bytes = Vec::new();
    let read = input.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| MeasureError::unreadable(file, &e))?;
    if bytes.len() as u64 > MAX_BYTES {
        let fault = Fault::new(
            file,
            0,
            format!("more than {MAX_BYTES} bytes"),
            "write it without per-iteration times",
        );
        return Err(MeasureError::TooLarge(fault));
    }
    parse(&bytes, file, told)
}

/// Reads a document; `file` only names it.
pub(super) fn parse(bytes: &[u8], file: &Path, told: Option<Collective>) -> Result<Log, MeasureError> {
    let document: Document = serde_json::from_slice(bytes).map_err(|e| json_error(file, &e))?;
    let Some(results) = &document.results else {
        let remedy = "give the file that nccl-tests wrote with -J, after the run has ended";
        return Err(MeasureError::Missing(Fault::new(file, 0, "results", remedy)));
    };
    let mut log = Log { nccl_version: document.nccl_version.and_then(version_of), ..Log::default() };
    describe(&mut log, document.config.as_ref());
    let collective = collective_of(&document, file, told)?;
    let forced = forced_by(&document.env);
    let (mut wrong, mut empty) = (0, 0);
    for (index, entry) in results.iter().enumerate() {
        for (half, in_place) in [(&entry.out_of_place, false), (&entry.in_place, true)] {
            let Some(half) = half else { continue };
            wrong += usize::from(matches!(half.nwrong, Some(Number::Value(n)) if n > 0.0));
            let time_us = time_of(half, index, file)?;
            let bytes = entry.size.unwrap_or(0);
            if bytes == 0 || time_us <= 0.0 {
                empty += 1;
                continue;
            }
            let (pair, channels) = (forced.pair(), forced.channels());
            log.rows.push(Row { collective, bytes, time_us, pair, channels, in_place: Some(in_place) });
        }
    }
    if log.rows.is_empty() {
        return Err(MeasureError::NoRows(Fault::new(file, 0, "an empty list of results", "measure again")));
    }
    warn(&mut log, &document, wrong, empty);
    Ok(log)
}

fn json_error(file: &Path, error: &serde_json::Error) -> MeasureError {
    let fault = |remedy| Fault::new(file, error.line() as u64, error.to_string(), remedy);
    match error.classify() {
        serde_json::error::Category::Eof => {
            MeasureError::Truncated(fault("the run did not end: measure again"))
        }
        serde_json::error::Category::Data => MeasureError::Bad {
            what: "field".to_owned(),
            at: fault("give the file that nccl-tests wrote with -J"),
        },
        _ => MeasureError::Bad { what: "JSON".to_owned(), at: fault("measure again, or give the text log") },
    }
}

/// Fills in ranks, nodes and GPU. The list has one device per process, so that threads and GPUs per
/// process multiply it.
fn describe(log: &mut Log, config: Option<&Config>) {
    let Some(config) = config else { return };
    let devices = &config.devices;
    let per_process = u64::from(config.nthreads.unwrap_or(1)) * u64::from(config.ngpus.unwrap_or(1));
    let listed = devices.iter().filter_map(|d| d.rank).max().map_or(0, |rank| u64::from(rank) + 1);
    let ranks = listed.max((devices.len() as u64).saturating_mul(per_process));
    log.ranks = u32::try_from(ranks).ok().filter(|&n| n > 0);
    let hosts: BTreeSet<&str> = devices.iter().filter_map(|d| d.hostname.as_deref()).collect();
    log.nodes = u32::try_from(hosts.len()).ok().filter(|&n| n > 0);
    let gpus: BTreeSet<&str> = devices.iter().filter_map(|d| d.device_info.as_deref()).collect();
    if gpus.len() > 1 {
        log.warnings.push(format!("{} different GPUs took part", gpus.len()));
    } else {
        log.gpu = gpus.first().map(|gpu| gpu.trim().to_owned());
    }
}

fn collective_of(
    document: &Document,
    file: &Path,
    told: Option<Collective>,
) -> Result<Collective, MeasureError> {
    if let Some(collective) = told {
        return Ok(collective);
    }
    let program = document.args.first().map_or("", String::as_str);
    let by_program = named(program.rsplit(['/', '\\']).next().unwrap_or(program));
    let name = if by_program == Named::Nothing { named_by_file(file) } else { by_program };
    match name {
        Named::Known(collective) => Ok(collective),
        Named::Foreign => {
            let remedy = "measure all_reduce_perf or another collective of NCCL";
            Err(MeasureError::NoRows(Fault::new(file, 0, program, remedy)))
        }
        Named::Nothing => {
            let remedy = "name the collective, or name the file after it (all_reduce.json)";
            Err(MeasureError::WhichCollective(Fault::new(file, 0, program, remedy)))
        }
    }
}

fn forced_by(env: &[String]) -> Forced {
    let mut forced = Forced::default();
    for (name, value) in env.iter().filter_map(|entry| entry.split_once('=')) {
        forced.note(name, value);
    }
    forced
}

fn time_of(half: &Half, index: usize, file: &Path) -> Result<f64, MeasureError> {
    let bad = |what: &str, value: &str, remedy: &str| MeasureError::Bad {
        what: format!("{what} of result {}", index + 1),
        at: Fault::new(file, 0, value, remedy),
    };
    match (&half.time, &half.cpu_time) {
        (Some(Number::Value(time)), _) if time.is_finite() && *time >= 0.0 => Ok(*time),
        (Some(Number::Value(time)), _) => Err(bad("time", &time.to_string(), "measure again")),
        (Some(Number::Text(text)), _) => Err(bad("time", text, "measure again")),
        (None, Some(_)) => {
            let remedy = "it times the launching thread, not the collective: measure again without -C 1";
            Err(bad("time", "cpu_time", remedy))
        }
        (None, None) => Err(bad("time", "nothing", "measure again")),
    }
}

fn warn(log: &mut Log, document: &Document, wrong: usize, empty: usize) {
    if wrong > 0 {
        log.warnings.push(format!("{wrong} times have wrong results (nwrong)"));
    }
    if empty > 0 {
        log.warnings.push(format!("{empty} times of no bytes or no time left out"));
    }
    if document.average_bus_bandwidth.is_none() && document.average_bus_bandwidith.is_none() {
        log.warnings.push("the log ends without its averages: the run may not have finished".to_owned());
    }
    if let Some(error) = document.errors.iter().find(|error| !error.trim().is_empty()) {
        log.warnings.push(format!("NCCL reported: {}", Fault::new(Path::new(""), 0, error, "").value));
    }
    if document.version.is_some_and(|version| version > 3) {
        log.warnings.push("written by a newer nccl-tests than this reader knows".to_owned());
    }
}
