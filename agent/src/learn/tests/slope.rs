//! A gradient is the slope of the loss, however it is worked out.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::made::{Made, SMALL, only, uniform};
use crate::learn::{Coefficients, Device, Learner, Share};
use crate::params::Params;

const LOSSES: [&str; 9] =
    ["policy", "value", "entropy", "hindsight", "resources", "worth", "estimate", "gain", "all"];

fn share(made: &Made, learner: &Learner, params: &Params, by: &Coefficients) -> Share {
    let all = made.all();
    made.with_part(&all, &all, |part| learner.gradient(params, part, by))
}

/// The slope in a direction, by the loss a little to both sides.
fn measured(made: &Made, learner: &Learner, direction: &[f32], by: &Coefficients) -> f64 {
    const STEP: f32 = 2e-3;
    let side = |step: f32| {
        let mut params = made.params.clone();
        params.values_mut().iter_mut().zip(direction).for_each(|(x, along)| *x += step * along);
        share(made, learner, &params, by).losses.total(by)
    };
    (side(STEP) - side(-STEP)) / (2.0 * f64::from(STEP))
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn norm(a: &[f32]) -> f64 {
    dot(a, a).sqrt()
}

#[test]
fn the_gradient_of_each_loss_is_its_slope() {
    let made = Made::new(SMALL, 3, 12, 1);
    let learner = Learner::new(made.params.layout().clone(), Device::Flex).unwrap();
    for name in LOSSES {
        let by = only(name);
        let gradient = share(&made, &learner, &made.params, &by).gradient;
        let length = norm(&gradient) as f32;
        assert!(length > 1e-3, "{name}: {length}");
        // Along the gradient of each tensor, where the slope is not lost among roundings; half of it random.
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for tensor in made.params.layout().tensors() {
            let of_tensor = norm(&gradient[tensor.range.clone()]) as f32;
            if of_tensor < 1e-3 * length {
                continue;
            }
            let mut direction = vec![0.0; gradient.len()];
            for at in tensor.range.clone() {
                direction[at] = gradient[at] / of_tensor * uniform(&mut rng, 0.0, 1.0);
            }
            let (claimed, measured) =
                (dot(&gradient, &direction), measured(&made, &learner, &direction, &by));
            // The loss itself is rounded to 1e-7, which a step of 2e-3 makes 1e-4 of the slope.
            let error = (claimed - measured).abs();
            assert!(
                error < 1e-2 * claimed.abs() + 1e-4,
                "{name}, {}: {claimed} claimed, {measured} measured",
                tensor.name
            );
        }
    }
}

#[test]
fn both_ways_through_the_memory_have_one_gradient() {
    for (environments, steps, seed) in [(3, 12, 1), (1, 1, 2), (5, 30, 3)] {
        let made = Made::new(SMALL, environments, steps, seed);
        let layout = made.params.layout().clone();
        let own = Learner::new(layout.clone(), Device::Flex).unwrap();
        let graph = Learner::on_graph(layout.clone(), Device::Flex).unwrap();
        for name in LOSSES {
            let by = only(name);
            let [own, graph] = [&own, &graph].map(|learner| share(&made, learner, &made.params, &by));
            let error = (own.losses.total(&by) - graph.losses.total(&by)).abs();
            assert!(error < 1e-5, "{name}: {:?}, {:?}", own.losses, graph.losses);
            let longest = norm(&own.gradient).max(1e-6);
            for tensor in layout.tensors() {
                let [a, b] = [&own, &graph].map(|share| &share.gradient[tensor.range.clone()]);
                let apart: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
                assert!(norm(&apart) <= 1e-3 * norm(a) + 1e-5 * longest, "{name}, {}", tensor.name);
            }
        }
    }
}
