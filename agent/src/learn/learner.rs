//! From a part of a rollout to its share of the gradient.
//!
//! Nothing is kept between calls, so that threads can share a learner, and what one is told does not
//! depend on the others.

use std::sync::Arc;

use burn::tensor::Device as Backend;

use super::device::{Device, MissingDevice};
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

impl Learner {
    /// A learner of parameters with this layout. On [`Device::Flex`] and [`Device::Ndarray`] burn differentiates losses
    /// and resources alone, and what leads to them has a backward of our own; elsewhere burn differentiates everything.
    pub fn new(layout: Arc<Layout>, device: Device) -> Result<Self, MissingDevice> {
        let whole_graph = matches!(device, Device::Libtorch | Device::Cuda);
        Ok(Learner { layout, device: device.open()?, whole_graph })
    }

    /// The same, where burn differentiates everything whatever the device.
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
}
