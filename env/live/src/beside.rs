//! Compute beside communication, so that what channels cost others is measured and not assumed.

use dynamiccl_spec::Order;

use crate::cell::Cell;
use crate::crew::LiveError;
use crate::measure::Meter;
use crate::message::{Task, Timing};
use crate::spread::median;

/// Rounds of the load by which its speed is measured.
const TRIAL: u32 = 2000;
/// How often NCCL's own and the load alone are timed to size the load.
const SIZING: usize = 5;

/// The load beside the calls of a cell: it takes as long, alone, as the calls do alone with NCCL's own choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// Rounds of the load.
    pub rounds: u32,
    /// Microseconds that they take without a call.
    pub alone_us: f64,
}

impl Beside {
    /// Sizes it on the workers.
    pub fn size(meter: &mut Meter<'_>, cell: Cell) -> Result<Self, LiveError> {
        let task = cell.task(meter.clock);
        let calls = meter.time(task, vec![Order::Own; SIZING])?;
        let calls_us = middle(&calls, |timing| timing.us) * f64::from(task.calls);
        let mut alone = |rounds: u32| -> Result<f64, LiveError> {
            let times = meter.time(Task { load: rounds, calls: 0, ..task }, vec![Order::Own; SIZING])?;
            Ok(middle(&times, |timing| timing.load_us.unwrap_or(f64::NAN)))
        };
        let round_us = alone(TRIAL)? / f64::from(TRIAL);
        // A cast keeps within its bounds.
        let rounds = ((calls_us / round_us).round() as u32).max(1);
        Ok(Beside { rounds, alone_us: alone(rounds)? })
    }
}

fn middle(times: &[Timing], of: impl Fn(&Timing) -> f64) -> f64 {
    median(&times.iter().map(of).collect::<Vec<_>>())
}
