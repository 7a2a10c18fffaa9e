//! What synthesised schedules would take, where somebody has made some: for advice only, since stock NCCL runs
//! none of them.

use dynamiccl_spec::Collective;
use dynamiccl_spec::math::{exp, ln};
use serde::Deserialize;

/// One `[[schedule]]`: a size of a collective on communicators of one size.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    collective: Collective,
    ranks: u32,
    nodes: u32,
    bytes: u64,
    /// µs that it is predicted to take, launch included.
    micros: f32,
}

impl Schedule {
    pub(super) fn check(&self) -> Result<(), String> {
        if !Collective::TUNED.contains(&self.collective) {
            return Err(format!("collective = \"{}\": NCCL asks no tuner about it", self.collective));
        }
        if self.bytes == 0 {
            return Err("bytes = 0: there is nothing to send".to_owned());
        }
        if !(self.micros > 0.0 && self.micros < f32::INFINITY) {
            return Err(format!("micros = {}: must be a number above 0", self.micros));
        }
        Ok(())
    }

    /// Whether it is of a communicator of this size.
    pub(super) fn matches(&self, ranks: u32, nodes: u32) -> bool {
        (self.ranks, self.nodes) == (ranks, nodes)
    }
}

/// The schedules of one communicator.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schedules(Vec<Schedule>);

impl Schedules {
    /// Of these, in any order.
    pub(super) fn new(schedules: impl Iterator<Item = Schedule>) -> Self {
        let mut schedules: Vec<Schedule> = schedules.collect();
        schedules.sort_by_key(|schedule| (schedule.collective, schedule.bytes));
        Schedules(schedules)
    }

    /// µs that one is predicted to take for a call: between the sizes that were stated; none beyond them.
    pub fn micros(&self, collective: Collective, bytes: u64) -> Option<f32> {
        let of_call = || self.0.iter().filter(|schedule| schedule.collective == collective);
        let below = of_call().rfind(|schedule| schedule.bytes <= bytes)?;
        let above = of_call().find(|schedule| schedule.bytes >= bytes)?;
        if below.bytes == above.bytes {
            return Some(below.micros);
        }
        let log = |x: u64| ln(x as f64);
        let share = (log(bytes) - log(below.bytes)) / (log(above.bytes) - log(below.bytes));
        let [from, to] = [below, above].map(|schedule| ln(f64::from(schedule.micros)));
        Some(exp(from + share * (to - from)) as f32)
    }
}
