//! Any legal knobs, each as likely as the next: what a tuner does that knows nothing.

use dynamiccl_spec::{Choice, Decision, Head, Measure, Query, Tuner};

use crate::random::Random;

/// Draws every head uniformly from what the mask allows.
#[derive(Debug, Clone)]
pub struct Uniform {
    random: Random,
}

impl Uniform {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Uniform { random: Random::new(seed) }
    }

    /// One of the set bits of a head, there must be one.
    fn draw(&mut self, bits: u32) -> u8 {
        let left = (0..self.random.below(bits.count_ones() as usize)).fold(bits, |bits, _| bits & (bits - 1));
        left.trailing_zeros() as u8
    }
}

impl Tuner for Uniform {
    fn name(&self) -> &str {
        "random"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        if let Some(settled) = query.settled() {
            return settled;
        }
        let mask = &query.gated.mask;
        let mut choice = Choice::default();
        for &head in Head::ALL {
            choice.0[head as usize] = self.draw(mask.bits(head));
        }
        Decision::chosen(query, choice.knobs().unwrap_or_else(|| query.own()))
    }
}
