//! A policy against NCCL's own choice and against the best setting there is, call by call.
//!
//! All of them run on one communicator in turn, round after round, so that whatever the machine does meanwhile it does
//! to all; but for what NCCL reads once in the life of a process, for which ranks are started by turns ([`Side`]). The
//! policy decides within the plugin, from NCCL's own table, as it would in a job.

use dynamiccl_spec::Order;

use crate::cell::{Cell, Tries};
use crate::crew::LiveError;
use crate::measure::{Effort, Measured, Meter, SURE};
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
    /// The best that is known; none, too, where NCCL cannot be handed it.
    pub oracle: Option<Measured>,
    /// Whether there is one that NCCL cannot be handed.
    pub refused: bool,
}

impl Contest {
    /// How much faster the policy is than NCCL's own.
    pub fn speedup(&self) -> Option<Ratio> {
        self.policy.against(&self.own)
    }

    /// Whether an interval of it holds 95 %: that of starts always does, that of rounds where there are enough.
    pub fn is_sure(&self) -> bool {
        !self.policy.starts.is_empty() || self.rounds() >= SURE
    }

    /// How much faster the best is than NCCL's own.
    pub fn headroom(&self) -> Option<Ratio> {
        self.oracle.as_ref()?.against(&self.own)
    }

    /// Warms a call up, and times so many rounds of it.
    fn begin(meter: &mut Meter<'_>, cell: Cell, oracle: &Oracle, rounds: u32) -> Result<Self, LiveError> {
        let best = match oracle {
            Oracle::None => None,
            Oracle::Known(order) => Some(*order),
            Oracle::Search(tries, effort) => meter.cell(cell, tries, effort)?.best().map(|best| best.order),
        };
        meter.look(cell)?;
        let orders: Vec<Order> = RIVALS.into_iter().chain(best).collect();
        let mut contest = Contest::of(cell, meter.warm(cell, &orders)?, best)?;
        contest.more(meter, rounds)?;
        Ok(contest)
    }

    /// Who is compared, of what NCCL was handed.
    fn of(cell: Cell, mut handed: Vec<Measured>, best: Option<Order>) -> Result<Self, LiveError> {
        let (own, policy) = (take(cell, &mut handed, Order::Own)?, take(cell, &mut handed, Order::Policy)?);
        let oracle = best.and_then(|best| take(cell, &mut handed, best).ok());
        Ok(Contest { cell, own, policy, refused: best.is_some() && oracle.is_none(), oracle })
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

/// The setting of an order, of those that NCCL was handed: others are left out.
fn take(cell: Cell, handed: &mut Vec<Measured>, order: Order) -> Result<Measured, LiveError> {
    let at = handed.iter().position(|setting| setting.order == order);
    at.map(|at| handed.swap_remove(at))
        .ok_or_else(|| LiveError::Disagree(format!("{cell}: NCCL was not handed {order:?}")))
}

/// Where the best setting comes from.
#[derive(Debug, Clone)]
pub enum Oracle {
    /// Nobody asks.
    None,
    /// It is known from before.
    Known(Order),
    /// All settings are tried first, with this effort.
    Search(Tries, Effort),
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
            let found = take(cell, &mut settings, counts)?;
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
    let contest = |(&cell, (own, policy))| Contest { cell, own, policy, oracle: None, refused: false };
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
            contest.more(meter, pass(rounds, effort))?;
            each(contest.cell, count - at - 1)?;
        }
        due.retain(|contest| contest.needs_more(effort));
    }
    Ok(contests)
}

/// Rounds of the next pass. Half as many as at first, and an eighth of what there is where that is more: what is looked at after
/// every pass is all that there is.
fn pass(rounds: u32, effort: &Effort) -> u32 {
    let left = effort.least.saturating_sub(rounds);
    let more = effort.least.div_ceil(2).max(rounds / 8);
    (if left > 0 { left } else { more }).min(effort.most - rounds)
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{ChannelChoice, ChunkChoice, Collective, Knobs, Pair};

    use super::*;

    fn contest(own: [f64; 3], policy: [f64; 3]) -> Contest {
        let side = |order, starts: [f64; 3]| Measured {
            rounds: starts.iter().flat_map(|&start| [start; 14]).collect(),
            starts: starts.to_vec(),
            ..Measured::new(order, Knobs::OWN)
        };
        let cell = Cell { collective: Collective::AllReduce, bytes: 1024 };
        Contest {
            cell,
            own: side(Order::Own, own),
            policy: side(Order::Policy, policy),
            oracle: None,
            refused: false,
        }
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

    #[test]
    fn many_rounds_come_in_few_passes() {
        let passes = |least, most| {
            let (effort, mut rounds) = (Effort { least, most, bound: 0.0 }, least.div_ceil(2));
            let passes = std::iter::from_fn(|| {
                rounds += pass(rounds, &effort);
                Some(rounds)
            });
            let mut passes: Vec<u32> = passes.take_while(|&rounds| rounds < most).collect();
            passes.push(most);
            passes
        };
        assert_eq!(passes(10, 40), [10, 15, 20, 25, 30, 35, 40]);
        assert_eq!(passes(1, 3), [2, 3]);
        assert!(passes(10, 10_000).len() < 60);
    }

    #[test]
    fn what_nccl_was_not_handed_is_nobody_elses_time() {
        let cell = Cell { collective: Collective::AllReduce, bytes: 1024 };
        let pair = Pair::from_index(3).unwrap();
        let best = Order::Knobs { pair, channels: ChannelChoice::OWN, chunk: ChunkChoice::Own };
        let contest = |orders: &[Order]| {
            let handed = orders.iter().map(|&order| Measured::new(order, Knobs::OWN)).collect();
            Contest::of(cell, handed, Some(best))
        };
        let all = contest(&[Order::Own, Order::Policy, best]).unwrap();
        assert_eq!(
            (all.policy.order, all.oracle.map(|o| o.order), all.refused),
            (Order::Policy, Some(best), false)
        );
        let without = contest(&[Order::Own, Order::Policy]).unwrap();
        assert_eq!((without.oracle, without.refused), (None, true));
        let error = contest(&[Order::Own, best]).unwrap_err().to_string();
        assert_eq!(error, "allreduce 1K: NCCL was not handed Policy");
    }
}
