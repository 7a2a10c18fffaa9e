//! Teaching the model one cluster: six factors at most, fitted to measured times.
//!
//! The factors are those that differ between machines of one kind: how long a launch takes, how slow
//! a hop and how fast a link really is, inside and between nodes, and what a channel moves. Whatever
//! the measurements do not speak about stays as the model knows it.

pub mod sweep;

use dynamiccl_spec::{ChunkChoice, Pair};

use crate::cluster::{Calibration, Cluster};
use crate::least_squares::{Options, minimise};
use crate::measure::{Clock, Row};
use crate::model::{Call, Constants, Fabric};
use crate::nccl::Communicator;

/// A measured call as NCCL ran it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The call.
    pub call: Call,
    /// NCCL's own prediction for it, µs.
    pub predicted_us: f64,
    /// What was measured, µs.
    pub measured_us: f64,
}

/// Fewest samples to write a cluster file from. Factors that so few leave open stay at 1.
pub const FEWEST_SAMPLES: usize = 3;

/// Works out what NCCL ran for a measured row: its own pick among what the source did not force.
/// Nothing where that is unavailable on this communicator.
pub fn sample(communicator: &Communicator, row: &Row) -> Option<Sample> {
    sample_in(communicator, row, ChunkChoice::Own)
}

/// The same of a row that asked for a chunk size.
fn sample_in(communicator: &Communicator, row: &Row, chunk: ChunkChoice) -> Option<Sample> {
    let table = communicator.cost_table(row.collective, row.bytes, 1);
    let (algorithm, protocol) = row.pair;
    let allowed = |pair: &Pair| {
        algorithm.is_none_or(|a| a == pair.algorithm) && protocol.is_none_or(|p| p == pair.protocol)
    };
    let (pair, predicted) =
        table.available().filter(|(pair, _)| allowed(pair)).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let call = Call::forced(communicator, row.collective, row.bytes, pair, row.channels, chunk);
    Some(Sample { call, predicted_us: f64::from(predicted), measured_us: row.time_us })
}

/// What was measured on one communicator of a cluster.
#[derive(Debug, Clone)]
pub struct Group {
    /// The cluster, as its ranks were linked then.
    pub cluster: Cluster,
    /// The communicator.
    pub communicator: Communicator,
    /// What was measured on it.
    pub samples: Vec<Sample>,
    /// Whose clock counted.
    pub clock: Clock,
}

impl Group {
    /// Log of modelled over measured time of every sample, with other factors than the cluster has.
    pub fn errors(&self, calibration: Calibration, constants: &Constants) -> Vec<f64> {
        let cluster = Cluster { calibration, ..self.cluster.clone() };
        let fabric = fabric(&cluster, &self.communicator, &constants.by(self.clock));
        self.samples.iter().map(|s| (fabric.time(&s.call) / s.measured_us).ln()).collect()
    }
}

/// The cluster's factors that bring the model closest to the samples of this communicator.
pub fn calibrate(
    cluster: &Cluster,
    communicator: &Communicator,
    samples: &[Sample],
    constants: &Constants,
) -> Calibration {
    let (cluster, communicator, samples) = (cluster.clone(), communicator.clone(), samples.to_vec());
    calibrate_all(
        cluster.calibration,
        &[Group { cluster, communicator, samples, clock: Clock::First }],
        constants,
    )
}

/// The factors that bring the model closest to all groups; `base` are those of the cluster before.
pub fn calibrate_all(base: Calibration, groups: &[Group], constants: &Constants) -> Calibration {
    let options = Options { outlier: 0.2, hold: 0.15, reach: 2.5, iterations: 40 };
    let start = [0.0; Calibration::LEN];
    let fitted = minimise(&start, options, |factors| {
        let trial = Calibration::from_logs(base, factors);
        groups.iter().flat_map(|group| group.errors(trial, constants)).collect()
    });
    Calibration::from_logs(base, &fitted)
}

/// The model of a cluster's communicator.
pub fn fabric(cluster: &Cluster, communicator: &Communicator, constants: &Constants) -> Fabric {
    let heads = communicator.nvls_heads();
    Fabric::new(cluster, communicator.nodes(), communicator.ranks_per_node(), heads, constants)
}

impl Calibration {
    /// How many factors there are.
    const LEN: usize = 6;

    fn from_logs(base: Calibration, logs: &[f64]) -> Self {
        let [launch, intra_latency, intra_bandwidth, inter_latency, inter_bandwidth, channel_rate] =
            std::array::from_fn(|i| logs.get(i).copied().unwrap_or(0.0).exp());
        Calibration {
            launch: base.launch * launch,
            intra_latency: base.intra_latency * intra_latency,
            intra_bandwidth: base.intra_bandwidth * intra_bandwidth,
            inter_latency: base.inter_latency * inter_latency,
            inter_bandwidth: base.inter_bandwidth * inter_bandwidth,
            channel_rate: base.channel_rate * channel_rate,
        }
    }
}
