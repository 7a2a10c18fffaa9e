//! Small words that several reports share.

/// A count with its noun: `1 node`, `2 nodes`.
pub fn counted(count: u32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A share as per cent: `0.034` is `3.4`.
pub fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// An absolute log error as people say it: `ln 1.2` is `20 %`.
pub fn log_error(log_error: f64) -> String {
    format!("{:.0} %", log_error.exp_m1() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "rank")), ["0 ranks", "1 rank", "2 ranks"]);
    }

    #[test]
    fn log_errors_read_as_percent() {
        assert_eq!(log_error(1.2f64.ln()), "20 %");
        assert_eq!(log_error(0.0), "0 %");
    }
}
