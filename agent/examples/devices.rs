//! The same updates on every device of this build, and how far their losses are from those of `flex`.
//!
//!     cargo run --release -p dynamiccl-agent --features ndarray --example devices -- [UPDATES]
//!
//! A made-up rollout of the usual size (64 sequences × 64 calls, all roles, masks and sources) is gone
//! through in four minibatches, over and over: gradient, clipping, Adam. Every device begins with the same
//! parameters. Exit code 0: every device that could be opened ends within the tolerance; 1: one does not,
//! or cannot be used; 2: bad usage.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use dynamiccl_agent::adam::{Adam, clip};
use dynamiccl_agent::config::{LossConfig, NetworkConfig};
use dynamiccl_agent::learn::{Coefficients, Counts, Device, Learner, Losses, MissingDevice, Part};
use dynamiccl_agent::params::Layout;
use dynamiccl_agent::rollout::{Rollout, Source, Truth};
use dynamiccl_agent::{Normaliser, Params};
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH, catalogue};
use dynamiccl_spec::{Head, Mask, Role};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const ENVIRONMENTS: usize = 64;
const STEPS: usize = 64;
const MINIBATCHES: usize = 4;
const PRIVILEGED: usize = 8;
/// How far losses may be apart after all updates, relative to their size.
const TOLERANCE: f32 = 1e-3;

/// What a device comes to.
struct Trained {
    first: f32,
    last: f32,
    seconds: f64,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let updates: usize = match (args.next().map(|word| word.parse()), args.next()) {
        (None, None) => 20,
        (Some(Ok(updates)), None) if updates > 0 => updates,
        _ => {
            eprintln!("devices [UPDATES]: how many times to go through the rollout, 1 or more");
            return ExitCode::from(2);
        }
    };
    println!("# {ENVIRONMENTS} x {STEPS} calls, {MINIBATCHES} minibatches, {updates} updates");
    println!(
        "# {:<9}  {:>10}  {:>10}  {:>8}  {:>12}",
        "device", "first loss", "last loss", "apart", "ms a batch"
    );
    let mut flex = None;
    let mut fine = true;
    for device in Device::ALL {
        let trained = match trained(device, updates) {
            Ok(trained) => trained,
            Err(MissingDevice(_)) => {
                println!("  {device:<9}  not in this build");
                continue;
            }
        };
        let usual = *flex.get_or_insert(trained.last);
        let apart = (trained.last - usual).abs() / usual.abs().max(1.0);
        fine &= apart <= TOLERANCE;
        let ms = 1e3 * trained.seconds / (updates * MINIBATCHES) as f64;
        println!("  {device:<9}  {:10.6}  {:10.6}  {apart:8.1e}  {ms:12.2}", trained.first, trained.last);
    }
    println!("# apart: of the last losses, relative; at most {TOLERANCE:.0e}");
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Goes through the rollout over and over on a device.
fn trained(device: Device, updates: usize) -> Result<Trained, MissingDevice> {
    let network = NetworkConfig::default();
    let layout = Arc::new(Layout::new(&network, PRIVILEGED));
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut params = Params::new(Arc::clone(&layout), &mut rng);
    let rollout = rollout(network.memory, &mut rng);
    let numbers: [Vec<f32>; 3] = std::array::from_fn(|_| normal_ish(rollout.rows(), &mut rng));
    let [advantages, returns, values] = &numbers;
    let context_scaling = scaling(&rollout.contexts, CONTEXT_WIDTH);
    let history_scaling = scaling(&rollout.histories, HISTORY_WIDTH);
    let learner = Learner::new(Arc::clone(&layout), device)?;
    let coefficients = Coefficients { of: LossConfig::default(), clip: 0.2, entropy: 0.01 };
    let mut adam = Adam::new(layout.len());
    let mut of = Vec::new();
    let environments: Vec<usize> = (0..ENVIRONMENTS).collect();
    let mut begun = Instant::now();
    for update in 0..=updates {
        for environments in environments.chunks(ENVIRONMENTS / MINIBATCHES) {
            let part = Part {
                rollout: &rollout,
                environments,
                context_scaling: &context_scaling,
                history_scaling: &history_scaling,
                advantages,
                returns,
                values,
                counts: Counts::of(&rollout, environments),
            };
            let mut share = learner.gradient(&params, &part, &coefficients);
            of.push(total(&share.losses, &coefficients));
            clip(&mut share.gradient, 0.5);
            adam.step(params.values_mut(), &share.gradient, 1e-3);
        }
        if update == 0 {
            // A device may compile what it runs when it runs first.
            begun = Instant::now();
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
    Ok(Trained { first: mean(&of[..MINIBATCHES]), last: mean(&of[of.len() - MINIBATCHES..]), seconds })
}

/// What is minimised.
fn total(losses: &Losses, by: &Coefficients) -> f32 {
    let entropy: f32 = losses.entropy.iter().zip(by.of.entropy_heads).map(|(entropy, of)| entropy * of).sum();
    by.of.policy * losses.policy + by.of.value * losses.value - by.entropy * entropy
        + by.of.hindsight * losses.hindsight
        + by.of.estimate * losses.estimate
        + by.of.gain * losses.gain
}

fn scaling(rows: &[f32], width: usize) -> Vec<(f32, f32)> {
    let mut normaliser = Normaliser::new(width);
    normaliser.learn(rows.chunks_exact(width));
    normaliser.scaling()
}

/// Numbers between −2 and 2, most of them near 0.
fn normal_ish(count: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
    (0..count).map(|_| (0..4).map(|_| rng.random::<f32>() - 0.5).sum()).collect()
}

/// A rollout with everything in it that a real one can have.
fn rollout(memory: usize, rng: &mut ChaCha8Rng) -> Rollout {
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
    rollout.ln_times.push(if row % 3 == 0 { f32::NAN } else { rng.random::<f32>() - 0.5 });
    rollout.gains.push(if row % 3 == 0 { f32::NAN } else { rng.random::<f32>() - 0.5 });
    if row % 8 == 0 {
        let gains = Head::Pair.size() * Head::Channels.size() * Head::Chunk.size();
        let gains = (0..gains).map(|_| rng.random::<f32>() - 0.5).collect();
        rollout.truths.push(Truth { row, gains });
    }
}
