//! What an agent starts from: NCCL's default, and a memory that is a table.
//!
//! Heads start at zero, so the anchor alone decides and every choice is NCCL's own; the layers below them
//! start random. Left to itself an LSTM takes tens of millions of calls to find out what to remember of
//! them. So most of its cells start with a meaning: how far from what was expected one pair was in one
//! band of sizes, a running mean that is written when such a call was measured and kept otherwise. A call
//! starts with reading the band of its size. Everything stays free to be learned otherwise.

use dynamiccl_policies::network::BANDS;
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::features::{HISTORY_WIDTH, JOB_WIDTH};
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Algorithm, Pair, Protocol};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::normal::Scaling;
use crate::params::{Params, Tensor};

/// log2 of the sizes between two bands.
const EDGES: [f32; BANDS - 1] = [11.0, 13.0, 15.0, 17.0, 19.0, 21.0, 23.0, 25.0, 27.0, 29.0];
/// What log2 of a size has been divided by.
const SIZE_SCALE: f32 = 40.0;
/// What ln of a ratio of times has been divided by.
const TIME_SCALE: f32 = 8.0;
/// How sharply a unit tells sizes below an edge from those above, per octave.
const SHARP: f32 = 2.0;
/// How much two conditions of a write count: that band, a measured time.
const CONDITION: f32 = 7.0;
/// How much the third counts, that pair: less, because what makes one pair slow in a band makes all of them slow.
const SAME_PAIR: f32 = 3.0;
/// What all three leave of a gate's sum: a write replaces half of what was there.
const WRITE: f32 = 0.0;
/// How much a ratio of times fills a cell.
const FILL: f32 = 4.0;
/// How open output gates are.
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
    ignore_memory(params);
    let pairs: Vec<usize> = (0..PAIRS).filter(|&pair| Pair::from_index(pair).is_some_and(exists)).collect();
    let shape = layout.shape;
    if table && shape.embedding >= EDGES.len() && shape.memory >= pairs.len() * BANDS {
        tell_sizes(params, contexts);
        for (at, &pair) in pairs.iter().enumerate() {
            (0..BANDS).for_each(|band| write(params, histories, at * BANDS + band, pair, band));
        }
        look_up(params);
    }
}

/// Whether NCCL has a kernel for a pair.
fn exists(pair: Pair) -> bool {
    matches!(pair.algorithm, Algorithm::Tree | Algorithm::Ring) || pair.protocol == Protocol::Simple
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

/// Lets the first numbers of an embedding say on which side of each edge a size is.
fn tell_sizes(params: &mut Params, contexts: &Scaling) {
    let width = params.layout().shape.embedding;
    let size = JOB_WIDTH + slot("log2_bytes").expect("a feature").start;
    let (mean, scale) = contexts[size];
    for (unit, edge) in EDGES.into_iter().enumerate() {
        let slope = SHARP * SIZE_SCALE;
        let weight = params.tensor_mut("embed.weight");
        weight[unit..].iter_mut().step_by(width).for_each(|x| *x = 0.0);
        weight[size * width + unit] = slope / scale;
        params.tensor_mut("embed.bias")[unit] = slope * mean - SHARP * edge;
    }
}

/// Whether a size is in a band, as weights of an embedding's numbers and a constant: 1 inside, 0 outside.
fn in_band(band: usize) -> (Vec<(usize, f32)>, f32) {
    let below = band.checked_sub(1).map(|edge| (edge, 0.5));
    let above = (band < EDGES.len()).then_some((band, -0.5));
    let ends = usize::from(below.is_none()) + usize::from(above.is_none());
    (below.into_iter().chain(above).collect(), 0.5 * ends as f32)
}

/// Lets a cell keep how far from what was expected a pair was in a band of sizes.
fn write(params: &mut Params, histories: &Scaling, cell: usize, pair: usize, band: usize) {
    let shape = params.layout().shape;
    let (cells, rows) = (shape.memory, shape.embedding + HISTORY_WIDTH + shape.memory);
    let at = |name: &str| slot(name).expect("a feature").start;
    // What is told of the call before, as raw weights of its row.
    let conditions = [(at("last_pair") + pair, SAME_PAIR), (at("has_feedback"), CONDITION)];
    let (of_band, inside) = in_band(band);
    let sum = WRITE - SAME_PAIR - CONDITION * (2.0 - inside);
    for (gate, sign) in [(0, 1.0), (1, -1.0)] {
        let column = gate * cells + cell;
        clear(params, rows, 4 * cells, column);
        params.tensor_mut("lstm.bias")[column] = sign * sum;
        for &(unit, weight) in &of_band {
            params.tensor_mut("lstm.weight")[unit * 4 * cells + column] = sign * CONDITION * weight;
        }
        for (feature, weight) in conditions {
            add_history(params, histories, feature, column, sign * weight);
        }
    }
    for (gate, bias) in [(2, 0.0), (3, OPEN)] {
        let column = gate * cells + cell;
        clear(params, rows, 4 * cells, column);
        params.tensor_mut("lstm.bias")[column] = bias;
    }
    add_history(params, histories, at("last_time"), 2 * cells + cell, FILL * TIME_SCALE);
}

/// Leaves no weight in a column of the LSTM.
fn clear(params: &mut Params, rows: usize, columns: usize, column: usize) {
    let weight = params.tensor_mut("lstm.weight");
    (0..rows).for_each(|row| weight[row * columns + column] = 0.0);
}

/// Lets a number of the history row count so much in a column of the LSTM, however rows are scaled.
fn add_history(params: &mut Params, histories: &Scaling, feature: usize, column: usize, weight: f32) {
    let shape = params.layout().shape;
    let (mean, scale) = histories[feature];
    params.tensor_mut("lstm.weight")[(shape.embedding + feature) * 4 * shape.memory + column] =
        weight / scale;
    params.tensor_mut("lstm.bias")[column] += weight * mean;
}

/// Lets nothing but an address reach the memory, and nothing follow from what is read there yet.
fn ignore_memory(params: &mut Params) {
    let shape = params.layout().shape;
    for expert in
        params.tensor_mut("expert.weight").chunks_exact_mut((shape.memory + shape.embedding) * shape.expert)
    {
        expert[..shape.memory * shape.expert].fill(0.0);
    }
    params.tensor_mut("resource.weight")[shape.expert * shape.resource..].fill(0.0);
}

/// Lets a call read the band that its size is in.
fn look_up(params: &mut Params) {
    params.tensor_mut("address.weight").fill(0.0);
    for band in 0..BANDS {
        let (of_band, inside) = in_band(band);
        for (number, side) in of_band {
            params.tensor_mut("address.weight")[number * BANDS + band] = side;
        }
        params.tensor_mut("address.bias")[band] = inside;
    }
}

/// A normally distributed number (Box–Muller).
fn normal(rng: &mut ChaCha8Rng) -> f32 {
    let [u, v]: [f64; 2] = [1.0 - rng.random::<f64>(), rng.random()];
    ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
}
