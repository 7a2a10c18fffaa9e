//! The widest registers that the CPU has, for loops over many numbers.
//!
//! Programs are built for the oldest CPU that they shall run on. What stands in [`wide`] is built for newer ones as
//! well, as far as it is inlined (so a `for`, no `for_each`), and the CPU is asked while it runs. Nothing is fused or
//! put into another order, so every bit stays the same.

use dynamiccl_policies::policy::PolicyTuner;
use dynamiccl_spec::{Decision, Measure, Measured, Query, Tuner};

/// Does some work with the widest registers there are.
macro_rules! wide {
    ($work:expr) => {
        $crate::wide::dispatch(
            #[inline(always)]
            || $work,
        )
    };
}
pub(crate) use wide;

/// What [`wide`] does: by its bound a closure is called as it is, and not through a function that is not inlined.
#[inline(always)]
pub(crate) fn dispatch<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// A policy at work that uses the widest registers there are. It decides as it does without them, in less time.
#[derive(Debug, Clone)]
pub struct WideTuner(pub PolicyTuner);

impl Tuner for WideTuner {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn begin(&mut self) {
        self.0.begin();
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        wide!(self.0.answer(query))
    }

    fn learn(&mut self, query: &Query<'_>, measured: &Measured) {
        self.0.learn(query, measured);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use dynamiccl_policies::probe::{self, Call};
    use dynamiccl_policies::random::Random;

    use super::*;

    #[test]
    fn wider_registers_change_no_bit() {
        let mut plain = PolicyTuner::new(Arc::new(probe::policy(4)), NonZeroUsize::new(5));
        let mut wide = WideTuner(plain.clone());
        let mut random = Random::of(4, 1);
        let mut call = Call::draw(&mut random);
        for number in 0..500 {
            let query = call.query();
            let [left, right] = [plain.answer(&query), wide.decide(&query, &mut |_| None)];
            let bits = |decision: &Decision| {
                decision.micros.0.as_flattened().iter().map(|us| us.to_bits()).collect()
            };
            let [of_left, of_right]: [Vec<u32>; 2] = [bits(&left), bits(&right)];
            assert_eq!(
                (left.knobs, left.reason, of_left),
                (right.knobs, right.reason, of_right),
                "call {number}"
            );
            assert_eq!(left.spread.map(f32::to_bits), right.spread.map(f32::to_bits), "call {number}");
            assert_eq!(plain.memory(), wide.0.memory(), "call {number}");
            call.next(&mut random);
        }
    }
}
