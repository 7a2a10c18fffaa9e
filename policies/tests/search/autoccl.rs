//! Coordinate descent on the two testbeds of AutoCCL, online: each call of a job is part of a trial.

use dynamiccl_policies::roster;
use dynamiccl_spec::Collective;
use dynamiccl_spec::math::{exp, ln};

use crate::online::Bench;

/// AutoCCL's two testbeds.
pub const TESTBEDS: [(&str, u32); 2] = [("a40_8_nvlink", 2), ("a40_8_pcie", 4)];
/// The collectives that it tunes.
pub const COLLECTIVES: [Collective; 3] =
    [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce];
/// Calls of a trial.
const CALLS: usize = 3;
/// Calls of a job; the search is over long before.
const JOB: usize = 600;

/// One collective of one size in one world.
pub struct Cell {
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub bytes: u64,
    /// True time of NCCL's own choice over that of the choice in the end.
    pub gain: f64,
    /// True time of the best of all settings over that of the choice in the end.
    pub quality: f64,
    /// Trials that were made, NCCL's own among them.
    pub trials: usize,
}

/// Collectives × sizes from 4 KiB to 256 MiB × worlds.
pub fn coordinate_cells(cluster: &str, nodes: u32, worlds: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for world in 0..worlds {
        let bench = Bench::new(cluster, nodes, world);
        for collective in COLLECTIVES {
            for octave in (12..=28).step_by(2) {
                let bytes = 1 << octave;
                let mut tuner = roster::by_name("coordinate", world).unwrap();
                let calls = bench.calls(tuner.as_mut(), (collective, bytes), JOB, true);
                let tried = calls.decisions.iter().filter(|decision| decision.exploratory).count();
                let end = calls.micros[JOB - 1];
                let (gain, quality) = (calls.own / end, bench.best((collective, bytes)) / end);
                cells.push(Cell { collective, bytes, gain, quality, trials: 1 + tried.div_ceil(CALLS) });
            }
        }
    }
    cells
}

/// Geometric mean.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0.0), |(sum, n), value| (sum + ln(value), n + 1.0));
    exp(sum / count)
}
