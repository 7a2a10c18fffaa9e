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

/// A word that a shell reads back as it is.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        assert_eq!(quoted("/opt/lib-1.0/x.so"), "/opt/lib-1.0/x.so");
        assert_eq!(quoted("/my libs/x.so"), "'/my libs/x.so'");
        assert_eq!(quoted("/it's/$HOME"), r"'/it'\''s/$HOME'");
    }

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
