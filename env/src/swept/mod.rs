//! A recorded sweep as a machine: what every launch took there, and how much that varied.
//!
//! Requests that NCCL caps to the same launch are measurements of the same thing, and so is the line of NCCL's own
//! choice. They are put together here, so that no setting looks good by the luck of one line. This knows NCCL's side and
//! the file; no model of times, no world, and nobody who chooses.

mod cell;
mod error;
mod judge;
mod left_out;
mod machine;
mod release;
mod times;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dynamiccl_spec::{Collective, CostTable, Mask, Role};

use crate::cluster::Cluster;
use crate::job::{Job, Shown, Source};
use crate::known::KnownTimes;
use crate::measure::sweep::{self, Sweep, SweepRow};
use crate::measure::{Circumstances, Clock};
use crate::nccl::Realised;
use crate::workload::Planned;
use cell::Cell;
pub(crate) use cell::Launch;
pub use error::SweptError;
pub use judge::{CellJudgement, Judgement, LEAST, judge};
pub use left_out::LeftOut;
pub(crate) use machine::of as machine_of;
pub use machine::{Machine, machine};
pub use release::{Release, VERSION};
pub(crate) use times::Times;

/// A call, NCCL's table for it, and the launches that were timed.
pub(crate) type KnownCall = ((Collective, u64), CostTable, Vec<(Launch, Times)>);

/// The size half way between two, as ratios go, in whole floats.
fn half_way(smaller: u64, larger: u64) -> u64 {
    (smaller as f64 * larger as f64).sqrt() as u64 / 4 * 4
}

/// Sweeps in groups of which all are alike: one that does not say all may be like two that differ.
fn together(sweeps: &[Arc<Swept>], are_alike: impl Fn(&Swept, &Swept) -> bool) -> Vec<Vec<&Arc<Swept>>> {
    let mut groups: Vec<Vec<&Arc<Swept>>> = Vec::new();
    for swept in sweeps {
        match groups.iter_mut().find(|group| group.iter().all(|known| are_alike(known, swept))) {
            Some(group) => group.push(swept),
            None => groups.push(vec![swept]),
        }
    }
    groups
}

/// A recorded sweep.
#[derive(Debug, Clone)]
pub struct Swept {
    /// The name of its file, without folder and ending.
    pub name: String,
    /// What its ranks ran on; the cluster is called like the sweep.
    pub machine: Machine,
    /// Threads of a block that all ranks were started with; none where these were NCCL's own.
    pub threads: Option<u32>,
    /// Whose clock counted.
    clock: Clock,
    /// What else was the case.
    circumstances: Circumstances,
    cells: BTreeMap<(Collective, u64), Cell>,
    left_out: LeftOut,
}

impl Swept {
    /// The sweeps of a file, or of every `.csv` file of a folder. Ranks share a GPU, each as a host of its own, unless a
    /// cluster is given.
    pub fn read(path: &Path, cluster: Option<&Cluster>) -> Result<Vec<Arc<Swept>>, SweptError> {
        let sweeps = sweep::read(path)?;
        sweeps.iter().map(|sweep| Swept::new(sweep, cluster).map(Arc::new)).collect()
    }

    /// What a sweep says about launches.
    pub fn new(sweep: &Sweep, cluster: Option<&Cluster>) -> Result<Self, SweptError> {
        let name = sweep.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let machine = machine::of(sweep, cluster)?;
        let communicator = machine.communicator()?;
        let mut rows: BTreeMap<(Collective, u64), Vec<SweepRow>> = BTreeMap::new();
        for row in &sweep.rows {
            rows.entry((row.collective, row.bytes)).or_default().push(*row);
        }
        let (mut cells, mut left_out) = (BTreeMap::new(), LeftOut::default());
        for (call, rows) in rows {
            match Cell::new(&communicator, call, &rows) {
                Some((cell, lines)) => {
                    left_out = left_out + LeftOut { lines, chunks: cell.without_choice(), calls: 0 };
                    cells.insert(call, cell);
                }
                None => left_out.calls += 1,
            }
        }
        if cells.is_empty() {
            return Err(SweptError::Nothing { file: sweep.file.clone() });
        }
        let cluster = Arc::new(Cluster { name: name.clone(), ..Cluster::clone(&machine.cluster) });
        let (threads, clock, machine) = (sweep.threads, sweep.about.clock, Machine { cluster, ..machine });
        let circumstances = sweep.about.circumstances.clone();
        Ok(Swept { name, machine, threads, clock, circumstances, cells, left_out })
    }

    /// What is known of launches, as a sweep: calls with NCCL's own table and the times of some launches.
    pub(crate) fn of_launches(
        name: &str,
        machine: &Machine,
        known: Vec<KnownCall>,
    ) -> Result<Self, SweptError> {
        let communicator = machine.communicator()?;
        let cell =
            |(call, table, launches)| Some((call, Cell::of_launches(&communicator, call, table, launches)?));
        let cells: BTreeMap<_, _> = known.into_iter().filter_map(cell).collect();
        if cells.is_empty() {
            return Err(SweptError::Nothing { file: name.into() });
        }
        let (name, machine, left_out) = (name.to_owned(), machine.clone(), LeftOut::default());
        let (clock, circumstances) = (Clock::Slowest, Circumstances::default());
        Ok(Swept { name, machine, threads: None, clock, circumstances, cells, left_out })
    }

    /// Sweeps with those of the same ranks, link, release of NCCL, threads, clock and circumstances put together: what
    /// several starts agree on is surer than what one says, and what they do not is less sure.
    pub fn joined(sweeps: &[Arc<Swept>]) -> Result<Vec<Arc<Swept>>, SweptError> {
        let alike = together(sweeps, |one, other| one.threads == other.threads && one.is_comparable(other));
        alike.iter().map(|several| Swept::join(several)).collect()
    }

    /// Sweeps that are of the same thing, whatever threads their ranks were started with.
    pub fn comparable(sweeps: &[Arc<Swept>]) -> Vec<Vec<&Arc<Swept>>> {
        together(sweeps, Swept::is_comparable)
    }

    fn join(several: &[&Arc<Swept>]) -> Result<Arc<Swept>, SweptError> {
        let first = several[0];
        let communicator = first.machine.communicator()?;
        let mut calls: BTreeMap<(Collective, u64), Vec<&Cell>> = BTreeMap::new();
        for (call, cell) in several.iter().flat_map(|swept| &swept.cells) {
            calls.entry(*call).or_default().push(cell);
        }
        let cell = |(call, cells): (_, Vec<&Cell>)| Some((call, Cell::joined(&communicator, call, &cells)?));
        let cells: BTreeMap<_, _> = calls.into_iter().filter_map(cell).collect();
        let name = several.iter().map(|swept| swept.name.as_str()).collect::<Vec<_>>().join("+");
        let left_out = several.iter().fold(LeftOut::default(), |sum, swept| sum + swept.left_out);
        let left_out = LeftOut { chunks: cells.values().map(Cell::without_choice).sum(), ..left_out };
        let said = several.iter().map(|swept| &swept.circumstances);
        let circumstances = said.fold(first.circumstances.clone(), Circumstances::or);
        Ok(Arc::new(Swept { name, cells, left_out, circumstances, ..Swept::clone(first) }))
    }

    /// Whether another sweep is of the same thing, whatever threads its ranks were started with.
    fn is_comparable(&self, other: &Swept) -> bool {
        self.clock == other.clock
            && self.circumstances.agree(&other.circumstances)
            && self.machine.is_like(&other.machine)
    }

    /// The same sweep as somebody sees it who changes NCCL's choice only for what is surely faster: every launch off by so
    /// many of its doubts, against change.
    pub fn cautious(&self, doubts: f64) -> Self {
        let seen = self.cells.iter().map(|(call, cell)| (*call, cell.cautious(doubts)));
        Swept { cells: seen.collect(), ..self.clone() }
    }

    /// The same sweep with calls of sizes between those that were measured, whose times lie half way.
    pub fn with_between(&self) -> Result<Self, SweptError> {
        let communicator = self.machine.communicator()?;
        let mut cells = self.cells.clone();
        // A map goes from size to size of one collective, then to the next one.
        for ((smaller, a), (larger, b)) in self.cells.iter().zip(self.cells.iter().skip(1)) {
            let (collective, bytes) = (smaller.0, half_way(smaller.1, larger.1));
            if collective != larger.0 || bytes <= smaller.1 {
                continue;
            }
            let between = Cell::between(&communicator, collective, bytes, [(smaller.1, a), (larger.1, b)]);
            cells.extend(between.map(|cell| ((collective, bytes), cell)));
        }
        Ok(Swept { cells, ..self.clone() })
    }

    /// Ranks.
    pub fn ranks(&self) -> u32 {
        self.machine.ranks()
    }

    /// µs of the fastest launch of every call.
    pub fn fastest(&self) -> impl Iterator<Item = ((Collective, u64), f64)> {
        self.cells.iter().map(|(call, cell)| (*call, cell.fastest()))
    }

    /// Whether some of its calls were timed until a root had sent, and not until all ranks were done.
    pub fn stops_at_roots(&self) -> bool {
        self.cells.keys().any(|(collective, _)| self.clock.stops_at_root(*collective))
    }

    /// Cells: collective and size.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are none; there is always one.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// What of its file is no use here.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// What its user must know, one line each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.left_out.notes();
        notes.extend(self.machine.release.note());
        notes.extend(self.circumstances.note());
        notes.iter().map(|note| format!("{}: {note}", self.name)).collect()
    }

    /// The job that made its calls, of which a policy is told this much.
    pub fn job(self: &Arc<Self>, shown: Shown) -> Job {
        self.machine.job(Source::Sweep(Arc::clone(self)), shown)
    }

    /// How far ln of the time of a launch may be off by luck; none where it was not measured.
    pub(crate) fn doubt(&self, collective: Collective, bytes: u64, realised: &Realised) -> Option<f64> {
        let cell = self.cells.get(&(collective, bytes))?;
        cell.times(realised).map(|times| cell.doubt(times))
    }

    /// One call of every cell.
    pub(crate) fn calls(&self) -> Vec<Planned> {
        let call =
            |&(collective, bytes): &(Collective, u64)| Planned::alone(collective, bytes, Role::Unknown);
        self.cells.keys().map(call).collect()
    }
}

impl KnownTimes for Swept {
    fn narrow(&self, collective: Collective, bytes: u64, mask: Mask) -> Mask {
        self.cells.get(&(collective, bytes)).map_or(Mask::FIRST, |cell| cell.narrow(mask))
    }

    /// What the mean of the logarithms of its times says, so that a launch that is slow now and then is slower than one
    /// that never is.
    fn micros(&self, collective: Collective, bytes: u64, realised: &Realised) -> Option<f64> {
        self.cells.get(&(collective, bytes))?.times(realised).map(Times::micros)
    }

    fn draw(&self, collective: Collective, bytes: u64, realised: &Realised, at: f64) -> Option<f64> {
        self.cells.get(&(collective, bytes))?.times(realised).map(|times| times.draw(at))
    }
}
