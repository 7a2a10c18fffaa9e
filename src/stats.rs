//! How reports say an error.

/// An absolute log error as people say it: `ln 1.2` is 20 %.
pub fn percent(log_error: f64) -> String {
    format!("{:.0} %", log_error.exp_m1() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_errors_read_as_percent() {
        assert_eq!(percent(1.2f64.ln()), "20 %");
        assert_eq!(percent(0.0), "0 %");
    }
}
