//! A rollout with everything in it that a real one can have: all roles, masks, sources, gates and truths.

use dynamiccl_agent::Normaliser;
use dynamiccl_agent::rollout::{CHOICES, Rollout, Source, Truth};
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH, catalogue};
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Mask, Role};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::{ENVIRONMENTS, PRIVILEGED, STEPS};

/// What is taken from each number, and what it is multiplied by.
pub fn scaling(rows: &[f32], width: usize) -> Vec<(f32, f32)> {
    let mut normaliser = Normaliser::new(width);
    normaliser.learn(rows.chunks_exact(width));
    normaliser.scaling()
}

/// Numbers between −2 and 2, most of them near 0.
pub fn normal_ish(count: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
    (0..count).map(|_| (0..4).map(|_| rng.random::<f32>() - 0.5).sum()).collect()
}

/// The rollout.
pub fn rollout(memory: usize, rng: &mut ChaCha8Rng) -> Rollout {
    let rows = ENVIRONMENTS * STEPS;
    let mut rollout = Rollout {
        environments: ENVIRONMENTS,
        steps: STEPS,
        privileged_width: PRIVILEGED,
        contexts: (0..(rows + ENVIRONMENTS) * CONTEXT_WIDTH).map(|_| rng.random()).collect(),
        histories: (0..rows * HISTORY_WIDTH).map(|_| rng.random()).collect(),
        privileged: (0..rows * PRIVILEGED).map(|_| rng.random()).collect(),
        states: normal_ish(3 * memory * ENVIRONMENTS, rng),
        ..Rollout::default()
    };
    let roles = catalogue::slot("pipeline_role").expect("a feature");
    for context in rollout.contexts.chunks_exact_mut(CONTEXT_WIDTH) {
        context[roles.clone()].fill(0.0);
        context[roles.start + rng.random_range(0..Role::ALL.len())] = 1.0;
    }
    (0..rows).for_each(|row| add_call(&mut rollout, row, rng));
    rollout
}

fn add_call(rollout: &mut Rollout, row: usize, rng: &mut ChaCha8Rng) {
    let step = (row % STEPS) as u16;
    let mask = Mask::ALL.all_bits().map(|bits| bits & (rng.random::<u32>() | 1));
    let choice = mask.map(|bits| (31 - bits.leading_zeros()) as u8);
    let begins = rng.random::<f32>() < 0.05;
    rollout.masks.push(mask);
    rollout.choices.push(choice);
    rollout.decides.push(rng.random::<f32>() < 0.8);
    rollout.drawn.push(rollout.decides.last() == Some(&true));
    let choices: f32 = mask.iter().map(|bits| bits.count_ones() as f32).product();
    rollout.ln_probabilities.push(-choices.ln());
    rollout.begins.push(begins);
    rollout.sources.push(match (begins, step % 4) {
        (true, _) => Source::Initial,
        (_, 0) => Source::Held,
        (_, back) => Source::After(step - back / 2),
    });
    rollout.rewards.push(-rng.random::<f32>());
    rollout.terminated.push(false);
    rollout.truncated.push(false);
    rollout.ln_times.push(if row.is_multiple_of(3) { f32::NAN } else { rng.random::<f32>() - 0.5 });
    rollout.gains.push(if row.is_multiple_of(3) { f32::NAN } else { rng.random::<f32>() - 0.5 });
    if row.is_multiple_of(8) {
        let mut drawn = |count: usize| (0..count).map(|_| rng.random::<f32>() - 0.5).collect();
        let gains = drawn(CHOICES);
        rollout.truths.push(Truth { row, gains, schedule: f32::NAN, own: [0.2; PAIRS], tried: u32::MAX });
    }
}
