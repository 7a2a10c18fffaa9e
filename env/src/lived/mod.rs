//! Real ranks as a machine: what they take is measured while a policy decides.
//!
//! A decision is timed in turn with NCCL's own choice, and what was measured is kept, so that no time is the luck of one
//! call. Exploring is bounded: what NCCL has ruled out is never called, what it predicts to be far slower is not offered,
//! and what was seen to be slower than the bound is not called again. Who has set a time gets no call after it. This knows NCCL's side and somebody who can make
//! calls; no process, no GPU, and nobody who chooses.

mod caller;
mod known;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dynamiccl_spec::{ChannelChoice, Choice, Collective, CostTable, Head, Knobs, Mask, Pair, Role};
use thiserror::Error;

pub use caller::{Caller, InTurn};
use known::{Call, Known};

use crate::cluster::ClusterError;
use crate::gym::EnvError;
use crate::job::{Job, Shown, Source};
use crate::known::KnownTimes;
use crate::nccl::Realised;
use crate::swept::{Launch, Machine, Swept, SweptError, Times};
use crate::workload::Planned;

/// NCCL's predictions may be off by this before a pair counts as predicted to be slow.
const OFF: f64 = 1.5;

/// How far trying goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// What is known to take more than so many times as long as NCCL's own choice is not called again.
    pub slowdown: f64,
    /// Times that one launch is timed at most; then it is known.
    pub most: usize,
    /// Doubts of every measured time that a gain must exceed.
    pub doubts: f64,
    /// How long calls are made, from the first on; none for as long as anybody asks.
    pub lasts: Option<Duration>,
}

/// Why ranks are no machine to learn from.
#[derive(Debug, Error)]
pub enum LivedError {
    /// The cluster cannot be described.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A call failed.
    #[error("{0}")]
    Call(String),
    /// There is nothing to choose.
    #[error("NCCL tunes none of these calls; name others with --collectives and --sizes")]
    Nothing,
    /// There is no time to choose anything.
    #[error(
        "the time was over when NCCL's own choice was timed of {timed} of {calls} calls; give more --seconds, or fewer \
         calls with --collectives and --sizes"
    )]
    TimeIsOver {
        /// Calls that were timed.
        timed: usize,
        /// All of them.
        calls: usize,
    },
}

/// Real ranks, and what is known of them.
#[derive(Debug)]
pub struct Lived {
    name: String,
    /// What they run on.
    pub machine: Machine,
    limits: Limits,
    begun: Instant,
    cells: BTreeMap<Call, Cell>,
    known: Mutex<Known>,
}

/// What does not change about a call.
#[derive(Debug)]
struct Cell {
    table: CostTable,
    own: Launch,
    /// The launches of each pair.
    pairs: Vec<(Pair, Vec<Launch>)>,
}

impl Limits {
    /// Whether the time is over that began then.
    fn are_over(&self, begun: Instant) -> bool {
        self.lasts.is_some_and(|lasts| begun.elapsed() >= lasts)
    }
}

impl Lived {
    /// Asks NCCL about every call, and times its own choice.
    pub fn open(
        machine: Machine,
        calls: &[(Collective, u64)],
        mut caller: Box<dyn Caller>,
        limits: Limits,
    ) -> Result<Self, LivedError> {
        let (begun, communicator) = (Instant::now(), machine.communicator()?);
        let (mut cells, mut owns) = (BTreeMap::new(), Vec::new());
        for (timed, &(collective, bytes)) in calls.iter().enumerate() {
            if limits.are_over(begun) {
                return Err(LivedError::TimeIsOver { timed, calls: calls.len() });
            }
            let table = caller.look(collective, bytes).map_err(LivedError::Call)?;
            let realise = |knobs: &Knobs| communicator.realise(collective, bytes, &table, knobs);
            let Some(own) = realise(&Knobs::OWN).as_ref().map(Launch::of) else { continue };
            let of = |pair| {
                let all = ChannelChoice::all().filter_map(|choice| realise(&Knobs::with_pair(pair, choice)));
                (pair, all.map(|realised| Launch::of(&realised)).collect())
            };
            let pairs = table.mask().iter().map(of).collect();
            let timed = caller.time(collective, bytes, None).map_err(LivedError::Call)?;
            owns.extend(timed.map(|timed| ((collective, bytes), own, timed.own)));
            cells.insert((collective, bytes), Cell { table, own, pairs });
        }
        let mut known = Known { caller, times: BTreeMap::new(), called: 0 };
        owns.iter().for_each(|(call, own, rounds)| known.add(*call, *own, rounds));
        cells.retain(|call, _| known.times.contains_key(call));
        if cells.is_empty() {
            return Err(LivedError::Nothing);
        }
        let name = format!("live_{}ranks", machine.ranks());
        Ok(Lived { name, machine, limits, begun, cells, known: Mutex::new(known) })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ranks.
    pub fn ranks(&self) -> u32 {
        self.machine.ranks()
    }

    /// Decisions that were timed so far.
    pub fn called(&self) -> u64 {
        self.known().called
    }

    /// Whether the time is over, so that no call is made any more.
    pub fn is_over(&self) -> bool {
        self.limits.are_over(self.begun)
    }

    /// The job that makes the calls, of which a policy is told this much.
    pub fn job(self: &Arc<Self>, shown: Shown) -> Job {
        self.machine.job(Source::Live(Arc::clone(self)), shown)
    }

    /// One call of every cell.
    pub(crate) fn calls(&self) -> Vec<Planned> {
        let call = |&(collective, bytes): &Call| Planned::alone(collective, bytes, Role::Unknown);
        self.cells.keys().map(call).collect()
    }

    /// What is known so far, as a sweep.
    pub fn swept(&self) -> Result<Swept, SweptError> {
        let known = self.known();
        let cells = self.cells.iter().filter_map(|(call, cell)| {
            let times = known.times.get(call)?.iter().map(|(launch, times)| (*launch, times.clone()));
            Some((*call, cell.table, times.collect()))
        });
        Swept::of_launches(&self.name, &self.machine, cells.collect())
    }

    /// Makes a call that was decided, unless it is known well enough or to be too slow.
    pub(crate) fn run(&self, call: Call, knobs: &Knobs, realised: &Realised) -> Result<(), EnvError> {
        let (Some(cell), launch) = (self.cells.get(&call), Launch::of(realised)) else { return Ok(()) };
        let Limits { most, slowdown, .. } = self.limits;
        // Several may have waited for the ranks until then.
        let mut known = self.known();
        if self.is_over() {
            return Err(EnvError::TimeIsOver);
        }
        let timed = known.of(&call, &launch).map_or(0, Times::lines);
        if timed >= most || known.is_slow(&call, &cell.own, &launch, slowdown) {
            return Ok(());
        }
        let other = (launch != cell.own).then_some((realised.pair, knobs.channels));
        let answer = known.caller.time(call.0, call.1, other).map_err(EnvError::Backend)?;
        known.called += 1;
        let refused = answer.is_none();
        let InTurn { own, other } = answer.unwrap_or_default();
        if known.of(&call, &cell.own).map_or(0, Times::lines) < most {
            known.add(call, cell.own, &own);
        }
        if refused {
            // NCCL would do what it does by itself.
            let own = known.of(&call, &cell.own).cloned().unwrap_or_default();
            known.times.entry(call).or_default().insert(launch, own);
        } else if launch != cell.own {
            known.add(call, launch, &other);
        }
        Ok(())
    }

    /// Whether a pair is not to be offered: NCCL predicts it to be far slower, or all of it was seen to be.
    fn is_out(
        &self,
        known: &Known,
        call: &Call,
        cell: &Cell,
        (pair, launches): &(Pair, Vec<Launch>),
    ) -> bool {
        let slowdown = self.limits.slowdown;
        let predicted = cell.table.get(*pair).zip(cell.table.get(cell.own.pair));
        let unseen = launches.iter().all(|launch| known.of(call, launch).is_none());
        let slow = predicted.is_some_and(|(of, own)| f64::from(of) > OFF * slowdown * f64::from(own));
        let seen = launches.iter().all(|launch| known.is_slow(call, &cell.own, launch, slowdown));
        *pair != cell.own.pair && (unseen && slow || seen)
    }

    /// The times of a launch as somebody cautious sees them.
    fn cautious(&self, call: Call, realised: &Realised) -> Option<Times> {
        let (cell, launch) = (self.cells.get(&call)?, Launch::of(realised));
        let known = self.known();
        let times = known.of(&call, &launch)?;
        let sign = if launch == cell.own { -1.0 } else { 1.0 };
        Some(times.longer(sign * self.limits.doubts * times.doubt()))
    }
}

impl KnownTimes for Lived {
    fn table(&self, collective: Collective, bytes: u64) -> Option<CostTable> {
        self.cells.get(&(collective, bytes)).map(|cell| cell.table)
    }

    fn narrow(&self, collective: Collective, bytes: u64, mask: Mask) -> Mask {
        let call = (collective, bytes);
        let Some(cell) = self.cells.get(&call) else { return Mask::FIRST };
        let known = self.known();
        let within = cell.pairs.iter().filter(|of| mask.pairs().contains(of.0));
        let left = within.filter(|of| !self.is_out(&known, &call, cell, of));
        let pairs = left.fold(dynamiccl_spec::PairMask::NONE, |pairs, (pair, _)| pairs.with(*pair));
        let Choice(own) = Choice::default();
        [Head::Path, Head::Chunk, Head::Threads]
            .into_iter()
            .fold(mask.with_pairs(pairs), |mask, head| mask.only(head, usize::from(own[head as usize])))
    }

    fn micros(&self, collective: Collective, bytes: u64, realised: &Realised) -> Option<f64> {
        self.cautious((collective, bytes), realised).map(|times| times.micros())
    }

    fn draw(&self, collective: Collective, bytes: u64, realised: &Realised, at: f64) -> Option<f64> {
        self.known().of(&(collective, bytes), &Launch::of(realised)).map(|times| times.draw(at))
    }
}

#[cfg(test)]
mod tests;
