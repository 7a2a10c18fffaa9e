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
            let start = found.median();
            match self.measured.get_mut(at) {
                Some(known) => known.rounds.extend(found.rounds),
                None => self.measured.push(found),
            }
            self.measured[at].starts.push(start);
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

/// How much faster the policy is in all calls together, as a geometric mean. What a start of the ranks does to one call it may
/// do to all: sides with starts of their own were compared as often as they were started, however many calls there are.
pub fn overall(contests: &[Contest]) -> Option<Ratio> {
    let starts = contests.iter().map(|contest| contest.policy.starts.len()).min()?;
    if starts == 0 {
        return Ratio::mean(&contests.iter().filter_map(Contest::speedup).collect::<Vec<_>>());
    }
    let mean = |side: fn(&Contest) -> &Measured, start: usize| {
        let logs = contests.iter().map(|contest| side(contest).starts[start].ln());
        (logs.sum::<f64>() / contests.len() as f64).exp()
    };
    let means = |side| (0..starts).map(|start| mean(side, start)).collect::<Vec<_>>();
    Ratio::of_starts(&means(|contest| &contest.own), &means(|contest| &contest.policy))
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

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{Collective, Knobs};

    use super::*;

    fn contest(own: [f64; 3], policy: [f64; 3]) -> Contest {
        let side = |order, starts: [f64; 3]| Measured {
            rounds: starts.iter().flat_map(|&start| [start; 14]).collect(),
            starts: starts.to_vec(),
            ..Measured::new(order, Knobs::OWN)
        };
        let cell = Cell { collective: Collective::AllReduce, bytes: 1024 };
        Contest { cell, own: side(Order::Own, own), policy: side(Order::Policy, policy), oracle: None }
    }

    /// Forty rounds of three starts say what three starts say.
    #[test]
    fn starts_that_differ_make_no_verdict() {
        let lucky = contest([103.0, 100.0, 102.0], [98.0, 100.0, 99.0]);
        let speedup = lucky.speedup().unwrap();
        assert!((speedup.ratio - 1.0271).abs() < 1e-3, "{speedup:?}");
        assert!(speedup.low < 1.0 && speedup.high > 1.08, "{speedup:?}");
        let all = overall(&vec![lucky; 40]).unwrap();
        assert!(
            (all.half_width() / speedup.half_width() - 1.0).abs() < 1e-9,
            "all calls have the same starts"
        );
        let surely = contest([130.0, 129.0, 131.0], [100.0, 101.0, 100.0]).speedup().unwrap();
        assert!(surely.low > 1.2, "{surely:?}");
    }
}
