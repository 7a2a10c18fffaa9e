//! A policy against NCCL's own choice and against the best setting there is, call by call.
//!
//! All of them run on one communicator in turn, round after round, so that whatever the machine does meanwhile it does
//! to all. The policy decides within the plugin, from NCCL's own table, as it would in a job.

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

/// Compares on one call until the policy is compared surely enough.
pub fn compare(
    meter: &mut Meter<'_>,
    cell: Cell,
    oracle: &Oracle,
    effort: &Effort,
) -> Result<Contest, LiveError> {
    let mut orders = vec![Order::Own, Order::Policy];
    orders.extend(match oracle {
        Oracle::None => None,
        Oracle::Known(order) => Some(*order),
        Oracle::Search(knobs, effort) => meter.cell(cell, knobs, effort)?.best().map(|best| best.order),
    });
    meter.look(cell)?;
    let mut settings = meter.warm(cell, &orders)?;
    let mut rounds = 0;
    let sure = |settings: &[Measured]| {
        let ratio = settings.get(1).zip(settings.first()).and_then(|(policy, own)| policy.against(own));
        ratio.is_some_and(|ratio| ratio.half_width() <= effort.bound)
    };
    while rounds < effort.most && !(rounds > 0 && sure(&settings)) {
        let more = effort.least.min(effort.most - rounds);
        meter.rounds(cell, &mut settings, more)?;
        rounds += more;
    }
    let mut settings = settings.into_iter();
    let missing = || LiveError::Disagree(format!("{cell}: NCCL's own choice was not handed over"));
    let (own, policy) = settings.next().zip(settings.next()).ok_or_else(missing)?;
    Ok(Contest { cell, own, policy, oracle: settings.next() })
}
