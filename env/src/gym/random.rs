//! Acting at random through the mask: for checks and timings.

use dynamiccl_spec::action::HEADS;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::gym::{Action, Observation};

/// Chooses each head's index at random among the legal ones.
#[derive(Debug, Clone)]
pub struct RandomActor(ChaCha8Rng);

impl RandomActor {
    /// An actor whose choices are a function of the seed.
    pub fn new(seed: u64) -> Self {
        RandomActor(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A legal action, of an observation that allows one.
    pub fn act(&mut self, observation: &Observation) -> Action {
        self.try_act(observation).unwrap_or_default()
    }

    /// A legal action; none where a head allows nothing.
    pub fn try_act(&mut self, observation: &Observation) -> Option<Action> {
        let mut choice = [0; HEADS];
        for (index, bits) in choice.iter_mut().zip(observation.mask) {
            *index = if bits == 0 { return None } else { self.pick(bits) };
        }
        Some(Action { choice, exploratory: false })
    }

    /// The position of one of the bits that are set.
    fn pick(&mut self, bits: u32) -> u8 {
        let count = bits.count_ones();
        if count == 1 {
            return bits.trailing_zeros() as u8;
        }
        let nth = (u64::from(self.0.next_u32()) * u64::from(count)) >> 32;
        let left = (0..nth).fold(bits, |bits, _| bits & (bits - 1));
        left.trailing_zeros() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_legal_indices_are_drawn_and_all_of_them() {
        let mut actor = RandomActor::new(3);
        let bits = 0b1001_0010;
        let drawn: std::collections::BTreeSet<_> = (0..200).map(|_| actor.pick(bits)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [1, 4, 7]);
        assert_eq!(actor.pick(0b100), 2);
    }
}
