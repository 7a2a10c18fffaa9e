//! Taking parts of the agent away, to see what they are worth: what starts at nothing and never moves.
//!
//! The learner knows nothing of it. What is missing is missing from the parameters.

use dynamiccl_policies::network::EXPERTS;
use dynamiccl_spec::features::JOB_WIDTH;
use dynamiccl_spec::features::catalogue::{FEATURES, Feature, Origin, Part, slot};

use crate::config::Without;
use crate::params::{Layout, Params};

/// What a run does without, as far as its parameters show it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ablation {
    /// Numbers that are nothing and stay so.
    nothing: Vec<std::ops::Range<usize>>,
    /// Whether all experts are one.
    one_expert: bool,
}

impl Ablation {
    /// What these words leave out of a layout. An error names the first feature that there is not.
    pub fn new(without: &Without, layout: &Layout) -> Result<Self, String> {
        let mut nothing = Vec::new();
        if without.anchor {
            nothing.push(layout.tensor("pair.anchor").range.clone());
        }
        if without.lstm {
            // Nothing of the memory is read, whoever judges.
            nothing.extend(["address.weight", "address.bias"].map(|name| layout.tensor(name).range.clone()));
        }
        if without.feedback {
            // The LSTM sees that a call was, and nothing of what was measured.
            let (lstm, columns) = (&layout.tensor("lstm.weight").range, 4 * layout.shape.memory);
            let measured =
                |feature: &&Feature| feature.part == Part::History && feature.origin == Origin::Measured;
            for rows in FEATURES.iter().filter(measured).filter_map(|feature| slot(feature.name)) {
                let first = lstm.start + (layout.shape.embedding + rows.start) * columns;
                nothing.push(first..first + rows.len() * columns);
            }
        }
        for name in &without.features {
            let rows = context_rows(name).ok_or_else(|| name.clone())?;
            let (embed, columns) = (&layout.tensor("embed.weight").range, layout.shape.embedding);
            nothing.push(embed.start + rows.start * columns..embed.start + rows.end * columns);
        }
        Ok(Ablation { nothing, one_expert: without.experts })
    }

    /// Parameters to start from.
    pub fn start(&self, params: &mut Params) {
        let layout = params.layout().clone();
        self.nothing.iter().for_each(|range| params.values_mut()[range.clone()].fill(0.0));
        if self.one_expert {
            for name in ["expert.weight", "expert.bias"] {
                let values = &mut params.values_mut()[layout.tensor(name).range.clone()];
                let (first, others) = values.split_at_mut(values.len() / EXPERTS);
                others.chunks_exact_mut(first.len()).for_each(|other| other.copy_from_slice(first));
            }
        }
    }

    /// The gradient that is left.
    pub fn gradient(&self, layout: &Layout, gradient: &mut [f32]) {
        self.nothing.iter().for_each(|range| gradient[range.clone()].fill(0.0));
        if self.one_expert {
            for name in ["expert.weight", "expert.bias"] {
                share(&mut gradient[layout.tensor(name).range.clone()]);
            }
        }
    }
}

/// Gives every expert the sum of what all of them should move by.
fn share(experts: &mut [f32]) {
    let width = experts.len() / EXPERTS;
    for at in 0..width {
        let sum: f32 = experts[at..].iter().step_by(width).sum();
        experts[at..].iter_mut().step_by(width).for_each(|slope| *slope = sum);
    }
}

/// Where a feature lies in a context.
fn context_rows(name: &str) -> Option<std::ops::Range<usize>> {
    let feature = FEATURES.iter().find(|feature| feature.name == name)?;
    let slot = slot(name)?;
    match feature.part {
        Part::Job => Some(slot),
        Part::Call => Some(JOB_WIDTH + slot.start..JOB_WIDTH + slot.end),
        Part::History => None,
    }
}
