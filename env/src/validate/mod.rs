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
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

/// The geometric mean of some ratios; nothing for none.
fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    (!ratios.is_empty()).then(|| (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median([9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median([4.0, 1.0, 3.0, 9.0]), Some(3.5));
    }

    #[test]
    fn ratios_are_averaged_by_their_logs() {
        assert_eq!(geometric_mean(&[]), None);
        assert!(geometric_mean(&[0.5, 2.0]).is_some_and(|mean| (mean - 1.0).abs() < 1e-12));
    }
}
