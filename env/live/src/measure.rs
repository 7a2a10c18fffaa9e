//! How times come about: every setting warmed up and its result compared, then rounds over all settings in turn, until
//! the comparison that matters is sure enough or the rounds are used up.

use dynamiccl_spec::Order;

use crate::cell::{Cell, Knobs};
use crate::crew::{Crew, LiveError};
use crate::message::{Answer, Look, Request, Timing, Warmed};
use crate::spread::{Ratio, median};

/// Settings that are this much slower than the best so far are not measured again.
const HOPELESS: f64 = 1.25;

/// Rounds of the reference.
const REFERENCES: u32 = 5;

/// How much is done for one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Rounds over all settings.
    pub least: u32,
    /// Rounds in all; those beyond the least are over settings that may still be the best.
    pub most: u32,
    /// Rounds go on until the best is compared with NCCL's own this surely: half the 95 % interval, relative.
    pub bound: f64,
}

/// One setting of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What was ordered.
    pub order: Order,
    /// What was handed to NCCL.
    pub handed: dynamiccl_spec::Knobs,
    /// Microseconds of every round; not a number in rounds that left it out.
    pub rounds: Vec<f64>,
    /// Microseconds of the load beside it in every round.
    pub loads: Vec<f64>,
}

impl Measured {
    /// Microseconds of the rounds that it was in.
    pub fn micros(&self) -> Vec<f64> {
        self.rounds.iter().copied().filter(|us| us.is_finite()).collect()
    }

    /// Their median.
    pub fn median(&self) -> f64 {
        median(&self.micros())
    }

    /// How much faster it is than another, over the rounds that both were in.
    pub fn against(&self, other: &Measured) -> Option<Ratio> {
        let both = self.rounds.iter().zip(&other.rounds).filter(|(a, b)| a.is_finite() && b.is_finite());
        let (ours, theirs): (Vec<f64>, Vec<f64>) = both.map(|(a, b)| (*a, *b)).unzip();
        Ratio::of(&theirs, &ours)
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
}

impl CellTimes {
    /// The setting with the smallest median that is not NCCL's own.
    pub fn best(&self) -> Option<&Measured> {
        let others = self.settings.iter().filter(|setting| setting.order != Order::Own);
        others.min_by(|a, b| a.median().total_cmp(&b.median()))
    }

    fn own(&self) -> Option<&Measured> {
        self.settings.iter().find(|setting| setting.order == Order::Own)
    }

    /// Whether the best is compared with NCCL's own surely enough.
    fn is_sure(&self, bound: f64) -> bool {
        let compared = self.best().zip(self.own()).and_then(|(best, own)| best.against(own));
        compared.is_none_or(|ratio| ratio.half_width() <= bound)
    }

    /// NCCL's own, and whatever may still be the best.
    fn contenders(&self) -> Vec<usize> {
        let limit = self.best().map_or(f64::INFINITY, Measured::median) * HOPELESS;
        let may_win = |setting: &Measured| {
            setting.order == Order::Own || setting.micros().into_iter().fold(f64::INFINITY, f64::min) <= limit
        };
        (0..self.settings.len()).filter(|&at| may_win(&self.settings[at])).collect()
    }
}

/// Measures with workers.
#[derive(Debug)]
pub struct Meter<'a> {
    /// The workers.
    pub crew: &'a mut Crew,
    /// Rounds of the load beside communication; 0 for none.
    pub load: u32,
}

impl Meter<'_> {
    /// What NCCL would do; all ranks must see the same.
    pub fn look(&mut self, cell: Cell) -> Result<Look, LiveError> {
        let answers = self.crew.ask(&Request::Look(cell.task()))?;
        let looks: Vec<Look> = answers
            .into_iter()
            .filter_map(|answer| if let Answer::Looked(look) = answer { Some(look) } else { None })
            .collect();
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
        let answers = self.crew.ask(&Request::Warm(cell.task(), orders.to_vec()))?;
        let mut settings: Vec<Option<Measured>> = orders.iter().map(|_| None).collect();
        for (rank, answer) in answers.into_iter().enumerate() {
            let Answer::Warmed(warmed) = answer else { continue };
            for (at, Warmed { carried_out, handed, wrong }) in warmed.into_iter().enumerate() {
                if wrong > 0 {
                    return Err(LiveError::Wrong(format!(
                        "rank {rank}: {wrong} numbers of {cell} came out wrong with {:?}",
                        orders[at]
                    )));
                }
                let setting = Measured { order: orders[at], handed, rounds: vec![], loads: vec![] };
                match (&settings[at], rank) {
                    (_, 0) => settings[at] = carried_out.then_some(setting),
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

    /// Measures all settings of a call.
    pub fn cell(&mut self, cell: Cell, knobs: &Knobs, effort: &Effort) -> Result<CellTimes, LiveError> {
        let look = self.look(cell)?;
        let settings = self.warm(cell, &knobs.orders(&look.table, look.interface))?;
        let mut times = CellTimes { cell, look, settings };
        let all: Vec<usize> = (0..times.settings.len()).collect();
        for round in 0..effort.most {
            let who = if round < effort.least { all.clone() } else { times.contenders() };
            if round >= effort.least && (who.len() < 2 || times.is_sure(effort.bound)) {
                break;
            }
            self.round(cell, &mut times.settings, &who, round)?;
        }
        Ok(times)
    }

    /// Microseconds of NCCL's own choice for a call that is measured again and again, to see the machine change.
    pub fn reference(&mut self, cell: Cell) -> Result<f64, LiveError> {
        let mut settings = self.warm(cell, &[Order::Own])?;
        (0..REFERENCES).try_for_each(|round| self.round(cell, &mut settings, &[0], round))?;
        Ok(settings.first().map_or(f64::NAN, Measured::median))
    }

    /// Times some settings once, beginning with another in every round: none always follows the same.
    pub fn round(
        &mut self,
        cell: Cell,
        settings: &mut [Measured],
        who: &[usize],
        round: u32,
    ) -> Result<(), LiveError> {
        let mut turn = who.to_vec();
        let by = round as usize * 7 % turn.len().max(1);
        turn.rotate_left(by);
        let orders = turn.iter().map(|&at| settings[at].order).collect();
        let task = crate::message::Task { load: self.load, ..cell.task() };
        let answers = self.crew.ask(&Request::Time(task, orders))?;
        settings.iter_mut().for_each(|setting| setting.rounds.push(f64::NAN));
        // The clock is rank 0's, as in the sweeps that were published: within a loop of calls all ranks keep pace.
        let Some(Answer::Timed(timings)) = answers.into_iter().next() else { return Ok(()) };
        for (&at, Timing { us, load_us }) in turn.iter().zip(timings) {
            if let Some(last) = settings[at].rounds.last_mut() {
                *last = us;
            }
            settings[at].loads.extend(load_us);
        }
        Ok(())
    }
}
