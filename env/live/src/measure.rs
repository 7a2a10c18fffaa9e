//! How times come about: every setting warmed up and its result compared, then rounds over all settings.
//!
//! Rounds follow each other without a pause and always in the same order, the first setting after the last: a rank may
//! run ahead of others, so what a setting costs depends on what was called before it, and this must not change from
//! round to round. It does where settings drop out, which they never do for a root whose buffers nobody empties: after the
//! first rounds only those take part that may still be the fastest, for at large sizes most settings are hopeless, and
//! would take most of the time; and after some more only those that are near it.

use dynamiccl_env::measure::Clock;
use dynamiccl_spec::driven::CHUNKS_SINCE;
use dynamiccl_spec::{ChunkChoice, Knobs, Order};

use crate::beside::Beside;
use crate::cell::{Cell, Tries};
use crate::clock;
use crate::crew::{Crew, LiveError};
use crate::message::{Answer, Look, Request, Task, Timing, Warmed};
use crate::spread::{Ratio, interval, median};

/// Timings that one request asks for: requests are to stay short lines, and interrupts to be answered soon.
const BATCH: usize = 500;
/// A setting that takes so many times as long as another is not timed again: some are fast or slow by turns, but not by more.
const HOPELESS: f64 = 2.0;
/// Nor is one that took so many times as long in every one of [`SEEN`] rounds.
const NEAR: f64 = 1.25;
const SEEN: usize = 4;
/// What a machine may pause for, in microseconds: in a single round that much of a setting's time says nothing of it.
const PAUSE_US: f64 = 50_000.0;
/// Fewer rounds have no interval that holds 95 %.
pub const SURE: u32 = 6;

/// How much is done for one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Rounds that are done at once.
    pub least: u32,
    /// Rounds in all, where it is unsure.
    pub most: u32,
    /// How sure the best is to be compared with NCCL's own: half the 95 % interval, relative.
    pub bound: f64,
}

impl Effort {
    /// Whether what so many rounds say is not as sure as wished.
    pub fn is_unsure(&self, rounds: u32, says: Option<Ratio>) -> bool {
        rounds < SURE || says.is_some_and(|ratio| ratio.half_width() > self.bound)
    }
}

/// One setting of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What was ordered.
    pub order: Order,
    /// What was handed to NCCL.
    pub handed: Knobs,
    /// Microseconds of every round.
    pub rounds: Vec<f64>,
    /// Microseconds of the load beside it in every round.
    pub loads: Vec<f64>,
    /// The median of every start of the ranks, where they were started several times to measure it.
    pub starts: Vec<f64>,
}

impl Measured {
    /// A setting that was not timed yet.
    pub fn new(order: Order, handed: Knobs) -> Self {
        Measured { order, handed, rounds: Vec::new(), loads: Vec::new(), starts: Vec::new() }
    }

    /// The median over all rounds.
    pub fn median(&self) -> f64 {
        median(&self.rounds)
    }

    /// The median of the load beside it; none without.
    pub fn load_median(&self) -> Option<f64> {
        (!self.loads.is_empty()).then(|| median(&self.loads))
    }

    /// The fastest round; endless without one.
    pub fn fastest(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The slowest round.
    pub fn slowest(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }

    /// Between which times its median is, surely to 95 %.
    pub fn interval(&self) -> (f64, f64) {
        interval(&self.rounds)
    }

    /// Whether it may still turn out to be as fast as another, of which this is the median, where a clock runs for so
    /// many calls. What counts is the fastest round: others may have met a pause.
    fn reaches(&self, best: f64, calls: u32) -> bool {
        let fastest = self.fastest();
        match self.rounds.len() {
            0 => true,
            1 => fastest - PAUSE_US / f64::from(calls.max(1)) <= best * HOPELESS,
            rounds => fastest <= best * if rounds < SEEN { HOPELESS } else { NEAR },
        }
    }

    /// How much faster it is than another, round by round; start by start where each had ranks of its own, whose rounds have
    /// only their luck in common.
    pub fn against(&self, other: &Measured) -> Option<Ratio> {
        if self.starts.is_empty() {
            Ratio::of(&other.rounds, &self.rounds)
        } else {
            Ratio::of_starts(&other.starts, &self.starts)
        }
    }
}

/// All settings of a call, NCCL's own first.
#[derive(Debug, Clone, PartialEq)]
pub struct CellTimes {
    /// The call.
    pub cell: Cell,
    /// What NCCL would do.
    pub look: Look,
    /// Its settings.
    pub settings: Vec<Measured>,
    /// The load beside it.
    pub beside: Option<Beside>,
}

impl CellTimes {
    /// How many times as long compute takes beside a setting as alone.
    pub fn slowdown(&self, setting: &Measured) -> Option<f64> {
        Some(setting.load_median()? / self.beside?.alone_us)
    }

    /// The setting with the smallest median that is not NCCL's own, of those that dropped out last or not at all.
    pub fn best(&self) -> Option<&Measured> {
        let others = || self.settings.iter().filter(|setting| setting.order != Order::Own);
        let rounds = others().map(|setting| setting.rounds.len()).max()?;
        let last = others().filter(|setting| setting.rounds.len() == rounds);
        last.min_by(|a, b| a.median().total_cmp(&b.median()))
    }

    /// Rounds so far.
    pub fn rounds(&self) -> usize {
        self.settings.first().map_or(0, |setting| setting.rounds.len())
    }

    /// How much faster the best is than NCCL's own.
    pub fn speedup(&self) -> Option<Ratio> {
        let own = self.settings.iter().find(|setting| setting.order == Order::Own);
        self.best().zip(own).and_then(|(best, own)| best.against(own))
    }

    /// Whether it is not known as surely as wished how much faster the best is.
    pub fn is_unsure(&self, effort: &Effort) -> bool {
        effort.is_unsure(self.rounds() as u32, self.speedup())
    }

    /// Whether more rounds are due. They are not where nothing but NCCL's own choice is left.
    pub fn needs_more(&self, effort: &Effort) -> bool {
        let rivals = self.best().is_some_and(|best| best.rounds.len() == self.rounds());
        rivals && self.rounds() < effort.most as usize && self.is_unsure(effort)
    }

    /// The settings of which more rounds may still tell something: NCCL's own, and what is not too slow for that and took
    /// part in all rounds so far; all where each depends on the one before it.
    fn contenders(&mut self, clock: Clock) -> Vec<&mut Measured> {
        if clock.stops_at_root(self.cell.collective) {
            return self.settings.iter_mut().collect();
        }
        let best = self.settings.iter().map(Measured::median).reduce(f64::min).unwrap_or(f64::NAN);
        let (calls, rounds) = (self.cell.task(clock).calls, self.rounds());
        let may_win = |setting: &Measured| setting.rounds.len() == rounds && setting.reaches(best, calls);
        self.settings.iter_mut().filter(|setting| setting.order == Order::Own || may_win(setting)).collect()
    }

    /// Forgets all rounds.
    pub fn clear(&mut self) {
        self.settings.iter_mut().for_each(|setting| {
            setting.rounds.clear();
            setting.loads.clear();
        });
    }
}

/// Measures with workers.
#[derive(Debug)]
pub struct Meter<'a> {
    /// The workers.
    pub crew: &'a mut Crew,
    /// Whose clock counts.
    pub clock: Clock,
    /// Whether compute runs beside communication.
    pub beside: bool,
}

impl Meter<'_> {
    /// What NCCL would do; all ranks must see the same.
    pub fn look(&mut self, cell: Cell) -> Result<Look, LiveError> {
        let look = |answer| if let Answer::Looked(look) = answer { Some(look) } else { None };
        let looks = self.crew.ask_for(&Request::Look(cell.task(self.clock)), look)?;
        let first = looks[0];
        match looks.iter().position(|look| *look != first) {
            None => Ok(first),
            Some(rank) => Err(LiveError::Disagree(format!(
                "rank {rank} has another cost table than rank 0 for {cell}: settings would differ between ranks"
            ))),
        }
    }

    /// Warms every setting up and compares its results; what NCCL cannot be handed is left out.
    pub fn warm(&mut self, cell: Cell, orders: &[Order]) -> Result<Vec<Measured>, LiveError> {
        let request = Request::Warm(cell.task(self.clock), orders.to_vec());
        let warmed = |answer| if let Answer::Warmed(warmed) = answer { Some(warmed) } else { None };
        let ranks = self.crew.ask_for(&request, warmed)?;
        all_of(&ranks, orders.len())?;
        let mut settings: Vec<Option<Measured>> = orders.iter().map(|_| None).collect();
        for (rank, warmed) in ranks.into_iter().enumerate() {
            for (at, Warmed { carried_out, handed, wrong }) in warmed.into_iter().enumerate() {
                if wrong > 0 {
                    return Err(LiveError::Wrong(format!(
                        "rank {rank}: {wrong} numbers of {cell} came out wrong with {:?}",
                        orders[at]
                    )));
                }
                match (&settings[at], rank) {
                    (_, 0) => settings[at] = carried_out.then(|| Measured::new(orders[at], handed)),
                    (Some(first), _) if carried_out && first.handed == handed => {}
                    (None, _) if !carried_out => {}
                    _ => {
                        return Err(LiveError::Disagree(format!(
                            "rank {rank} and rank 0 hand NCCL different knobs for {cell}"
                        )));
                    }
                }
            }
        }
        Ok(settings.into_iter().flatten().collect())
    }

    /// Measures all settings of a call for the first rounds.
    pub fn begin(&mut self, cell: Cell, tries: &Tries, effort: &Effort) -> Result<CellTimes, LiveError> {
        let look = self.look(cell)?;
        if tries.chunks != [ChunkChoice::Own] && look.interface < CHUNKS_SINCE {
            return Err(LiveError::Lacking(format!(
                "this NCCL asks tuners through interface {}, which knows no chunk sizes (those from {CHUNKS_SINCE} on \
                 do); leave --chunks away",
                look.interface
            )));
        }
        let settings = self.warm(cell, &tries.orders(&look.table))?;
        let beside = if self.beside { Some(Beside::size(self, cell)?) } else { None };
        let mut times = CellTimes { cell, look, settings, beside };
        self.more_by(&mut times, effort.least)?;
        Ok(times)
    }

    /// Measures all settings of a call until the best of them is known surely enough.
    pub fn cell(&mut self, cell: Cell, tries: &Tries, effort: &Effort) -> Result<CellTimes, LiveError> {
        let mut times = self.begin(cell, tries, effort)?;
        while times.needs_more(effort) {
            self.more(&mut times, effort)?;
        }
        Ok(times)
    }

    /// Adds rounds to a call that was begun.
    pub fn more(&mut self, times: &mut CellTimes, effort: &Effort) -> Result<(), LiveError> {
        let left = effort.most.saturating_sub(times.rounds() as u32);
        self.more_by(times, effort.least.min(left))
    }

    /// Adds so many rounds to a call that was begun.
    pub(crate) fn more_by(&mut self, times: &mut CellTimes, mut rounds: u32) -> Result<(), LiveError> {
        let task =
            Task { load: times.beside.map_or(0, |beside| beside.rounds), ..times.cell.task(self.clock) };
        while rounds > 0 {
            // The first rounds show who need not take part in others.
            let now = if times.rounds() < 2 { 1 } else { rounds };
            self.rounds_of(task, &mut times.contenders(self.clock), now)?;
            rounds -= now;
        }
        Ok(())
    }

    /// Times all settings so many times, round after round, with nothing beside them.
    pub fn rounds<'m>(
        &mut self,
        cell: Cell,
        settings: impl IntoIterator<Item = &'m mut Measured>,
        rounds: u32,
    ) -> Result<(), LiveError> {
        self.rounds_of(cell.task(self.clock), &mut settings.into_iter().collect::<Vec<_>>(), rounds)
    }

    fn rounds_of(
        &mut self,
        task: Task,
        settings: &mut [&mut Measured],
        mut rounds: u32,
    ) -> Result<(), LiveError> {
        let Some(last) = settings.last().map(|setting| setting.order) else { return Ok(()) };
        let at_once = (BATCH / settings.len()).max(1);
        while rounds > 0 {
            let now = at_once.min(rounds as usize);
            // The first one, too, follows the one that it follows in all rounds, and not a pause.
            let mut orders = vec![last];
            (0..now).for_each(|_| orders.extend(settings.iter().map(|setting| setting.order)));
            let times = self.time(task, orders)?;
            for round in times.get(1..).unwrap_or_default().chunks(settings.len()) {
                for (setting, &Timing { us, load_us }) in settings.iter_mut().zip(round) {
                    setting.rounds.push(us);
                    setting.loads.extend(load_us);
                }
            }
            rounds -= now as u32;
        }
        Ok(())
    }

    /// Times orders one after the other.
    pub(crate) fn time(&mut self, task: Task, orders: Vec<Order>) -> Result<Vec<Timing>, LiveError> {
        let (clock, count) = (self.clock, orders.len());
        let timed = |answer| if let Answer::Timed(times) = answer { Some(times) } else { None };
        let ranks = self.crew.ask_for(&Request::Time(task, orders), timed)?;
        all_of(&ranks, count)?;
        let at = |at: usize| Timing {
            us: clock::read(clock, ranks.iter().map(|times| times[at].us)),
            load_us: ranks.iter().filter_map(|times| times[at].load_us).reduce(f64::max),
        };
        Ok((0..count).map(at).collect())
    }
}

/// Whether every rank says something of every order.
fn all_of<T>(ranks: &[Vec<T>], orders: usize) -> Result<(), LiveError> {
    let Some(rank) = ranks.iter().position(|said| said.len() != orders) else { return Ok(()) };
    let said = ranks[rank].len();
    Err(LiveError::Disagree(format!(
        "rank {rank} answers for {said} settings of the {orders} that it was asked"
    )))
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{ChannelChoice, Collective, CostTable, Pair};

    use super::*;

    fn measured(channels: u8, rounds: &[f64]) -> Measured {
        let (pair, channels) = (Pair::from_index(3).unwrap(), ChannelChoice::of(channels).unwrap());
        let order = Order::Knobs { pair, channels, chunk: ChunkChoice::Own };
        Measured { rounds: rounds.to_vec(), ..Measured::new(order, Knobs::OWN) }
    }

    fn times(collective: Collective, own: &[f64], others: Vec<Measured>) -> CellTimes {
        let look = Look { interface: 5, bytes: 1024, table: CostTable::default() };
        let own = Measured { order: Order::Own, ..measured(1, own) };
        let settings = std::iter::once(own).chain(others).collect();
        CellTimes { cell: Cell { collective, bytes: 1024 }, look, settings, beside: None }
    }

    fn orders(times: &mut CellTimes, clock: Clock) -> Vec<Order> {
        times.contenders(clock).iter().map(|setting| setting.order).collect()
    }

    #[test]
    fn what_is_hopelessly_slow_is_not_timed_again_but_for_nccls_own() {
        let others = vec![measured(1, &[30.0, 31.0]), measured(2, &[59.0, 80.0]), measured(4, &[62.0, 63.0])];
        let mut times = times(Collective::Broadcast, &[90.0, 80.0], others);
        let kept = [Order::Own, measured(1, &[]).order, measured(2, &[]).order];
        assert_eq!(orders(&mut times, Clock::Slowest), kept);
        assert_eq!(
            orders(&mut times, Clock::First).len(),
            4,
            "what a root takes depends on the setting before"
        );
        times.cell.collective = Collective::AllReduce;
        assert_eq!(orders(&mut times, Clock::First), kept);
        times.clear();
        assert_eq!(orders(&mut times, Clock::First).len(), 4, "nothing is known of any");
    }

    /// A pause of the machine makes anything slow once; what is slower than by a pause it does not.
    #[test]
    fn one_pause_condemns_nothing() {
        let one = |us: f64| times(Collective::AllReduce, &[30.0], vec![measured(1, &[us])]);
        assert_eq!(orders(&mut one(6_000.0), Clock::Slowest).len(), 2, "48 ms of eight calls");
        assert_eq!(orders(&mut one(6_400.0), Clock::Slowest), [Order::Own]);
        let mut paused = times(Collective::AllReduce, &[30.0, 31.0], vec![measured(1, &[6_000.0, 29.0])]);
        assert_eq!(orders(&mut paused, Clock::Slowest).len(), 2, "its fastest round counts");
    }

    #[test]
    fn after_some_rounds_only_what_is_near_the_best_is_timed() {
        let others = vec![measured(1, &[20.0; 4]), measured(2, &[24.0; 4]), measured(4, &[26.0; 4])];
        let mut times = times(Collective::AllReduce, &[50.0; 4], others);
        assert_eq!(orders(&mut times, Clock::Slowest).len(), 3);
        times.settings.iter_mut().for_each(|setting| setting.rounds.truncate(3));
        assert_eq!(orders(&mut times, Clock::Slowest).len(), 4);
    }

    /// Rounds are compared one by one, so whoever has missed some can neither come back nor be the best.
    #[test]
    fn what_has_dropped_out_stays_out() {
        let others = vec![
            measured(1, &[20.0, 20.0, 20.0, 20.0, 30.0, 30.0, 30.0, 30.0, 30.0]),
            measured(2, &[26.0; 4]),
        ];
        let mut times = times(Collective::AllReduce, &[50.0; 9], others);
        assert_eq!(orders(&mut times, Clock::Slowest), [Order::Own, measured(1, &[]).order]);
        assert_eq!(times.best().map(|best| best.order), Some(measured(1, &[]).order));
    }

    #[test]
    fn where_nothing_is_as_fast_as_nccls_own_the_next_best_is_named() {
        let effort = Effort { least: 2, most: 9, bound: 0.0 };
        let mut times =
            times(Collective::AllReduce, &[20.0; 5], vec![measured(1, &[30.0; 4]), measured(2, &[50.0])]);
        assert_eq!(times.best().map(|best| best.order), Some(measured(1, &[]).order));
        assert_eq!(
            (orders(&mut times, Clock::Slowest), times.needs_more(&effort)),
            (vec![Order::Own], false)
        );
    }

    #[test]
    fn a_rank_that_leaves_settings_out_is_named() {
        let said = |counts: [usize; 2]| all_of(&counts.map(|count| vec![(); count]), 3);
        assert!(said([3, 3]).is_ok());
        let error = said([3, 4]).unwrap_err().to_string();
        assert_eq!(error, "rank 1 answers for 4 settings of the 3 that it was asked");
    }

    #[test]
    fn few_rounds_are_unsure_however_alike() {
        let effort = |most| Effort { least: 2, most, bound: 0.03 };
        let alike = |rounds| {
            times(Collective::AllReduce, &vec![50.0; rounds], vec![measured(1, &vec![25.0; rounds])])
        };
        assert!(alike(5).needs_more(&effort(9)) && !alike(6).needs_more(&effort(9)));
        assert!(!alike(5).needs_more(&effort(5)));
    }
}
