//! Weights at random.

use crate::network::{Shape, Weights};
use crate::random::Random;

/// Weights under which no head stays still: sums have a spread of about 1, logits one of about 3.
pub fn weights(shape: Shape, seed: u64) -> Weights {
    let mut weights = Weights::untrained(shape);
    for (at, (name, dims)) in shape.tensors().into_iter().enumerate() {
        let mut random = Random::of(seed, at as u64);
        let spread = spread(name, &dims);
        let tensor = weights.get_mut(name).expect("a tensor of this shape");
        tensor.iter_mut().for_each(|x| *x = ((2.0 * random.uniform() - 1.0) * spread) as f32);
    }
    weights.get_mut("pair.anchor").expect("a tensor of every shape").fill(1.0);
    // A guard lets about half of it through.
    weights.get_mut("gain.bias").expect("a tensor of every shape").copy_from_slice(&[0.7, -0.5]);
    weights
}

/// The largest number of a tensor.
fn spread(name: &str, dims: &[usize]) -> f64 {
    let inputs = dims[dims.len().saturating_sub(2)].max(1) as f64;
    match name {
        // Contexts are mostly zeros.
        "embed.weight" => 1.5,
        "gain.weight" | "estimate.weight" => 1.0 / inputs.sqrt(),
        // What is read must not drown what is seen.
        "address.weight" | "address.bias" => 0.5 / inputs.sqrt(),
        _ if name.starts_with("memory") => 1.0,
        _ if name.ends_with("bias") || name.starts_with("resource.pa") => 0.5,
        _ if dims.len() == 1 => 0.5,
        _ if name.ends_with("weight") => 3.0 / inputs.sqrt(),
        _ => 1.0,
    }
}
