//! The few statistics that reports need.

/// The middle of some numbers; nothing for none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

/// An absolute log error as people say it: `ln 1.2` is 20 %.
pub fn percent(log_error: f64) -> String {
    format!("{:.0} %", log_error.exp_m1() * 100.0)
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
    fn log_errors_read_as_percent() {
        assert_eq!(percent(1.2f64.ln()), "20 %");
        assert_eq!(percent(0.0), "0 %");
    }
}
