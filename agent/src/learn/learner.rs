//! From a part of a rollout to its share of the gradient.
//!
//! Nothing is kept between calls, so that threads can share a learner, and what one is told does not
//! depend on the others.

use std::sync::Arc;

use burn::tensor::Device as Backend;

use super::critic;
use super::device::{Device, MissingDevice};
use super::leaves::Leaves;
use super::recall::Recalled;
use super::sequences::{Inputs, Sequences};
use super::tanh::Tanh;
use super::work::Work;
use super::{Coefficients, Part, Share};
use crate::params::{Layout, Params};

/// Works out gradients.
#[derive(Debug, Clone)]
pub struct Learner {
    layout: Arc<Layout>,
    device: Backend,
    whole_graph: bool,
}

/// What comes after sequences: a row for each.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    /// Contexts of the next calls, as they are shown.
    pub contexts: &'a [f32],
    /// What only the critic sees of them.
    pub privileged: &'a [f32],
    /// The h that a decision about them sees.
    pub hidden: &'a [f32],
}

/// What the critic says, in units of normalised returns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values {
    /// Of every call: sequence by sequence, in the order in which these were asked for.
    pub calls: Vec<f32>,
    /// Of what comes after each sequence.
    pub next: Vec<f32>,
}

impl Learner {
    /// A learner of parameters with this layout. On [`Device::Flex`] and [`Device::Ndarray`] the LSTM has a
    /// backward of our own; elsewhere burn differentiates it.
    pub fn new(layout: Arc<Layout>, device: Device) -> Result<Self, MissingDevice> {
        let whole_graph = matches!(device, Device::Libtorch | Device::Cuda);
        Ok(Learner { layout, device: device.open()?, whole_graph })
    }

    /// The same, where burn differentiates the LSTM whatever the device.
    pub fn on_graph(layout: Arc<Layout>, device: Device) -> Result<Self, MissingDevice> {
        Ok(Learner { whole_graph: true, ..Self::new(layout, device)? })
    }

    /// Where each parameter lies.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// This part's share of gradient and losses.
    pub fn gradient(&self, params: &Params, part: &Part<'_>, coefficients: &Coefficients) -> Share {
        let work = Work::new(params, part, coefficients, self.device.clone().autodiff());
        if self.whole_graph { work.on_graph() } else { work.on_cpu() }
    }

    /// What the critic says of every call of these sequences, and of what comes after each of them.
    pub fn values(&self, params: &Params, of: &Sequences<'_>, next: &Next<'_>) -> Values {
        let inputs = Inputs::new(of, self.layout.shape.memory);
        let recalled = Recalled::new(params, &inputs);
        let tanh = if self.whole_graph { Tanh::Device } else { Tanh::Host };
        let leaves = Leaves::new(params, &self.device, tanh, |name| name.starts_with("critic."));
        let mut seen = critic::seen(of.rollout, &inputs);
        critic::add_next(&mut seen, next, of);
        let states = inputs.calls.iter().map(|call| recalled.state(call.state));
        let states = states.chain(next.hidden.chunks_exact(self.layout.shape.memory));
        let said = critic::values(&leaves, critic::joined(&seen, states, &self.device));
        let (by_number, next) = said.split_at(inputs.calls.len());
        let numbers = |sequence: usize| (sequence..by_number.len()).step_by(inputs.count);
        let calls = (0..inputs.count).flat_map(numbers).map(|number| by_number[number]);
        Values { calls: calls.collect(), next: next.to_vec() }
    }
}
