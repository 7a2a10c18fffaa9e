//! What the tests against tables share.

/// Differences between ours and theirs: all counted, the first few kept to be read.
#[derive(Default)]
pub struct Mismatches {
    total: usize,
    first: Vec<String>,
}

impl Mismatches {
    /// Counts a difference.
    pub fn compare(&mut self, place: impl FnOnce() -> String, ours: &str, theirs: &str) {
        if ours == theirs {
            return;
        }
        self.total += 1;
        if self.first.len() < 5 {
            self.first.push(format!("{}\n    ours   {ours}\n    theirs {theirs}", place()));
        }
    }

    /// Fails with the first differences if there was any.
    pub fn finish(self) {
        assert!(self.total == 0, "{} mismatches, the first are:\n{}", self.total, self.first.join("\n"));
    }
}

/// A number as C's `%.6g` prints it.
pub fn percent_6g(x: f64) -> String {
    let scientific = format!("{x:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("Rust prints an exponent");
    let exponent: i32 = exponent.parse().expect("Rust prints a whole exponent");
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).expect("at most 5");
        return without_zeros(&format!("{x:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[test]
fn prints_as_c_does() {
    for (x, text) in [
        (0.0, "0"),
        (15.2, "15.2"),
        (36973.7421, "36973.7"),
        (999_999.5, "1e+06"),
        (1_234_567.0, "1.23457e+06"),
        (0.000_123_456_78, "0.000123457"),
        (0.000_012_345_678, "1.23457e-05"),
        (100.0, "100"),
    ] {
        assert_eq!(percent_6g(x), text);
    }
}
