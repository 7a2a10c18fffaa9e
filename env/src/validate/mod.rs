//! The simulator held against measurements.
//!
//! Two questions with two answers: how far times are off (`tables`, against what people measured on
//! their clusters with NCCL's own choices), and whether the knobs that the model ranks first are good
//! ones (`sweeps`, against every knob measured on one machine). The second decides whether training in
//! the simulator means anything.

mod describe;
pub mod sweeps;
pub mod tables;

use dynamiccl_spec::{Collective, Pair};

use crate::model::Call;
use crate::nccl::Communicator;

pub use describe::Describer;

/// The call that NCCL makes of a forced pair, with as many channels as asked for or its own count.
fn forced(
    communicator: &Communicator,
    collective: Collective,
    bytes: u64,
    pair: Pair,
    channels: Option<u32>,
) -> Call {
    let (own, threads) = communicator.channels_threads(pair, bytes);
    let limit = communicator.channel_limit(pair).max(1);
    let launch = communicator.launch(collective, pair, bytes, channels.unwrap_or(own).clamp(1, limit));
    Call { collective, bytes, pair, channels: launch.channels, threads, chunk_bytes: launch.chunk_bytes }
}

/// The middle of some numbers; nothing for none.
fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// The geometric mean of some ratios; nothing for none.
fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    (!ratios.is_empty()).then(|| (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp())
}
