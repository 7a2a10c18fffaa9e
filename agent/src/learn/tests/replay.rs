//! The plain network going through a rollout, call by call, as an agent does that acts.

use dynamiccl_policies::network::{Acted, Memory, Network};
use dynamiccl_spec::features::{CALL_WIDTH, CONTEXT_WIDTH, HISTORY_WIDTH, JOB_WIDTH};
use dynamiccl_spec::{Head, Mask};

use super::made::Made;
use crate::rollout::{Rollout, Source};

/// What the plain network says of a call.
pub struct Replayed {
    /// h after the call's history row.
    pub hidden: Vec<f32>,
    /// What its decision saw.
    pub memory: Memory,
    pub acted: Acted,
    pub means: Vec<f32>,
    pub spreads: Vec<f32>,
}

/// The network as it acts.
pub fn network(made: &Made) -> Network {
    Network::new(&made.params.folded(&made.normalisers[0], &made.normalisers[1]))
}

pub fn mask(rollout: &Rollout, row: usize) -> Mask {
    let with = |mask: Mask, &head: &Head| mask.with(head, rollout.masks[row][head as usize]);
    Head::ALL.iter().fold(Mask::ALL, with)
}

pub fn context(rollout: &Rollout, row: usize) -> &[f32; CONTEXT_WIDTH] {
    let (environment, step) = (row / rollout.steps, row % rollout.steps);
    rollout.contexts_of(environment)[(step + 1) * CONTEXT_WIDTH..].first_chunk().unwrap()
}

/// Every sequence begins with an episode, and no decision sees what was held before: the plain network can
/// only begin there.
pub fn from_the_beginning(mut made: Made) -> Made {
    let steps = made.rollout.steps;
    for row in 0..made.rollout.rows() {
        let first = row % steps == 0;
        made.rollout.begins[row] |= first;
        if made.rollout.sources[row] == Source::Held {
            made.rollout.sources[row] = Source::Initial;
        }
    }
    made
}

/// Asks the network about one call; `choose` is told the head and its logits.
pub fn ask(
    made: &Made,
    network: &Network,
    row: usize,
    memory: &Memory,
    choose: impl FnMut(Head, &[f32]) -> usize,
) -> (Acted, Vec<f32>, Vec<f32>) {
    let (mut job, mut scratch) = (network.job_sum(), network.scratch());
    let (of_job, of_call) = context(&made.rollout, row).split_at(JOB_WIDTH);
    network.sum_job(of_job.try_into().unwrap(), &mut job);
    let call: &[f32; CALL_WIDTH] = of_call.try_into().unwrap();
    let acted = network.act(&job, call, memory, &mask(&made.rollout, row), &mut scratch, choose);
    (acted, scratch.estimates().0.to_vec(), network.ln_spreads(&mut scratch).to_vec())
}

/// Goes through a rollout that [begins with episodes](from_the_beginning).
pub fn replay(made: &Made, mut choose: impl FnMut(usize, Head, &[f32]) -> usize) -> Vec<Replayed> {
    let (network, rollout) = (network(made), &made.rollout);
    let mut replayed = Vec::new();
    for environment in 0..rollout.environments {
        let (mut memory, mut scratch) = (network.memory(), network.scratch());
        let mut after: Vec<Memory> = Vec::new();
        for step in 0..rollout.steps {
            let row = environment * rollout.steps + step;
            if rollout.begins[row] {
                network.forget(&mut memory);
            } else {
                let mut call = embedding(made, &network, environment, step);
                call.extend(&rollout.histories_of(environment)[step * HISTORY_WIDTH..][..HISTORY_WIDTH]);
                network.refresh(&call, &mut memory, &mut scratch);
            }
            after.push(memory.clone());
            let seen = match rollout.sources[row] {
                Source::After(step) => after[usize::from(step)].clone(),
                _ => network.memory(),
            };
            let (acted, means, spreads) =
                ask(made, &network, row, &seen, |head, logits| choose(row, head, logits));
            replayed.push(Replayed { hidden: memory.hidden().to_vec(), memory: seen, acted, means, spreads });
        }
    }
    replayed
}

/// The embedding of the call before this one.
fn embedding(made: &Made, network: &Network, environment: usize, step: usize) -> Vec<f32> {
    let (mut job, mut scratch) = (network.job_sum(), network.scratch());
    let context = &made.rollout.contexts_of(environment)[step * CONTEXT_WIDTH..][..CONTEXT_WIDTH];
    network.sum_job(context[..JOB_WIDTH].try_into().unwrap(), &mut job);
    network.embed(&job, context[JOB_WIDTH..].try_into().unwrap(), &mut scratch).to_vec()
}
