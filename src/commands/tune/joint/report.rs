//! The result of `tune --joint`.

use std::fmt;

use dynamiccl_spec::{Bytes, Collective};
use dynamiccl_synth::Machine;
use dynamiccl_synth::joint::table::{Entry, Table};
use dynamiccl_synth::joint::{SIZES, Setting};
use serde::Serialize;

use crate::args::Method;
use crate::table::{Column, Table as Rows};

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Always: no number here was measured.
    simulated: bool,
    /// Always.
    joint: bool,
    method: Method,
    machine: String,
    ranks: usize,
    /// Fingerprint of the topology, and the checksum of the table that all ranks compare.
    topology: String,
    checksum: String,
    /// Full measurements that were spent, and settings that there are.
    trials: f64,
    grid_trials: usize,
    calls: Vec<Tuned>,
}

/// What was found for one call.
#[derive(Debug, Serialize)]
pub struct Tuned {
    collective: Collective,
    bytes: u64,
    trials: f64,
    /// µs of the best, of MSCCL's own setting with a full mesh, and how many times as fast the best is.
    best_us: f64,
    start_us: f64,
    gain: f64,
    best: Setting,
    #[serde(skip)]
    kept: Vec<(Setting, f64)>,
}

impl Tuned {
    /// What was found: the true times of the first setting and of MSCCL's own, and the settings in the search's order with the
    /// times that it believes.
    pub fn new(
        collective: Collective,
        bytes: u64,
        trials: f64,
        [best_us, start_us]: [f64; 2],
        kept: Vec<(Setting, f64)>,
    ) -> Self {
        let best = kept[0].0;
        Tuned { collective, bytes, trials, best_us, start_us, gain: start_us / best_us, best, kept }
    }

    /// Its entries in a table.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let entry = |&(setting, micros): &(Setting, f64)| Entry {
            collective: self.collective,
            bytes: self.bytes,
            micros,
            setting,
        };
        self.kept.iter().map(entry)
    }
}

impl Report {
    /// The report of these calls.
    pub fn new(method: Method, machine: &Machine, table: &Table, calls: Vec<Tuned>) -> Self {
        Report {
            simulated: true,
            joint: true,
            method,
            machine: machine.name.clone(),
            ranks: machine.ranks(),
            topology: table.topology.clone(),
            checksum: table.checksum.clone(),
            trials: calls.iter().map(|call| call.trials).sum(),
            grid_trials: SIZES.iter().product::<usize>() * calls.len(),
            calls,
        }
    }
}

const COLUMNS: [Column; 12] = [
    Column::left("collective"),
    Column::right("size").unit("(B)"),
    Column::left("sketch"),
    Column::left("synthesizer"),
    Column::right("chunks"),
    Column::left("proto"),
    Column::right("nch"),
    Column::right("nthr"),
    Column::right("buffer").unit("(B)"),
    Column::right("time").unit("(us)"),
    Column::right("gain"),
    Column::right("trials"),
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}: {} ranks, topology {}; joint", self.machine, self.ranks, self.topology)?;
        writeln!(f, "# simulated; gain over MSCCL's own setting with a full mesh")?;
        let mut rows = Rows::new(COLUMNS);
        self.calls.iter().for_each(|call| rows.row(row(call)));
        write!(f, "#\n{rows}")?;
        let share = 100.0 * self.trials / self.grid_trials.max(1) as f64;
        writeln!(f, "Summary  {:.1} trials of {} settings ({share:.1} %)", self.trials, self.grid_trials)?;
        writeln!(f, "         table {}: every rank must have the same", self.checksum)
    }
}

fn row(call: &Tuned) -> [String; COLUMNS.len()] {
    let Setting { sketch, synthesizer, chunks, backend } = &call.best;
    [
        call.collective.to_string(),
        Bytes(call.bytes).to_string(),
        sketch.to_string(),
        synthesizer.to_string(),
        chunks.to_string(),
        backend.protocol.to_string(),
        backend.channels.to_string(),
        backend.threads.to_string(),
        Bytes(backend.buffer).to_string(),
        format!("{:.2}", call.best_us),
        format!("{:.3}", call.gain),
        format!("{:.1}", call.trials),
    ]
}
