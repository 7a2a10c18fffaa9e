//! What an agent starts from: NCCL's default and a memory that is a table, or a policy that is there already.
//!
//! Heads start at zero, so the anchor alone decides and every choice is NCCL's own until something is
//! measured; the layers below them start random.

use dynamiccl_policies::network::Weights;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::config::Config;
use crate::memory_table;
use crate::normal::Scaling;
use crate::params::{Layout, Params, Tensor};

/// How open forget gates are.
const OPEN: f32 = 3.0;

/// Puts parameters at the start.
pub fn start(
    params: &mut Params,
    contexts: &Scaling,
    histories: &Scaling,
    table: bool,
    rng: &mut ChaCha8Rng,
) {
    let layout = params.layout().clone();
    for tensor in layout.tensors() {
        at_random(tensor, params.tensor_mut(tensor.name), rng);
    }
    if table {
        memory_table::lay(params, contexts, histories);
    }
}

/// Puts parameters where a policy left them; what it has not, the critic, starts at random.
pub fn go_on(params: &mut Params, policy: &Weights, rng: &mut ChaCha8Rng) {
    let layout = params.layout().clone();
    for tensor in layout.tensors() {
        let values = params.tensor_mut(tensor.name);
        match policy.get(tensor.name) {
            Some(known) => values.copy_from_slice(known),
            None => at_random(tensor, values, rng),
        }
    }
}

/// What share of the learning rate each parameter gets.
pub fn pace(config: &Config, layout: &Layout) -> Vec<f32> {
    if config.network.table {
        memory_table::pace(layout, config.optimiser.memory)
    } else {
        vec![1.0; layout.len()]
    }
}

fn at_random(tensor: &Tensor, values: &mut [f32], rng: &mut ChaCha8Rng) {
    let inputs = match tensor.dims[..] {
        [inputs, _] | [_, inputs, _] => inputs,
        _ => 1,
    };
    let scale = (1.0 / inputs as f32).sqrt();
    match tensor.name {
        "pair.anchor" => values.fill(1.0),
        // An LSTM that keeps what it is told.
        "lstm.bias" => {
            let cells = values.len() / 4;
            values[cells..2 * cells].fill(OPEN);
        }
        "embed.weight"
        | "lstm.weight"
        | "expert.weight"
        | "address.weight"
        | "resource.weight"
        | "critic.first.weight"
        | "critic.second.weight" => values.iter_mut().for_each(|x| *x = scale * normal(rng)),
        // Another resource layer for each pair.
        "resource.pair" | "resource.path" => values.iter_mut().for_each(|x| *x = 0.3 * normal(rng)),
        _ => {}
    }
}

/// A normally distributed number (Box–Muller).
fn normal(rng: &mut ChaCha8Rng) -> f32 {
    let [u, v]: [f64; 2] = [1.0 - rng.random::<f64>(), rng.random()];
    ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
}
