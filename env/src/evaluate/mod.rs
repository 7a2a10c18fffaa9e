//! Judging tuners: any set of them on the same calls in the same worlds; on cells with the same luck too.
//!
//! Whoever answers "which knobs for this call" is a `dyn Tuner` here; nothing knows how an answer comes
//! about. What a good answer is, is defined once (`docs/evaluation.md`): true times, against NCCL's own
//! choice and against the best there is.

mod calls;
mod cells;
mod entrant;
mod gathered;
mod jobs;
mod judge;
mod machines;
mod report;
mod summary;
pub mod tiers;

use std::sync::Arc;

use crate::cluster::ClusterError;
use crate::gym::{EnvError, seed_of};
use crate::job::Shown;
use crate::model::ConstantsFile;
use crate::schedules::Schedules;
use crate::sim_env::SimEnv;
use crate::swept::Swept;
use crate::threads::try_each;
use crate::world::World;
pub use entrant::{Entrant, Make, Player};
use gathered::Gathered;
use tiers::EqualTables;

#[cfg(test)]
mod tests;
pub use machines::{HELD_OUT, Machine, NODES, TESTBEDS};
pub use report::{
    CellFigures, CellReport, Chosen, Figures, Kind, MARKS, Paths, Place, Point, Report, TierReport,
    TunerReport,
};

/// What is evaluated on.
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// The seed of everything random.
    pub seed: u64,
    /// Independent repetitions.
    pub seeds: u32,
    /// Worlds of each.
    pub worlds: u32,
    /// Threads to work on; they change nothing but the time.
    pub threads: usize,
    /// Constants of the model.
    pub constants: &'a ConstantsFile,
    /// Who makes schedules for the runtime that machines have; none where they have stock NCCL. For cells; jobs
    /// say themselves.
    pub schedules: Option<&'a dyn Schedules>,
}

impl Evaluation<'_> {
    /// Steps that are reported, on this many machines; jobs count as one.
    pub fn steps(&self, machines: usize) -> u64 {
        machines as u64 * u64::from(self.seeds) * u64::from(self.worlds)
    }

    /// Judges entrants on every cell of these machines. `step` hears of each world on each machine, and its
    /// error ends the work.
    pub fn cells<E: Send + From<ClusterError>>(
        &self,
        machines: &[Machine],
        sizes: &[u64],
        entrants: &[Entrant],
        step: impl Fn() -> Result<(), E> + Sync,
    ) -> Result<Report, E> {
        self.gather(machines, sizes, &self.kept_worlds(), entrants, step).map(|(report, _)| report)
    }

    /// Judges entrants on machines that NCCL cannot tell apart, and what the first of them makes of the tiers.
    pub fn equal_tables<E: Send + From<ClusterError>>(
        &self,
        sizes: &[u64],
        entrants: &[Entrant],
        step: impl Fn() -> Result<(), E> + Sync,
    ) -> Result<(Report, EqualTables), E> {
        // Each world as a seed of its own, so that what was done in it can be told from what was done in others.
        let worlds: Vec<_> = self.kept_worlds().into_iter().flatten().map(|world| vec![world]).collect();
        let (report, gathered) = self.gather(&EqualTables::machines()?, sizes, &worlds, entrants, step)?;
        let compared = EqualTables::new(&gathered, &report);
        Ok((report, compared))
    }

    fn gather<E: Send + From<ClusterError>>(
        &self,
        machines: &[Machine],
        sizes: &[u64],
        worlds: &[Vec<World>],
        entrants: &[Entrant],
        step: impl Fn() -> Result<(), E> + Sync,
    ) -> Result<(Report, Vec<Gathered>), E> {
        let gathered = try_each(self.threads, machines, |machine| {
            let seed = |seed| seed_of(self.seed, seed);
            let runtime = (self.schedules, self.constants);
            cells::judge(runtime, machine, sizes, worlds, entrants, seed, &step)?
        })?;
        let per_machine = u64::from(self.seeds) * u64::from(self.worlds) * cells::EPISODES as u64;
        let report = self.report("cells", entrants, &gathered, machines.len() as u64 * per_machine);
        Ok((report, gathered))
    }

    /// Judges entrants on jobs of this environment, as many as there are worlds, at these tiers. `step` hears
    /// of each job, and its error ends the work. `bayes` has no meaning here and is refused.
    pub fn jobs<E: Send + From<EnvError>>(
        &self,
        workload: &str,
        make: impl Fn() -> SimEnv + Sync,
        tiers: &[u8],
        entrants: &[Entrant],
        step: impl Fn() -> Result<(), E> + Sync,
    ) -> Result<Report, E> {
        let seeds = self.seeds as usize;
        let pieces: Vec<usize> = (0..seeds * self.worlds as usize).collect();
        let parts = try_each(self.threads, &pieces, |&piece| {
            let at = piece / self.worlds as usize;
            // Jobs are drawn from this seed, and their worlds are kept ones whatever it is.
            let (job, tuner) = (seed_of(!self.seed, piece), seed_of(self.seed, at));
            let part = jobs::judge(&make, entrants, (at, seeds), job, tuner)?;
            step().map(|()| part)
        })?;
        let mut gathered = Gathered::join(parts);
        gathered.keep(|tier| tiers.contains(&tier));
        Ok(self.report(workload, entrants, &[gathered], pieces.len() as u64))
    }

    /// Judges entrants on every call of recorded sweeps, by the times that were measured there; as many jobs on each as
    /// there are worlds. Of the machine so much is told beside what NCCL tells. `step` hears of each job, and its error
    /// ends the work. `bayes` has no meaning here and is refused.
    pub fn sweeps<E: Send + From<EnvError>>(
        &self,
        workload: &str,
        sweeps: &[Arc<Swept>],
        shown: Shown,
        entrants: &[Entrant],
        step: impl Fn() -> Result<(), E> + Sync,
    ) -> Result<Report, E> {
        let constants = Arc::new(self.constants.clone());
        let seeds = self.seeds as usize;
        let of_sweep = seeds * self.worlds as usize;
        let pieces: Vec<usize> = (0..sweeps.len() * of_sweep).collect();
        let parts = try_each(self.threads, &pieces, |&piece| {
            let swept = &sweeps[piece / of_sweep];
            let make = || SimEnv::of_sweeps([Arc::clone(swept)], Some(shown), Arc::clone(&constants));
            let at = piece % of_sweep / self.worlds as usize;
            let (job, tuner) = (seed_of(!self.seed, piece), seed_of(self.seed, at));
            let part = jobs::judge(&make, entrants, (at, seeds), job, tuner)?;
            step().map(|()| part)
        })?;
        let report = self.report(workload, entrants, &[Gathered::join(parts)], pieces.len() as u64);
        Ok(Report { simulated: false, ..report })
    }

    /// The worlds of each seed; no training ever meets one of them.
    fn kept_worlds(&self) -> Vec<Vec<World>> {
        let world = |number| World::keep(self.constants, seed_of(self.seed, number));
        let count = self.worlds as usize;
        let of_seed = |seed: usize| (0..count).map(|at| world(seed * count + at)).collect();
        (0..self.seeds as usize).map(of_seed).collect()
    }

    fn report(&self, workload: &str, entrants: &[Entrant], gathered: &[Gathered], episodes: u64) -> Report {
        let tuner =
            |(at, entrant): (usize, &Entrant)| summary::tuner(&entrant.name, entrant.kind, at, gathered);
        Report {
            simulated: true,
            workload: workload.to_owned(),
            seeds: self.seeds,
            worlds: self.worlds,
            episodes,
            tuners: entrants.iter().enumerate().map(tuner).collect(),
            cells: summary::cells(gathered),
        }
    }
}
