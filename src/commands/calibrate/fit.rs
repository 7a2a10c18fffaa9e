//! The fit itself: which rows say something, and how far the model is off before and after.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use dynamiccl_env::calibrate::{FEWEST_SAMPLES, Group, Sample, calibrate_all, sample};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::measure::{Clock, Row};
use dynamiccl_env::model::Constants;
use dynamiccl_env::nccl::Communicator;
use dynamiccl_env::statistics::median;
use dynamiccl_spec::Collective;
use serde::Serialize;

use crate::words::counted;

/// A cluster fitted to measured rows.
#[derive(Debug)]
pub struct Fit {
    /// The cluster with its new factors.
    pub cluster: Cluster,
    /// Errors over all rows that were used.
    pub overall: Errors,
    /// Errors by collective.
    pub collectives: Vec<ByCollective>,
    /// Rows left out, by reason.
    pub left_out: BTreeMap<String, usize>,
}

/// Median absolute log errors of some rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// Rows.
    pub rows: usize,
    /// Of the cluster as it was.
    pub before: f64,
    /// Of the fitted cluster.
    pub after: f64,
}

/// The errors of one collective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ByCollective {
    /// The collective.
    pub collective: Collective,
    /// Its errors.
    #[serde(flatten)]
    pub errors: Errors,
}

impl Fit {
    /// Fits the cluster's factors to what was measured.
    pub fn new(cluster: &Cluster, measured: Samples, constants: &Constants) -> Result<Self> {
        let Samples { groups, left_out } = measured;
        let count: usize = groups.iter().map(|group| group.samples.len()).sum();
        ensure!(
            count >= FEWEST_SAMPLES,
            "{}, a fit needs at least {FEWEST_SAMPLES}{}",
            counted(count as u32, "usable row"),
            left_out.keys().next().map_or(String::new(), |why| format!("; left out: {why}"))
        );
        let mut fitted = cluster.clone();
        fitted.calibration = calibrate_all(cluster.calibration, &groups, constants);
        let logs = [cluster, &fitted].map(|cluster| {
            let of = |group: &Group| {
                let errors = group.errors(cluster.calibration, constants);
                let collectives = group.samples.iter().map(|sample| sample.call.collective);
                collectives.zip(errors).map(|(collective, log)| (collective, log.abs())).collect::<Vec<_>>()
            };
            groups.iter().flat_map(of).collect::<Vec<_>>()
        });
        let collectives = Collective::TUNED.into_iter().filter_map(|collective| {
            Some(ByCollective { collective, errors: errors(&logs, |c| c == collective)? })
        });
        let collectives = collectives.collect();
        let overall = errors(&logs, |_| true).expect("there are samples");
        Ok(Fit { cluster: fitted, overall, collectives, left_out })
    }
}

/// What was measured, as NCCL ran it.
#[derive(Debug)]
pub struct Samples {
    /// By communicator.
    pub groups: Vec<Group>,
    /// Rows that say nothing, by reason.
    pub left_out: BTreeMap<String, usize>,
}

impl Samples {
    /// The rows of one communicator.
    pub fn of_rows(cluster: &Cluster, communicator: Communicator, rows: &[Row]) -> Self {
        let (samples, left_out) = samples(&communicator, rows);
        let (cluster, clock) = (cluster.clone(), Clock::First);
        Samples { groups: vec![Group { cluster, communicator, samples, clock }], left_out }
    }
}

/// What NCCL ran in each row, and why some rows say nothing.
fn samples(communicator: &Communicator, rows: &[Row]) -> (Vec<Sample>, BTreeMap<String, usize>) {
    let (mut samples, mut left_out) = (Vec::new(), BTreeMap::new());
    for row in rows {
        let why = if !Collective::TUNED.contains(&row.collective) {
            format!("NCCL does not tune {}", row.collective)
        } else if let Some(sample) = sample(communicator, row) {
            samples.push(sample);
            continue;
        } else {
            format!("NCCL has no {} for {} on these nodes", forced(row), row.collective)
        };
        *left_out.entry(why).or_default() += 1;
    }
    (samples, left_out)
}

/// What a row forced.
fn forced(row: &Row) -> String {
    let (algorithm, protocol) = row.pair;
    let words = [algorithm.map(|a| a.name()), protocol.map(|p| p.name())];
    words.into_iter().flatten().collect::<Vec<_>>().join("/")
}

/// The errors before and after over the rows of some collectives; nothing without a row.
fn errors(logs: &[Vec<(Collective, f64)>; 2], of: impl Fn(Collective) -> bool) -> Option<Errors> {
    let [before, after] = logs
        .each_ref()
        .map(|logs| logs.iter().filter(|(c, _)| of(*c)).map(|(_, log)| *log).collect::<Vec<_>>());
    Some(Errors { rows: before.len(), before: median(before)?, after: median(after)? })
}
