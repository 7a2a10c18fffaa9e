//! Updates of LSTM(96 → 128) with 23 outputs over 32 sequences of 64 steps, on one thread: what
//! `scripts/bench/lstm_update.py` puts beside PyTorch.
//!
//!     lstm_update BATCH UPDATES
//!
//! The LSTM, its backward, the clipping and the optimiser are the learner's own, and burn works above
//! them as it does there; only the widths are those of the comparison. BATCH holds weights and a
//! minibatch as 32-bit floats, one after the other. Prints the loss of each update and the seconds that one
//! has had a core, as JSON; the first warms up and does not count.

mod clock;

use std::error::Error;

use burn::tensor::{Device, Tensor, TensorData, activation};
use dynamiccl_agent::adam::{Adam, clip};
use dynamiccl_agent::learn::lstm::Lstm;
use ndarray::{Array2, ArrayView1, ArrayView2};

const SEQUENCES: usize = 32;
const STEPS: usize = 64;
const ROWS: usize = SEQUENCES * STEPS;
const INPUTS: usize = 96;
const CELLS: usize = 128;
const HEADS: [usize; 4] = [7, 3, 8, 4];
const OUTPUTS: usize = 23;
const LSTM_WEIGHT: usize = (INPUTS + CELLS) * 4 * CELLS;
const LSTM: usize = LSTM_WEIGHT + 4 * CELLS;
const HEAD_WEIGHT: usize = CELLS * OUTPUTS;
const PARAMS: usize = LSTM + HEAD_WEIGHT + OUTPUTS;
const RATE: f32 = 1e-3;
const LONGEST: f32 = 0.5;
const CLIP: f32 = 0.2;
const ENTROPY: f32 = 0.01;
const VALUE: f32 = 0.5;

/// What does not change from update to update.
struct Batch {
    seen: Array2<f32>,
    choices: [Tensor<2>; 4],
    before: Tensor<2>,
    advantages: Tensor<2>,
    returns: Tensor<2>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(updates), None) = (args.next(), args.next(), args.next()) else {
        eprintln!("lstm_update BATCH UPDATES");
        std::process::exit(2);
    };
    let updates: usize = updates.parse()?;
    let device = Device::flex().autodiff();
    let (batch, mut params) = read(&std::fs::read(path)?, &device)?;
    let (mut adam, pace) = (Adam::new(PARAMS), vec![1.0; PARAMS]);
    let (mut losses, mut begun) = (Vec::new(), 0.0);
    for update in 0..=updates {
        if update == 1 {
            begun = clock::seconds();
        }
        let (loss, mut gradient) = gradient(&params, &batch, &device);
        clip(&mut gradient, LONGEST);
        adam.step(&mut params, &gradient, RATE, &pace);
        losses.push(loss);
    }
    let seconds = (clock::seconds() - begun) / updates as f64;
    println!("{}", serde_json::json!({ "losses": losses, "seconds": seconds }));
    Ok(())
}

/// The batch and the parameters: LSTM, then heads.
fn read(bytes: &[u8], device: &Device) -> Result<(Batch, Vec<f32>), Box<dyn Error>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    let expected = ROWS * INPUTS + PARAMS + ROWS * (HEADS.len() + 3);
    if numbers.len() != expected || !rest.is_empty() {
        return Err(format!("the batch has {} bytes; {} are needed", bytes.len(), 4 * expected).into());
    }
    let mut numbers = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes));
    let mut take = |count: usize| numbers.by_ref().take(count).collect::<Vec<_>>();
    let seen = Array2::from_shape_vec((ROWS, INPUTS), take(ROWS * INPUTS))?;
    let params = take(PARAMS);
    let chosen = take(ROWS * HEADS.len());
    let mut first = 0;
    let choices = std::array::from_fn(|head| {
        let mut ones = vec![0.0; ROWS * HEADS[head]];
        for (row, chosen) in chosen.chunks_exact(HEADS.len()).enumerate() {
            ones[row * HEADS[head] + chosen[head] as usize] = 1.0;
        }
        first += HEADS[head];
        matrix(&ones, [ROWS, HEADS[head]], device)
    });
    let mut column = || matrix(&take(ROWS), [ROWS, 1], device);
    let batch = Batch { seen, choices, before: column(), advantages: column(), returns: column() };
    Ok((batch, params))
}

/// The loss and its gradient.
fn gradient(params: &[f32], batch: &Batch, device: &Device) -> (f32, Vec<f32>) {
    let zeros = [0.0; CELLS];
    let lstm = Lstm {
        weight: ArrayView2::from_shape((INPUTS + CELLS, 4 * CELLS), &params[..LSTM_WEIGHT])
            .expect("as many numbers"),
        bias: ArrayView1::from(&params[LSTM_WEIGHT..LSTM]),
        hidden: &zeros,
        cell: &zeros,
    };
    let state = Array2::zeros((SEQUENCES, CELLS));
    let begins = [false; ROWS];
    let pass = lstm.pass(batch.seen.clone(), &begins, state.view(), state.view());
    let leaf = |numbers: &[f32], dims| matrix(numbers, dims, device).require_grad();
    let hidden = leaf(pass.hidden.as_slice().expect("row after row"), [ROWS, CELLS]);
    let weight = leaf(&params[LSTM..LSTM + HEAD_WEIGHT], [CELLS, OUTPUTS]);
    let bias = leaf(&params[LSTM + HEAD_WEIGHT..], [1, OUTPUTS]);
    let loss = loss(hidden.clone().matmul(weight.clone()) + bias.clone(), batch);
    let mut gradients = loss.backward();
    let mut of = |leaf: &Tensor<2>| numbers(leaf.grad_remove(&mut gradients).expect("a leaf"));
    let by_hidden = Array2::from_shape_vec((ROWS, CELLS), of(&hidden)).expect("as many numbers");
    let back = lstm.backward(pass, by_hidden.view(), 0);
    let mut gradient = back.weight.into_raw_vec_and_offset().0;
    gradient.extend(back.bias);
    gradient.extend(of(&weight));
    gradient.extend(of(&bias));
    (loss.into_scalar::<f32>(), gradient)
}

/// PPO's loss: clipped surrogate, entropy, value.
fn loss(outputs: Tensor<2>, batch: &Batch) -> Tensor<1> {
    let (mut first, mut taken, mut entropy) = (0, Vec::new(), Vec::new());
    for (choices, size) in batch.choices.iter().zip(HEADS) {
        let ln = activation::log_softmax(outputs.clone().narrow(1, first, size), 1);
        taken.push((ln.clone() * choices.clone()).sum_dim(1));
        entropy.push((ln.clone().exp() * ln).sum().neg());
        first += size;
    }
    let sum = |a: Tensor<2>, b: Tensor<2>| a + b;
    let ratio = (taken.into_iter().reduce(sum).expect("heads") - batch.before.clone()).exp();
    let near = ratio.clone().clamp(1.0 - CLIP, 1.0 + CLIP) * batch.advantages.clone();
    let surrogate = (ratio * batch.advantages.clone()).min_pair(near).mean();
    let entropy = entropy.into_iter().reduce(|a, b| a + b).expect("heads") / ROWS as f32;
    let wrong = (outputs.narrow(1, first, 1) - batch.returns.clone()).square().mean();
    surrogate.neg() - entropy * ENTROPY + wrong * VALUE
}

fn matrix(numbers: &[f32], dims: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(numbers.to_vec(), dims), device)
}

fn numbers(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_into_vec::<f32>().expect("32-bit floats")
}
