//! A policy that decides about networks that change: the most probable choice, one decision after another, with what
//! it remembers of the job.
//!
//! It sees an environment in the clothes of NCCL's knobs, word for word as it did while it was trained.

use std::sync::Arc;

use dynamiccl_env::gym::{Clothes, Env, Observation, Spaces};
use dynamiccl_env::rails::features::{write_context, write_history};
use dynamiccl_env::rails::{self, Decision, Past, RailsEnv, RailsStage, Request, Route};
use dynamiccl_env::wan::WanEnv;
use dynamiccl_env::wan::control::{self, Move, View};
use dynamiccl_policies::network::{JobSum, Memory, Network, Scratch, Weights, greedy};
use dynamiccl_spec::Mask;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::features::JOB_WIDTH;

/// A policy that decides.
#[derive(Debug, Clone)]
pub struct Actor {
    network: Network,
    memory: Memory,
    job: JobSum,
    scratch: Scratch,
    clothes: Clothes,
    bare: Observation,
    worn: Observation,
    /// The embedding of the decision before, then what came of it.
    remembered: Vec<f32>,
    began: bool,
}

impl Actor {
    /// A policy for rings across datacentres.
    pub fn wan(weights: &Weights) -> Self {
        Actor::new(weights, &WanEnv::space())
    }

    /// A policy for photonic rails.
    pub fn rails(weights: &Weights) -> Self {
        Actor::new(weights, RailsEnv::new(Arc::new(RailsStage::builtin())).spaces())
    }

    fn new(weights: &Weights, spaces: &Spaces) -> Self {
        let network = Network::new(weights);
        Actor {
            memory: network.memory(),
            job: network.job_sum(),
            scratch: network.scratch(),
            remembered: vec![0.0; network.remembered()],
            network,
            clothes: Clothes::of(spaces).expect("an environment of ours fits"),
            bare: Observation::new(spaces),
            worn: Observation::new(&Spaces::of_knobs(&spaces.id, spaces.privileged.clone())),
            began: false,
        }
    }

    fn forget(&mut self) {
        self.network.forget(&mut self.memory);
        self.began = false;
    }

    /// Decides about what the bare observation holds.
    fn act(&mut self) -> [u8; HEADS] {
        self.clothes.put_on(&self.bare, &mut self.worn);
        let width = self.network.shape().embedding;
        if self.began {
            self.remembered[width..].copy_from_slice(&self.worn.history);
            self.network.refresh(&self.remembered, &mut self.memory, &mut self.scratch);
        }
        self.began = true;
        let (job, call) = self.worn.context.split_at(JOB_WIDTH);
        self.network.sum_job(job.as_array().expect("the job's part"), &mut self.job);
        let (call, mask) = (call.as_array().expect("the call's part"), Mask::of_bits(self.worn.mask));
        let choose = |_, logits: &[f32]| greedy(logits, 0);
        let acted = self.network.act(&self.job, call, &self.memory, &mask, &mut self.scratch, choose);
        self.remembered[..width].copy_from_slice(self.scratch.embedding());
        acted.choice.0
    }
}

impl control::Controller for Actor {
    fn begin(&mut self) {
        self.forget();
    }

    fn choose(&mut self, view: &mut View<'_>) -> Move {
        view.observe(&mut self.bare);
        Move::ALL[usize::from(self.act()[0])]
    }
}

impl rails::Controller for Actor {
    fn name(&self) -> &str {
        "learned"
    }

    fn begin(&mut self) {
        self.forget();
    }

    fn decide(&mut self, request: &Request, past: &Past) -> Decision {
        write_context(request, &mut self.bare.context);
        write_history(past, &mut self.bare.history);
        self.bare.mask = RailsEnv::mask(request);
        let choice = self.act();
        Decision { route: Route::ALL[usize::from(choice[0])], provision: choice[1] == 1 }
    }
}
