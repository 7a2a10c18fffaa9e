//! Drawing a choice from logits, with what is needed to learn from it.

use dynamiccl_policies::network::activation::exp;
use dynamiccl_policies::network::greedy;
use dynamiccl_policies::random::Random;
use dynamiccl_spec::math::ln;

/// Draws the choices of one call, head by head.
#[derive(Debug)]
pub(super) struct Sampler<'a> {
    /// Random numbers.
    pub random: &'a mut Random,
    /// Whether the most probable is taken instead, as a deployed policy does.
    pub greedy: bool,
    /// ln of the probability of all that was drawn.
    pub ln_probability: f32,
    /// Whether something was drawn that is not the most probable.
    pub exploratory: bool,
}

impl Sampler<'_> {
    /// Draws one of the choices of a head; those that the mask forbids have a logit of −∞.
    pub fn draw(&mut self, logits: &[f32]) -> usize {
        let best = greedy(logits, 0);
        let largest = logits[best];
        let mut weights = [0.0_f32; 32];
        let weights = &mut weights[..logits.len()];
        let mut sum = 0.0;
        let mut legal = 0;
        for (weight, &logit) in weights.iter_mut().zip(logits) {
            if logit > f32::NEG_INFINITY {
                *weight = exp(logit - largest);
                sum += *weight;
                legal += 1;
            }
        }
        if legal == 1 || self.greedy {
            return best;
        }
        let chosen = pick(weights, sum * self.random.uniform() as f32).unwrap_or(best);
        self.ln_probability += ln(f64::from(weights[chosen] / sum)) as f32;
        self.exploratory |= chosen != best;
        chosen
    }
}

/// The choice in whose part of the sum a number falls.
fn pick(weights: &[f32], mut at: f32) -> Option<usize> {
    weights.iter().position(|&weight| {
        at -= weight;
        at < 0.0 && weight > 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_as_often_as_their_logits_say_and_forbidden_ones_never() {
        let mut random = Random::new(7);
        let logits = [0.0, f32::NEG_INFINITY, 2.0_f32.ln(), 5.0_f32.ln()];
        let mut counts = [0; 4];
        for _ in 0..80_000 {
            let mut sampler =
                Sampler { random: &mut random, greedy: false, ln_probability: 0.0, exploratory: false };
            let drawn = sampler.draw(&logits);
            counts[drawn] += 1;
            let expected = [0.125_f32, 0.0, 0.25, 0.625][drawn].ln();
            assert!((sampler.ln_probability - expected).abs() < 1e-5);
            assert_eq!(sampler.exploratory, drawn != 3);
        }
        for (count, share) in counts.into_iter().zip([0.125, 0.0, 0.25, 0.625]) {
            assert!((f64::from(count) / 80_000.0 - share).abs() < 0.005, "{counts:?}");
        }
    }

    #[test]
    fn a_single_choice_is_no_choice() {
        let mut random = Random::new(7);
        let mut sampler =
            Sampler { random: &mut random, greedy: false, ln_probability: 0.0, exploratory: false };
        assert_eq!(sampler.draw(&[f32::NEG_INFINITY, -3.0]), 1);
        assert_eq!((sampler.ln_probability, sampler.exploratory, random.state()), (0.0, false, 7));
    }
}
