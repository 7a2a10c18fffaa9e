//! The simulator held against measurements.
//!
//! Two questions with two answers: how far times are off (`tables`, against what people measured on
//! their clusters with NCCL's own choices), and whether the knobs that the model ranks first are good
//! ones (`sweeps`, against every knob measured on one machine). The second decides whether training in
//! the simulator means anything.

mod describe;
pub mod sweeps;
pub mod tables;

pub use describe::Describer;

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
