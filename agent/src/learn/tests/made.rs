//! A rollout of random numbers in which everything occurs, and parameters that are all at work.

use std::sync::Arc;

use burn::tensor::Device as Backend;
use dynamiccl_policies::network::Shape;
use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH, JOB_WIDTH};
use dynamiccl_spec::ids::PAIRS;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::config::{LossConfig, NetworkConfig};
use crate::learn::chosen::Chosen;
use crate::learn::heads::{Said, heads};
use crate::learn::leaves::{Leaves, matrix, numbers};
use crate::learn::recall::Recalled;
use crate::learn::sequences::{Inputs, Sequences};
use crate::learn::tanh::Tanh;
use crate::learn::thoughts::Thoughts;
use crate::learn::{Coefficients, Counts, Part};
use crate::normal::Normaliser;
use crate::params::{Layout, Params};
use crate::rollout::{Rollout, Source, Truth};
use crate::start::start;

pub const PRIVILEGED: usize = 5;
/// A small network; every width is another.
pub const SMALL: NetworkConfig =
    NetworkConfig { embedding: 16, memory: 24, expert: 40, resource: 8, critic: 12, table: false };

pub struct Made {
    pub params: Params,
    pub rollout: Rollout,
    pub normalisers: [Normaliser; 2],
    pub advantages: Vec<f32>,
    pub returns: Vec<f32>,
    pub values: Vec<f32>,
}

pub fn uniform(rng: &mut ChaCha8Rng, low: f32, high: f32) -> f32 {
    low + (high - low) * rng.random::<f32>()
}

impl Made {
    pub fn new(network: NetworkConfig, environments: usize, steps: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let layout = Arc::new(Layout::new(&network, PRIVILEGED));
        let mut params = Params::new(layout);
        let unscaled = |width| Normaliser::new(width).scaling();
        start(&mut params, &unscaled(CONTEXT_WIDTH), &unscaled(HISTORY_WIDTH), false, &mut rng);
        params.values_mut().iter_mut().for_each(|x| *x += uniform(&mut rng, -0.3, 0.3));
        let rollout = rollout(network.shape(), environments, steps, &mut rng);
        let mut normalisers = [Normaliser::new(CONTEXT_WIDTH), Normaliser::new(HISTORY_WIDTH)];
        normalisers[0].learn(rollout.contexts.chunks_exact(CONTEXT_WIDTH));
        let whole = |row: &&[f32]| row.iter().all(|x| !x.is_nan());
        normalisers[1].learn(rollout.histories.chunks_exact(HISTORY_WIDTH).filter(whole));
        let rows = rollout.rows();
        let mut numbers = |low, high| (0..rows).map(|_| uniform(&mut rng, low, high)).collect::<Vec<_>>();
        let (advantages, returns) = (numbers(-2.0, 2.0), numbers(-1.0, 1.0));
        let mut made = Made { params, rollout, normalisers, advantages, returns, values: Vec::new() };
        // What acted was not far from what learns.
        let (said, rows) = made.said();
        for (at, row) in rows.into_iter().enumerate() {
            let taken = |head: usize| {
                let ln = numbers_of(&said, head);
                ln[at * Head::ALL[head].size() + usize::from(made.rollout.choices[row][head])]
            };
            let ln: f32 = (0..HEADS).map(taken).sum();
            made.rollout.ln_probabilities[row] = ln + uniform(&mut rng, -0.4, 0.4);
        }
        made.values = made.returns.iter().map(|x| x + uniform(&mut rng, -0.5, 0.5)).collect();
        made
    }

    pub fn scaling(&self) -> [Vec<(f32, f32)>; 2] {
        self.normalisers.each_ref().map(Normaliser::scaling)
    }

    pub fn all(&self) -> Vec<usize> {
        (0..self.rollout.environments).collect()
    }

    /// Does something with a part of some environments, whose losses are means over `among`.
    pub fn with_part<T>(
        &self,
        environments: &[usize],
        among: &[usize],
        then: impl FnOnce(&Part<'_>) -> T,
    ) -> T {
        let [context_scaling, history_scaling] = self.scaling();
        then(&Part {
            rollout: &self.rollout,
            environments,
            context_scaling: &context_scaling,
            history_scaling: &history_scaling,
            advantages: &self.advantages,
            returns: &self.returns,
            values: &self.values,
            counts: Counts::of(&self.rollout, among),
        })
    }

    /// What the network says of the calls from which is learned, and which rows these are.
    pub fn said(&self) -> (Said, Vec<usize>) {
        self.with_part(&self.all(), &self.all(), |part| {
            let part = Part { values: &self.returns, ..*part };
            let device = Backend::flex();
            let shape = self.params.layout().shape;
            let inputs = Inputs::new(&part.sequences(), shape.memory);
            let recalled = Recalled::new(&self.params, &inputs);
            let chosen = Chosen::new(&self.rollout, &inputs);
            let leaves = Leaves::new(&self.params, &device, Tanh::Host, |_| true);
            let first = Thoughts::new(&self.params, &chosen, &recalled).first().map(|sums| {
                let columns = sums.len() / chosen.calls.len();
                matrix(sums, [chosen.calls.len(), columns], &device)
            });
            let said = heads(&leaves, first, &chosen.targets(&part, &device));
            (said, chosen.calls.iter().map(|call| call.row).collect())
        })
    }

    /// h after each call, sequence by sequence.
    pub fn hidden(&self) -> Vec<Vec<f32>> {
        let [context_scaling, history_scaling] = self.scaling();
        let (rollout, environments) = (&self.rollout, &self.all()[..]);
        let of = Sequences {
            rollout,
            environments,
            context_scaling: &context_scaling,
            history_scaling: &history_scaling,
        };
        let inputs = Inputs::new(&of, self.params.layout().shape.memory);
        let recalled = Recalled::new(&self.params, &inputs);
        let after = |row: usize| {
            let (environment, step) = (row / rollout.steps, row % rollout.steps);
            let state = inputs.count + 1 + step * inputs.count + environment;
            recalled.state(state).to_vec()
        };
        (0..rollout.rows()).map(after).collect()
    }
}

pub fn numbers_of(said: &Said, head: usize) -> Vec<f32> {
    numbers(said.ln_probabilities[head].clone())
}

/// Coefficients under which only one loss counts, or all.
pub fn only(name: &str) -> Coefficients {
    let weight = |of: &str| if name == of || name == "all" { 1.0 } else { 0.0 };
    let of = LossConfig {
        policy: weight("policy"),
        value: weight("value"),
        hindsight: weight("hindsight"),
        resources: weight("resources"),
        worth: weight("worth"),
        estimate: weight("estimate"),
        gain: weight("gain"),
        entropy_heads: [1.0, 0.5, 0.7, 0.3, 1.1],
        ..LossConfig::default()
    };
    Coefficients { of, clip: 0.2, entropy: weight("entropy") }
}

fn rollout(shape: Shape, environments: usize, steps: usize, rng: &mut ChaCha8Rng) -> Rollout {
    let rows = environments * steps;
    let contexts = (0..environments * (steps + 1)).flat_map(|_| context(rng)).collect();
    let states = (0..environments * 3 * shape.memory).map(|_| uniform(rng, -0.8, 0.8)).collect();
    let privileged = (0..rows * PRIVILEGED).map(|_| uniform(rng, -1.0, 1.0)).collect();
    let mut made = Rollout {
        environments,
        steps,
        privileged_width: PRIVILEGED,
        contexts,
        states,
        privileged,
        ln_probabilities: vec![0.0; rows],
        rewards: vec![0.0; rows],
        terminated: vec![false; rows],
        truncated: vec![false; rows],
        ..Rollout::default()
    };
    for row in 0..rows {
        add_call(&mut made, row, rng);
    }
    made
}

fn add_call(made: &mut Rollout, row: usize, rng: &mut ChaCha8Rng) {
    let step = row % made.steps;
    let begins = rng.random::<f32>() < 0.1;
    // What means nothing must not matter.
    let history = |rng: &mut ChaCha8Rng| if begins { f32::NAN } else { uniform(rng, -1.0, 1.0) };
    made.histories.extend((0..HISTORY_WIDTH).map(|_| history(rng)));
    made.begins.push(begins);
    made.sources.push(match rng.random_range(0..4) {
        0 => Source::Held,
        1 => Source::Initial,
        _ => Source::After(rng.random_range(0..=step) as u16),
    });
    let mask =
        if rng.random::<f32>() < 0.2 { [1; HEADS] } else { std::array::from_fn(|head| bits(head, rng)) };
    let choice = std::array::from_fn(|head| {
        let allowed: Vec<usize> = (0..32).filter(|at| mask[head] >> at & 1 == 1).collect();
        allowed[rng.random_range(0..allowed.len())] as u8
    });
    let decides = mask.iter().any(|bits: &u32| bits.count_ones() > 1);
    made.masks.push(mask);
    made.choices.push(choice);
    made.decides.push(decides);
    made.drawn.push(decides && rng.random::<f32>() < 0.8);
    let mut or_none = |far: f32| if rng.random::<f32>() < 0.3 { f32::NAN } else { uniform(rng, -far, far) };
    made.ln_times.push(or_none(1.5));
    made.gains.push(or_none(0.7));
    if decides && rng.random::<f32>() < 0.25 {
        let gains = PAIRS * Head::Channels.size() * Head::Chunk.size();
        let gain =
            |rng: &mut ChaCha8Rng| if rng.random::<f32>() < 0.1 { f32::NAN } else { uniform(rng, -1.5, 0.7) };
        let gains = (0..gains).map(|_| gain(rng)).collect();
        let tried = if rng.random() { u32::MAX } else { rng.random() };
        // Paths 0 and 2: NCCL's and the schedule's.
        let schedule = if mask[Head::Path as usize] & 0b101 == 0b101 { 0.3 } else { f32::NAN };
        made.truths.push(Truth { row, gains, schedule, own: [0.2; PAIRS], tried });
    }
}

/// At least one choice of a head.
fn bits(head: usize, rng: &mut ChaCha8Rng) -> u32 {
    let size = Head::ALL[head].size() as u32;
    let bits = rng.random::<u32>() & ((1 << size) - 1);
    if rng.random::<f32>() < 0.2 {
        1 << rng.random_range(0..size)
    } else {
        bits | 1 << rng.random_range(0..size)
    }
}

fn context(rng: &mut ChaCha8Rng) -> [f32; CONTEXT_WIDTH] {
    let mut context = std::array::from_fn(|_| if rng.random() { 0.0 } else { uniform(rng, -1.0, 1.0) });
    let role = slot("pipeline_role").unwrap();
    context[role.clone()].fill(0.0);
    context[rng.random_range(role)] = 1.0;
    let cost = slot("nccl_cost").unwrap();
    context[JOB_WIDTH..][cost].iter_mut().for_each(|x| *x = uniform(rng, 0.0, 0.3));
    context
}
