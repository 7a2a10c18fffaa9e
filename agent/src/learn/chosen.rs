//! Calls that decisions or estimates are learned from, and what is known about them, as tensors.
//!
//! Which calls these are, in which order, and every index is worked out here on the host, so that the
//! device only multiplies. Calls are ordered by role: each expert then has rows of its own in one piece.

use std::ops::Range;

use burn::tensor::{Device, Tensor};
use dynamiccl_policies::network::EXPERTS;
use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::features::{CONTEXT_WIDTH, TIME_SCALE};
use dynamiccl_spec::ids::PAIRS;

use super::leaves::matrix;
use super::sequences::{Call, Inputs, costs, role};
use super::{Counts, Part};
use crate::rollout::Rollout;

/// What is added to the logit of a choice that is not allowed: no probability and no gradient is left.
pub(super) const FORBIDDEN: f32 = -1e9;
/// Farthest that a measured ln time may be from the prediction.
pub(super) const FARTHEST_TIME: f32 = 8.0;
/// Farthest that a gain may be from none.
pub(super) const FARTHEST_GAIN: f32 = 3.0;

/// Calls to learn decisions or estimates from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The calls.
    pub calls: Vec<Call>,
    /// Each role's, as far as it has any.
    pub roles: Vec<(usize, Range<usize>)>,
}

/// What is known about these calls.
#[derive(Debug)]
pub(super) struct Targets {
    /// What to add to the logits of each head.
    pub masks: [Tensor<2>; HEADS],
    /// 1 at what was chosen, by head.
    pub choices: [Tensor<2>; HEADS],
    /// ln of NCCL's predicted times ÷ the best.
    pub costs: Tensor<2>,
    /// ln of the probability with which was chosen.
    pub old: Tensor<2>,
    pub advantages: Tensor<2>,
    /// What each call counts in the mean over those in which something was drawn.
    pub drawn: Tensor<2>,
    pub times: Tensor<2>,
    pub timed: Tensor<2>,
    pub gains: Tensor<2>,
    pub gained: Tensor<2>,
}

impl Chosen {
    pub fn new(rollout: &Rollout, inputs: &Inputs) -> Self {
        // Whatever is known in hindsight is of calls that decide something.
        let tells = |row: usize| {
            rollout.decides[row] || !rollout.ln_times[row].is_nan() || !rollout.gains[row].is_nan()
        };
        let mut by_role = vec![Vec::new(); EXPERTS];
        for call in inputs.calls.iter().filter(|call| tells(call.row)) {
            by_role[role(context(rollout, call.row))].push(*call);
        }
        let (mut calls, mut roles) = (Vec::new(), Vec::new());
        for (role, of_role) in by_role.into_iter().enumerate().filter(|(_, calls)| !calls.is_empty()) {
            roles.push((role, calls.len()..calls.len() + of_role.len()));
            calls.extend(of_role);
        }
        Chosen { calls, roles }
    }

    /// What is known about the calls.
    pub fn targets(&self, part: &Part<'_>, device: &Device) -> Targets {
        let (rollout, counts) = (part.rollout, part.counts);
        let column = |of: &dyn Fn(usize) -> f32| {
            matrix(self.calls.iter().map(|call| of(call.row)).collect(), [self.calls.len(), 1], device)
        };
        let weight = |counts_in: bool, count: f32| if counts_in { 1.0 / count } else { 0.0 };
        let known = |x: f32, farthest: f32| if x.is_nan() { 0.0 } else { x.clamp(-farthest, farthest) };
        let Counts { drawn, timed, gained, .. } = counts;
        // What was measured ran with resources that were drawn; hindsight knows the right ones.
        let measured = |row: usize| rollout.truths.is_empty() && !rollout.ln_times[row].is_nan();
        Targets {
            masks: std::array::from_fn(|head| self.mask(rollout, head, device)),
            choices: std::array::from_fn(|head| self.choice(rollout, head, device)),
            costs: self.costs(rollout, device),
            old: column(&|row| if rollout.drawn[row] { rollout.ln_probabilities[row] } else { 0.0 }),
            advantages: column(&|row| if rollout.drawn[row] { part.advantages[row] } else { 0.0 }),
            drawn: column(&|row| weight(rollout.drawn[row], drawn)),
            times: column(&|row| known(rollout.ln_times[row], FARTHEST_TIME)),
            timed: column(&|row| weight(measured(row), timed)),
            gains: column(&|row| known(rollout.gains[row], FARTHEST_GAIN)),
            gained: column(&|row| weight(!rollout.gains[row].is_nan(), gained)),
        }
    }

    fn mask(&self, rollout: &Rollout, head: usize, device: &Device) -> Tensor<2> {
        let size = Head::ALL[head].size();
        let mut numbers = Vec::with_capacity(self.calls.len() * size);
        self.calls.iter().for_each(|call| forbid(rollout.masks[call.row][head], size, &mut numbers));
        matrix(numbers, [self.calls.len(), size], device)
    }

    fn choice(&self, rollout: &Rollout, head: usize, device: &Device) -> Tensor<2> {
        let size = Head::ALL[head].size();
        let mut numbers = vec![0.0; self.calls.len() * size];
        for (row, call) in numbers.chunks_exact_mut(size).zip(&self.calls) {
            row[usize::from(rollout.choices[call.row][head])] = 1.0;
        }
        matrix(numbers, [self.calls.len(), size], device)
    }

    fn costs(&self, rollout: &Rollout, device: &Device) -> Tensor<2> {
        let of = |call: &Call| costs(context(rollout, call.row)).iter().map(|cost| TIME_SCALE * cost);
        let numbers: Vec<f32> = self.calls.iter().flat_map(of).collect();
        matrix(numbers, [self.calls.len(), PAIRS], device)
    }
}

/// Adds what a mask adds to the logits of a head.
pub(super) fn forbid(bits: u32, size: usize, into: &mut Vec<f32>) {
    into.extend((0..size).map(|at| if bits >> at & 1 == 1 { 0.0 } else { FORBIDDEN }));
}

/// The context of a call, as it was shown.
fn context(rollout: &Rollout, row: usize) -> &[f32] {
    let (environment, step) = (row / rollout.steps, row % rollout.steps);
    &rollout.contexts_of(environment)[(step + 1) * CONTEXT_WIDTH..][..CONTEXT_WIDTH]
}
