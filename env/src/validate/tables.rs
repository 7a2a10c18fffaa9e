//! How far modelled times are from what people measured on their clusters.
//!
//! Each table is described as a cluster from its own metadata, NCCL's choice is worked out as NCCL
//! would, and three forecasts are judged on the same rows: NCCL's own formula, the model as it is, and
//! the model calibrated on every other size and judged on the sizes between.

use dynamiccl_spec::Collective;

use super::Describer;
use crate::calibrate::{Sample, calibrate, fabric, sample};
use crate::cluster::Cluster;
use crate::measure::tables::{Health, Table};
use crate::model::Constants;
use crate::nccl::Communicator;
use crate::statistics::median;

/// One table as a communicator of a described cluster, with what NCCL ran in each row.
#[derive(Debug, Clone)]
pub struct PreparedTable {
    /// The table's name.
    pub id: String,
    /// Whether the machine behind it ran as it should.
    pub health: Health,
    /// The description.
    pub cluster: Cluster,
    /// NCCL's side.
    pub communicator: Communicator,
    /// The rows.
    pub samples: Vec<Sample>,
}

/// Why a table is not judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The table's name.
    pub id: String,
    /// The reason.
    pub why: String,
}

/// Median absolute log errors of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableReport {
    /// The table's name.
    pub id: String,
    /// Whether the machine behind it ran as it should.
    pub health: Health,
    /// Rows judged.
    pub rows: usize,
    /// NCCL's own formula.
    pub nccl: f64,
    /// The model as it is.
    pub zero_shot: f64,
    /// The calibrated model on sizes it was not fitted to; nothing where a table has too few.
    pub calibrated: Option<f64>,
}

/// Medians over tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overall {
    /// Tables.
    pub tables: usize,
    /// NCCL's own formula.
    pub nccl: f64,
    /// The model as it is.
    pub zero_shot: f64,
    /// The calibrated model.
    pub calibrated: Option<f64>,
}

impl PreparedTable {
    /// Describes a table's cluster and works out what NCCL ran.
    pub fn new(table: &Table, describer: &mut Describer) -> Result<Self, Skipped> {
        let skip = |why: String| Skipped { id: table.id.clone(), why };
        let (cluster, communicator) = describer.describe(table).map_err(skip)?;
        let tuned = |c: Collective| Collective::TUNED.contains(&c);
        let samples: Vec<Sample> = table
            .rows
            .iter()
            .filter(|row| tuned(row.collective))
            .filter_map(|row| sample(&communicator, row))
            .collect();
        if samples.is_empty() {
            return Err(skip("no row that NCCL's tuner decides".to_owned()));
        }
        Ok(PreparedTable { id: table.id.clone(), health: table.health, cluster, communicator, samples })
    }

    /// Judges the three forecasts.
    pub fn report(&self, constants: &Constants) -> TableReport {
        let nccl = self.samples.iter().map(|s| (s.predicted_us / s.measured_us).ln().abs());
        TableReport {
            id: self.id.clone(),
            health: self.health,
            rows: self.samples.len(),
            nccl: median(nccl).unwrap_or(f64::NAN),
            zero_shot: self.error(&self.cluster, &self.samples, constants).unwrap_or(f64::NAN),
            calibrated: self.calibrated(constants),
        }
    }

    /// Fits on every other size and judges on the rest.
    fn calibrated(&self, constants: &Constants) -> Option<f64> {
        let mut sizes: Vec<u64> = self.samples.iter().map(|s| s.call.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let fits = |s: &&Sample| sizes.binary_search(&s.call.bytes).is_ok_and(|at| at % 2 == 0);
        let (fit, judge): (Vec<Sample>, Vec<Sample>) = self.samples.iter().partition(|s| fits(s));
        if fit.is_empty() || judge.is_empty() {
            return None;
        }
        let mut cluster = self.cluster.clone();
        cluster.calibration = calibrate(&cluster, &self.communicator, &fit, constants);
        self.error(&cluster, &judge, constants)
    }

    fn error(&self, cluster: &Cluster, samples: &[Sample], constants: &Constants) -> Option<f64> {
        let fabric = fabric(cluster, &self.communicator, constants);
        median(samples.iter().map(|s| (fabric.time(&s.call) / s.measured_us).ln().abs()))
    }
}

impl Overall {
    /// The medians over some tables; nothing without one.
    pub fn of<'a>(reports: impl Iterator<Item = &'a TableReport> + Clone) -> Option<Overall> {
        Some(Overall {
            tables: reports.clone().count(),
            nccl: median(reports.clone().map(|r| r.nccl))?,
            zero_shot: median(reports.clone().map(|r| r.zero_shot))?,
            calibrated: median(reports.filter_map(|r| r.calibrated)),
        })
    }
}
