//! Writing a program call by call: compute adds up until the next call, which takes it as its window.

use dynamiccl_spec::context::PRIORITY_MAX;
use dynamiccl_spec::{Collective, Role};

use super::group::Group;
use super::planned::{Phase, Planned, Program};
use super::recipe::Recipe;

/// Priority of activations: somebody always waits for them.
pub(super) const ACTIVATION: u8 = PRIORITY_MAX;
/// Priority of gathered parameters: needed one layer later.
pub(super) const PARAMETER: u8 = 6;
/// Priority of the optimizer's short calls.
pub(super) const SCALAR: u8 = 5;
/// Gradients have the priorities from this one down to 1.
pub(super) const GRADIENT: u8 = 4;

/// A program in the making.
pub(super) struct Script<'a> {
    /// The job.
    pub recipe: &'a Recipe,
    /// The stage whose program this is.
    pub stage: u8,
    /// Where in the iteration the next call lies.
    pub phase: Phase,
    /// The micro-batch of the next call.
    pub micro_batch: Option<u32>,
    flops_per_us: f64,
    pending: f64,
    needs: Option<u32>,
    calls: Vec<Planned>,
}

impl<'a> Script<'a> {
    /// An empty program.
    pub(super) fn new(recipe: &'a Recipe, stage: u8, flops_per_us: f64) -> Self {
        let (phase, micro_batch, needs) = (Phase::WarmUp, None, None);
        Script { recipe, stage, phase, micro_batch, flops_per_us, pending: 0.0, needs, calls: Vec::new() }
    }

    /// Work of this many floating-point operations.
    pub(super) fn compute(&mut self, flops: f64) {
        self.pending += flops / self.flops_per_us;
    }

    /// A collective for which the rank waits; nothing where the group is one rank.
    pub(super) fn wait(&mut self, group: Group, collective: Collective, bytes: u64, priority: u8) {
        self.call(group, collective, bytes, priority, true);
    }

    /// A collective beside which compute goes on.
    pub(super) fn start(&mut self, group: Group, collective: Collective, bytes: u64, priority: u8) {
        self.call(group, collective, bytes, priority, false);
    }

    /// Makes the next call wait for the one at this position.
    pub(super) fn need(&mut self, at: Option<u32>) {
        self.needs = self.needs.max(at);
    }

    /// Number of calls so far.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Says that all calls since `first` are launched together.
    pub(super) fn fuse(&mut self, first: usize) {
        let together = (self.calls.len() - first) as u32;
        self.calls[first..].iter_mut().for_each(|call| call.pipelined = together);
    }

    /// Sends activations, or their gradients, to another stage.
    pub(super) fn send(&mut self, peer: u8, bytes: u64) {
        self.transfer(peer, bytes, Role::ActivationSend);
    }

    /// Waits for what another stage sends.
    pub(super) fn receive(&mut self, peer: u8, bytes: u64) {
        self.transfer(peer, bytes, Role::ActivationRecv);
    }

    /// The finished program.
    pub(super) fn finish(self) -> Program {
        Program { calls: self.calls, tail: self.pending }.hide()
    }

    fn transfer(&mut self, peer: u8, bytes: u64, role: Role) {
        let blocking = role == Role::ActivationRecv;
        self.call(Group::Pipeline, Collective::SendRecv, bytes, ACTIVATION, blocking);
        if let Some(call) = self.calls.last_mut() {
            (call.role, call.peer) = (role, Some(peer));
        }
    }

    fn call(&mut self, group: Group, collective: Collective, bytes: u64, priority: u8, blocking: bool) {
        if self.recipe.layout.size(group) == 1 || bytes == 0 {
            return;
        }
        self.calls.push(Planned {
            group,
            collective,
            bytes,
            role: group.role(),
            stage: self.stage,
            priority: Some(priority),
            window: std::mem::take(&mut self.pending),
            beside: 0.0,
            pipelined: 1,
            peer: None,
            micro_batch: self.micro_batch,
            phase: self.phase,
            blocking,
            needs: self.needs.take(),
        });
    }
}
