//! A learned controller: a policy file that was trained on photonic rails, behind the trait of all controllers.
//!
//! The file is an ordinary frozen policy. It was trained in the environment `rails-v1` in the clothes of NCCL's
//! knobs ([`Dressed`]), and says so as its curriculum; its path head chooses the path, the first two pairs mean
//! hold and provision.
//!
//! [`Dressed`]: dynamiccl_env::rails::Dressed

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dynamiccl_env::gym::{Env, Observation, Spaces};
use dynamiccl_env::rails::features::{write_context, write_history};
use dynamiccl_env::rails::{Clothes, Controller, Decision, Past, RailsEnv, RailsStage, Request, Route};
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::network::{JobSum, Memory, Network, Scratch, greedy};
use dynamiccl_spec::features::{CALL_WIDTH, JOB_WIDTH};
use dynamiccl_spec::{Head, Mask};

/// The curriculum that a policy must have been trained on.
const CURRICULUM: &str = "rails";

/// A learned controller.
#[derive(Debug)]
pub struct Learned {
    network: Network,
    memory: Memory,
    job: JobSum,
    scratch: Scratch,
    clothes: Clothes,
    bare: Observation,
    worn: Observation,
    /// The embedding of the request before, then what came of it.
    remembered: Vec<f32>,
    began: bool,
}

impl Learned {
    /// Reads a policy.
    pub fn open(file: &Path) -> Result<Learned> {
        let frozen = Frozen::open(file).with_context(|| file.display().to_string())?;
        let trained = &frozen.about.training.curriculum;
        ensure!(
            trained.split(['/', ' ', ',']).any(|word| word == CURRICULUM),
            "{}: it was trained on \"{trained}\"; give a policy that was trained on \"{CURRICULUM}\"",
            file.display()
        );
        Learned::new(&frozen).with_context(|| file.display().to_string())
    }

    fn new(frozen: &Frozen) -> Result<Learned> {
        let env = RailsEnv::new(Arc::new(RailsStage::builtin()));
        let clothes =
            Clothes::of(env.spaces()).context("the features of rails do not fit this build's network")?;
        let network = Network::new(&frozen.weights);
        let privileged = env.spaces().privileged.clone();
        Ok(Learned {
            memory: network.memory(),
            job: network.job_sum(),
            scratch: network.scratch(),
            remembered: vec![0.0; network.remembered()],
            network,
            clothes,
            bare: Observation::new(env.spaces()),
            worn: Observation::new(&Spaces::of_knobs("rails-v1", privileged)),
            began: false,
        })
    }

    /// Takes in what came of the request before.
    fn take_in(&mut self) {
        let embedding = self.network.shape().embedding;
        self.remembered[embedding..].copy_from_slice(&self.worn.history);
        self.network.step(&self.remembered, &mut self.memory, &mut self.scratch);
        self.network.hold(&mut self.memory);
    }
}

impl Controller for Learned {
    fn name(&self) -> &str {
        "learned"
    }

    fn begin(&mut self) {
        self.network.forget(&mut self.memory);
        self.began = false;
    }

    fn decide(&mut self, request: &Request, past: &Past) -> Decision {
        write_context(request, &mut self.bare.context);
        write_history(past, &mut self.bare.history);
        self.clothes.put_on(&self.bare, &mut self.worn);
        if self.began {
            self.take_in();
        }
        self.began = true;
        let (job, call) = self.worn.context.split_at(JOB_WIDTH);
        let job: &[f32; JOB_WIDTH] = job.as_array().expect("the job's part");
        let call: &[f32; CALL_WIDTH] = call.as_array().expect("the call's part");
        self.network.sum_job(job, &mut self.job);
        let timing = if request.surprise { 0b01 } else { 0b11 };
        let mask = Mask::FIRST.with(Head::Path, 0b111).with(Head::Pair, timing);
        let choose = |_, logits: &[f32]| greedy(logits, 0);
        let acted = self.network.act(&self.job, call, &self.memory, &mask, &mut self.scratch, choose);
        let embedding = self.network.shape().embedding;
        self.remembered[..embedding].copy_from_slice(self.scratch.embedding());
        let route = Route::ALL[acted.choice.index(Head::Path)];
        Decision { route, provision: acted.choice.index(Head::Pair) == 1 }
    }
}
