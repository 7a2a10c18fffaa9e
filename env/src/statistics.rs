//! Figures that sum up numbers, for reports.
//!
//! Logs are the machine's own, in one order. Whatever decides or draws has those of `spec::math`, which are the same
//! on every CPU.

/// The middle of some numbers; nothing for none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

/// The geometric mean of some ratios; nothing for none.
pub fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) =
        ratios.into_iter().fold((0.0, 0.0), |(sum, count), ratio| (sum + ratio.ln(), count + 1.0));
    (count > 0.0).then(|| (sum / count).exp())
}

/// Standard deviation of a sample; nothing for fewer than two.
pub fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
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
        assert_eq!(geometric_mean([]), None);
        assert!(geometric_mean([0.5, 2.0]).is_some_and(|mean| (mean - 1.0).abs() < 1e-12));
    }

    #[test]
    fn a_sample_of_one_has_no_deviation() {
        assert_eq!(deviation(&[3.0]), None);
        assert_eq!(deviation(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
    }
}
