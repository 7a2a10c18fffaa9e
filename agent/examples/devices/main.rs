//! The same training on every device of this build, and how far the losses are from those of `flex`.
//!
//!     cargo run --release -p dynamiccl-agent --features ndarray --example devices -- [UPDATES]
//!
//! First a made-up rollout of the usual size is gone through in four minibatches, over and over: gradient,
//! clipping, Adam. Then the smoke curriculum is trained for as many updates, from the same seed. Exit code 0:
//! every device of this build ends within the tolerances; 1: one does not; 2: bad usage.

mod made;
mod smoke;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use dynamiccl_agent::Params;
use dynamiccl_agent::adam::{Adam, clip};
use dynamiccl_agent::config::{LossConfig, NetworkConfig};
use dynamiccl_agent::learn::{Coefficients, Counts, Device, Learner, MissingDevice, Part};
use dynamiccl_agent::params::Layout;
use dynamiccl_agent::start::start;
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use made::{normal_ish, rollout, scaling};

const ENVIRONMENTS: usize = 64;
const STEPS: usize = 64;
const MINIBATCHES: usize = 4;
const PRIVILEGED: usize = 8;
/// How far losses may be apart after all updates, relative to their size.
const TOLERANCE: f32 = 1e-3;
/// The same where policies act in between: one choice that falls otherwise leads elsewhere.
const SMOKE_TOLERANCE: f32 = 0.05;

/// What a device comes to.
struct Trained {
    first: f32,
    last: f32,
    /// Milliseconds of a gradient, or of an update of the curriculum.
    ms: f64,
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
    println!(
        "# {ENVIRONMENTS} x {STEPS} calls in {MINIBATCHES} minibatches, {updates} times; ms of a gradient"
    );
    let same = table(TOLERANCE, |device| trained(device, updates));
    println!("# smoke curriculum, {updates} updates; ms of an update");
    let same_smoke = table(SMOKE_TOLERANCE, |device| smoke::trained(device, updates));
    if same && same_smoke { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A row for each device; whether all of them end where the first does.
fn table(tolerance: f32, train: impl Fn(Device) -> Result<Trained, MissingDevice>) -> bool {
    println!("# {:<9}  {:>10}  {:>10}  {:>8}  {:>8}", "device", "first loss", "last loss", "apart", "ms");
    let (mut flex, mut fine) = (None, true);
    for device in Device::ALL {
        let Ok(Trained { first, last, ms }) = train(device) else {
            println!("  {device:<9}  not in this build");
            continue;
        };
        let apart = (last - *flex.get_or_insert(last)).abs() / last.abs().max(1.0);
        // A loss that is no number is not near any other.
        fine &= apart <= tolerance;
        println!("  {device:<9}  {first:10.6}  {last:10.6}  {apart:8.1e}  {ms:8.2}");
    }
    println!("# apart: of the last losses, relative; at most {tolerance}");
    fine
}

/// Goes through the rollout over and over on a device.
fn trained(device: Device, updates: usize) -> Result<Trained, MissingDevice> {
    let network = NetworkConfig::default();
    let layout = Arc::new(Layout::new(&network, PRIVILEGED));
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut params = Params::new(Arc::clone(&layout));
    let rollout = rollout(network.memory, &mut rng);
    let numbers: [Vec<f32>; 3] = std::array::from_fn(|_| normal_ish(rollout.rows(), &mut rng));
    let [advantages, returns, values] = &numbers;
    let context_scaling = scaling(&rollout.contexts, CONTEXT_WIDTH);
    let history_scaling = scaling(&rollout.histories, HISTORY_WIDTH);
    start(&mut params, &context_scaling, &history_scaling, true, &mut rng);
    let learner = Learner::new(Arc::clone(&layout), device)?;
    let coefficients = Coefficients { of: LossConfig::default(), clip: 0.2, entropy: 0.01 };
    let (mut adam, pace) = (Adam::new(layout.len()), vec![1.0; layout.len()]);
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
            of.push(share.losses.total(&coefficients) as f32);
            clip(&mut share.gradient, 0.5);
            adam.step(params.values_mut(), &share.gradient, 1e-3, &pace);
        }
        if update == 0 {
            // A device may compile what it runs when it runs first.
            begun = Instant::now();
        }
    }
    let ms = 1e3 * begun.elapsed().as_secs_f64() / (updates * MINIBATCHES) as f64;
    Ok(Trained { first: mean(&of[..MINIBATCHES]), last: mean(&of[of.len() - MINIBATCHES..]), ms })
}

fn mean(losses: &[f32]) -> f32 {
    losses.iter().sum::<f32>() / losses.len() as f32
}
