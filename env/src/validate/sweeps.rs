//! Whether the knobs that the model ranks first are good ones.
//!
//! In every cell (collective × size) of a sweep the model ranks the settings that were measured.
//! Decision fidelity is what its first choice took, over the best measured. Settings that NCCL caps to
//! the same launch are one setting to the model; the largest request stands for them. Lines of chunk sizes that the sweep's
//! NCCL asks nobody about say nothing of those.

use std::collections::BTreeMap;

use dynamiccl_spec::{ChunkChoice, Collective};

use crate::measure::sweep::{Link, Setting, Sweep, SweepRow};
use crate::measure::{Circumstances, Clock};
use crate::model::{Call, Constants, Fabric};
use crate::nccl::Communicator;
use crate::statistics::{geometric_mean, median};
use crate::swept::{Machine, SweptError, machine_of};

/// How one sweep agrees with the model.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepReport {
    /// The file's name.
    pub file: String,
    /// Ranks.
    pub ranks: u32,
    /// The link.
    pub link: Link,
    /// Measured time of the model's first choice over the best measured, one per cell.
    pub first_choice: Vec<f64>,
    /// The same for NCCL's default, one per cell in which it was measured.
    pub nccl_default: Vec<f64>,
    /// Log of modelled over measured time, one per setting.
    pub log_errors: Vec<f64>,
}

/// Figures over the cells of some sweeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fidelity {
    /// Cells.
    pub cells: usize,
    /// Median of the absolute log error over all settings.
    pub median_abs_log_error: f64,
    /// Geometric mean over cells of the first choice's time over the best.
    pub decision_fidelity: f64,
    /// The same for NCCL's default, where it was measured.
    pub nccl_decision: Option<f64>,
}

/// One sweep with everything that does not depend on the model's constants.
#[derive(Debug, Clone)]
pub struct PreparedSweep {
    file: String,
    clock: Clock,
    circumstances: Circumstances,
    machine: Machine,
    cells: Vec<PreparedCell>,
    /// Lines that say nothing.
    left_out: usize,
}

/// One cell: the settings measured in it, as NCCL launches them.
#[derive(Debug, Clone)]
struct PreparedCell {
    settings: Vec<PreparedSetting>,
    default_us: Option<f64>,
}

#[derive(Debug, Clone)]
struct PreparedSetting {
    call: Call,
    requested: u32,
    measured_us: f64,
    slowest_over_fastest: f64,
}

impl PreparedSweep {
    /// Works out what NCCL launched for every line of a sweep.
    pub fn new(sweep: &Sweep) -> Result<Self, SweptError> {
        let machine = machine_of(sweep, None)?;
        let communicator = machine.started_with(sweep.threads)?;
        let mut cells: BTreeMap<(Collective, u64), PreparedCell> = BTreeMap::new();
        let chunks = machine.release.version.has_chunk_knob();
        let (rows, left_out): (Vec<&SweepRow>, Vec<_>) =
            sweep.rows.iter().partition(|row| chunks || row.chunk == ChunkChoice::Own);
        for row in rows {
            let cell = cells
                .entry((row.collective, row.bytes))
                .or_insert_with(|| PreparedCell { settings: Vec::new(), default_us: None });
            cell.add(row, &communicator);
        }
        let cells = cells.into_values().filter(|cell| !cell.settings.is_empty()).collect();
        let file = sweep.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (clock, circumstances) = (sweep.about.clock, sweep.about.circumstances.clone());
        Ok(PreparedSweep { file, clock, circumstances, machine, cells, left_out: left_out.len() })
    }

    /// The file's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What its user must know, one line each.
    pub fn notes(&self) -> Vec<String> {
        let left_out = (self.left_out > 0).then(|| {
            let (lines, version) = (self.left_out, self.machine.release.version);
            format!("left out {lines} of its lines: NCCL {version} lets no tuner set the chunk size")
        });
        let notes = left_out.into_iter().chain(self.machine.release.note()).chain(self.circumstances.note());
        notes.map(|note| format!("{}: {note}", self.file)).collect()
    }

    fn fabric(&self, constants: &Constants) -> Fabric {
        Fabric::new(&self.machine.cluster, self.machine.ranks(), 1, 1, &constants.by(self.clock))
    }

    /// Measured and modelled times of every setting, cell by cell.
    pub fn times(&self, constants: &Constants) -> Vec<Vec<(f64, f64)>> {
        let fabric = self.fabric(constants);
        let times = |cell: &PreparedCell| -> Vec<(f64, f64)> {
            cell.settings.iter().map(|s| (s.measured_us, fabric.time(&s.call))).collect()
        };
        self.cells.iter().map(times).collect()
    }

    /// Every call with the log of its measured over its modelled time.
    pub fn residuals(&self, constants: &Constants) -> Vec<(Call, f64)> {
        let fabric = self.fabric(constants);
        let settings = self.cells.iter().flat_map(|cell| &cell.settings);
        settings.map(|s| (s.call, (s.measured_us / fabric.time(&s.call)).ln())).collect()
    }

    /// The slowest over the fastest repeat of every setting: where it is large, there are two modes.
    pub fn repeat_ratios(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().flat_map(|cell| &cell.settings).map(|s| s.slowest_over_fastest)
    }

    /// Holds the model with these constants against the sweep.
    pub fn report(&self, constants: &Constants) -> SweepReport {
        let fabric = self.fabric(constants);
        let mut report = SweepReport {
            file: self.file.clone(),
            ranks: self.machine.ranks(),
            link: self.machine.link,
            first_choice: Vec::new(),
            nccl_default: Vec::new(),
            log_errors: Vec::new(),
        };
        for cell in &self.cells {
            cell.judge(&fabric, &mut report);
        }
        report
    }
}

impl PreparedCell {
    fn add(&mut self, row: &SweepRow, communicator: &Communicator) {
        match row.setting {
            Setting::Default => self.default_us = Some(row.median_us),
            Setting::Knobs { pair, channels } => self.settings.push(PreparedSetting {
                call: Call::forced(communicator, row.collective, row.bytes, pair, channels, row.chunk),
                requested: channels.unwrap_or(0),
                measured_us: row.median_us,
                slowest_over_fastest: row.max_us / row.min_us,
            }),
        }
    }

    fn judge(&self, fabric: &Fabric, report: &mut SweepReport) {
        let mut first = (f64::INFINITY, 0, f64::INFINITY);
        let mut best = f64::INFINITY;
        for setting in &self.settings {
            let modelled = fabric.time(&setting.call);
            report.log_errors.push((modelled / setting.measured_us).ln());
            best = best.min(setting.measured_us);
            let wins = modelled < first.0 || (modelled == first.0 && setting.requested > first.1);
            if wins {
                first = (modelled, setting.requested, setting.measured_us);
            }
        }
        report.first_choice.push(first.2 / best);
        report.nccl_default.extend(self.default_us.map(|us| us / best));
    }
}

impl Fidelity {
    /// The figures of some sweeps, all cells pooled; nothing without a cell.
    pub fn of<'a>(reports: impl IntoIterator<Item = &'a SweepReport>) -> Option<Fidelity> {
        let (mut first, mut default, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for report in reports {
            first.extend_from_slice(&report.first_choice);
            default.extend_from_slice(&report.nccl_default);
            errors.extend(report.log_errors.iter().map(|e| e.abs()));
        }
        Some(Fidelity {
            cells: first.len(),
            median_abs_log_error: median(errors)?,
            decision_fidelity: geometric_mean(first)?,
            nccl_decision: geometric_mean(default),
        })
    }
}
