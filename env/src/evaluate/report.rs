//! What an evaluation found: figures per tuner and tier, and everything that a table, a file or a page shows.
//!
//! It holds numbers and names; how they are laid out is the business of whoever prints them.

use std::collections::BTreeMap;

use dynamiccl_spec::{Collective, Knobs};
use serde::Serialize;

use crate::nccl::Realised;

/// Calls of an episode after which the time since its beginning is looked at.
pub const MARKS: [u32; 3] = [50, 200, 1000];

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Whether true times are the simulator's; where not, all of them come from recorded measurements.
    pub simulated: bool,
    /// What was called: `cells`, or the name of a curriculum, trace or sweep.
    pub workload: String,
    /// Independent repetitions; `speedup_std` is over them.
    pub seeds: u32,
    /// Worlds of each of them.
    pub worlds: u32,
    /// Episodes that each tuner has gone through.
    pub episodes: u64,
    /// The tuners, in the order in which they were named.
    pub tuners: Vec<TunerReport>,
    /// Every cell with what each tuner did there. Too much for a document; for CSV files and pages.
    #[serde(skip)]
    pub cells: Vec<CellReport>,
}

/// One tuner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TunerReport {
    /// Its name.
    pub name: String,
    /// What kind of player it is.
    pub kind: Kind,
    /// By tier, without the clusters that are held out.
    pub tiers: Vec<TierReport>,
    /// The clusters that no curriculum contains; none where none of them was asked for.
    pub held_out: Option<Figures>,
    /// All tiers together; none where only held-out clusters were asked for.
    pub overall: Option<Figures>,
    /// By tier, collective and size, without the clusters that are held out.
    pub curves: Vec<Point>,
    /// The same of the clusters that are held out; for pages.
    #[serde(skip)]
    pub held_out_curves: Vec<Point>,
}

/// What kind of player a tuner is: a name may be a file's, and a file may be called anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Chooses by what it is told.
    Tuner,
    /// NCCL itself.
    Nccl,
    /// Throws dice.
    Random,
    /// Knows every true time.
    Oracle,
    /// Knows the best fixed knobs.
    Bayes,
}

/// The figures of one tier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierReport {
    /// The tier.
    pub tier: u8,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// How good a tuner is over some cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Cells: collective × size × cluster × nodes.
    pub cells: usize,
    /// NCCL's own time over the tuner's, geometric mean over the cells.
    pub speedup: f64,
    /// Standard deviation of that over the seeds, on the cells that come up in all of them; none with one seed
    /// or without such a cell.
    pub speedup_std: Option<f64>,
    /// The tuner's time over the oracle's, less 1, with feedback.
    pub regret: f64,
    /// The same for what the tuner decides without feedback.
    pub regret_hold: f64,
    /// The smallest speed-up of a cell.
    pub worst_cell: f64,
    /// Where that is.
    pub worst_at: Place,
    /// Share of calls that were left to NCCL, by the tuner or because its knobs were not legal.
    pub fallback_share: f64,
    /// Different knobs among all calls; knobs that NCCL runs alike count once.
    pub distinct_knobs: usize,
    /// Share of calls whose measured time was within one spread of the tuner's estimate; none where the tuner
    /// has no estimates.
    pub coverage: Option<f64>,
    /// Time over NCCL's since an episode began, after so many calls, trials included; geometric mean over
    /// the episodes that reach the last of these marks. Without the marks that no episode reached.
    pub cumulative: BTreeMap<u32, f64>,
    /// How many episodes those are.
    pub cumulative_episodes: usize,
    /// How it chose between NCCL and synthesised schedules.
    pub paths: Paths,
}

/// How a tuner chose between NCCL and synthesised schedules.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Paths {
    /// Cells in which a schedule could run; of jobs, those in which one ran or was the fastest.
    pub cells: usize,
    /// Share of them in which the tuner's usual path is the oracle's; none without such cells.
    pub agreement: Option<f64>,
    /// Calls for which the tuner wanted a schedule where none can run.
    pub unrunnable: u64,
}

/// A cell's place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The cluster's name.
    pub cluster: String,
    /// Nodes of the communicator.
    pub nodes: u32,
    /// The collective.
    pub collective: Collective,
    /// Its size, as NCCL counts it.
    pub bytes: u64,
}

/// Speed-up and regret at one tier, collective and size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The tier.
    pub tier: u8,
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub bytes: u64,
    /// Geometric mean over the cells.
    pub speedup: f64,
    /// With feedback.
    pub regret: f64,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellReport {
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
    /// Its tier.
    pub tier: u8,
    /// Whether its cluster is held out.
    pub held_out: bool,
    /// What NCCL does by itself.
    pub own: Chosen,
    /// What was fastest most often.
    pub best: Chosen,
    /// What each tuner did, in the order of the tuners; none where it made no judged call there.
    pub tuners: Vec<Option<CellFigures>>,
}

/// What a tuner did in a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellFigures {
    /// NCCL's own time over the tuner's, geometric mean over worlds and calls.
    pub speedup: f64,
    /// The tuner's time over the oracle's, less 1.
    pub regret: f64,
    /// The same without feedback; none where it was not asked there.
    pub regret_hold: Option<f64>,
    /// What it chose most often.
    pub chosen: Chosen,
    /// The same without feedback; none where it was not asked there.
    pub held: Option<Chosen>,
}

/// Knobs that were chosen, and what NCCL makes of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Chosen {
    /// The knobs.
    pub knobs: Knobs,
    /// As NCCL runs them.
    #[serde(skip)]
    pub realised: Realised,
    /// Share of the judged calls that had them.
    pub share: f64,
}

impl TunerReport {
    /// The figures that a verdict is about: all tiers, or what is held out where nothing else was asked for.
    pub fn verdict(&self) -> Option<&Figures> {
        self.overall.as_ref().or(self.held_out.as_ref())
    }
}
