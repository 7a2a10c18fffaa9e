//! A policy against NCCL's own choice and against the best setting there is, call by call.
//!
//! All of them run on one communicator in turn, round after round, so that whatever the machine does meanwhile it does
//! to all; but for what NCCL reads once in the life of a process, for which ranks are started by turns ([`Side`]). The
//! policy decides within the plugin, from NCCL's own table, as it would in a job.

use dynamiccl_spec::Order;

use crate::cell::{Cell, Knobs};
use crate::crew::LiveError;
use crate::measure::{Effort, Measured, Meter};
use crate::spread::Ratio;

/// The best setting of a call, and what it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Contest {
    /// The call.
    pub cell: Cell,
    /// NCCL's own choice.
    pub own: Measured,
    /// The policy's.
    pub policy: Measured,
    /// The best that is known.
    pub oracle: Option<Measured>,
}

impl Contest {
    /// How much faster the policy is than NCCL's own.
    pub fn speedup(&self) -> Option<Ratio> {
        self.policy.against(&self.own)
    }

    /// How much faster the best is than NCCL's own.
    pub fn headroom(&self) -> Option<Ratio> {
        self.oracle.as_ref()?.against(&self.own)
    }

    /// Warms a call up, and times so many rounds of it.
    fn begin(meter: &mut Meter<'_>, cell: Cell, oracle: &Oracle, rounds: u32) -> Result<Self, LiveError> {
        let mut orders = RIVALS.to_vec();
        orders.extend(match oracle {
            Oracle::None => None,
            Oracle::Known(order) => Some(*order),
            Oracle::Search(knobs, effort) => meter.cell(cell, knobs, effort)?.best().map(|best| best.order),
        });
        meter.look(cell)?;
        let mut settings = meter.warm(cell, &orders)?.into_iter();
        let missing = || LiveError::Disagree(format!("{cell}: NCCL's own choice was not handed over"));
        let (own, policy) = settings.next().zip(settings.next()).ok_or_else(missing)?;
        let mut contest = Contest { cell, own, policy, oracle: settings.next() };
        contest.more(meter, rounds)?;
        Ok(contest)
    }

    /// Times so many more rounds.
    fn more(&mut self, meter: &mut Meter<'_>, rounds: u32) -> Result<(), LiveError> {
        let settings = [&mut self.own, &mut self.policy].into_iter().chain(&mut self.oracle);
        meter.rounds(self.cell, settings, rounds)
    }

    fn rounds(&self) -> u32 {
        self.policy.rounds.len() as u32
    }

    fn needs_more(&self, effort: &Effort) -> bool {
        self.rounds() < effort.most && effort.is_unsure(self.rounds(), self.speedup())
    }
}

/// Where the best setting comes from.
#[derive(Debug, Clone)]
pub enum Oracle {
    /// Nobody asks.
    None,
    /// It is known from before.
    Known(Order),
    /// All settings are tried first, with this effort.
    Search(Knobs, Effort),
}

/// NCCL's own choice, then the policy's.
pub const RIVALS: [Order; 2] = [Order::Own, Order::Policy];

/// A side of a comparison whose ranks are not the other's: what one of the two takes in every call, in as many starts of the
/// ranks as there are.
#[derive(Debug, Clone, Default)]
pub struct Side {
    measured: Vec<Measured>,
}

impl Side {
    /// Adds so many rounds of every call, from ranks that have just been started. Both orders are carried out in turn, as where
    /// they share ranks, and one of them counts: what a call takes depends on what was called before it. `each`
    /// hears of every call, and its error ends the work.
    pub fn add(
        &mut self,
        meter: &mut Meter<'_>,
        cells: &[Cell],
        counts: Order,
        rounds: u32,
        mut each: impl FnMut(Cell) -> Result<(), LiveError>,
    ) -> Result<(), LiveError> {
        for (at, &cell) in cells.iter().enumerate() {
            meter.look(cell)?;
            let mut settings = meter.warm(cell, &RIVALS)?;
            meter.rounds(cell, &mut settings, rounds)?;
            let missing = || LiveError::Disagree(format!("{cell}: {counts:?} was not handed over"));
            let found = settings.into_iter().find(|setting| setting.order == counts).ok_or_else(missing)?;
            match self.measured.get_mut(at) {
                Some(known) => known.rounds.extend(found.rounds),
                None => self.measured.push(found),
            }
            each(cell)?;
        }
        Ok(())
    }
}

/// The contests of two sides over the same calls.
pub fn contests(cells: &[Cell], own: Side, policy: Side) -> Vec<Contest> {
    let sides = own.measured.into_iter().zip(policy.measured);
    let contest = |(&cell, (own, policy))| Contest { cell, own, policy, oracle: None };
    cells.iter().zip(sides).map(contest).collect()
}

/// Compares on every call until the policy is compared surely enough. Rounds of a call come from two different times at
/// least: what is slow because of the time, and not because of the choice, shows as doubt, and gets more of them. `each`
/// hears of every call, and how many are left in this pass and those after it as far as one knows; its error ends the work.
pub fn compare(
    meter: &mut Meter<'_>,
    calls: &[(Cell, Oracle)],
    effort: &Effort,
    mut each: impl FnMut(Cell, usize) -> Result<(), LiveError>,
) -> Result<Vec<Contest>, LiveError> {
    let at_once = effort.least.div_ceil(2);
    let mut contests = Vec::new();
    for (at, (cell, oracle)) in calls.iter().enumerate() {
        contests.push(Contest::begin(meter, *cell, oracle, at_once)?);
        each(*cell, 2 * calls.len() - at - 1)?;
    }
    let mut due: Vec<&mut Contest> = contests.iter_mut().collect();
    while !due.is_empty() {
        let count = due.len();
        for (at, contest) in due.iter_mut().enumerate() {
            let rounds = contest.rounds();
            let now = if rounds < effort.least { effort.least - rounds } else { at_once };
            contest.more(meter, now.min(effort.most - rounds))?;
            each(contest.cell, count - at - 1)?;
        }
        due.retain(|contest| contest.needs_more(effort));
    }
    Ok(contests)
}
