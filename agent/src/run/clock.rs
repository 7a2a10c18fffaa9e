//! The time of day as runs write it: UTC, to the second. It knows no calendar but ours.

use std::env;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that states a moment, as reproducible-builds.org has it.
const STATED: &str = "SOURCE_DATE_EPOCH";
/// The last second whose year has four digits.
const LAST: u64 = 253_402_300_799;

/// A moment was stated, and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{STATED}={said}: not a moment; give whole seconds since 1970 (0 to {LAST}), or unset it")]
pub struct NoMoment {
    said: String,
}

/// A moment, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc(pub u64);

impl Utc {
    /// Now; or what `SOURCE_DATE_EPOCH` says, for files that are to be the same bytes again.
    pub fn now() -> Result<Self, NoMoment> {
        match env::var_os(STATED) {
            Some(said) => Utc::stated(&said.to_string_lossy()),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                Ok(Utc(since.map_or(0, |since| since.as_secs())))
            }
        }
    }

    fn stated(said: &str) -> Result<Self, NoMoment> {
        let seconds = said.parse().ok().filter(|&seconds| seconds <= LAST);
        seconds.map(Utc).ok_or_else(|| NoMoment { said: said.to_owned() })
    }

    /// As in the name of a file: `20261115T103310Z`.
    pub fn compact(self) -> String {
        self.to_string().replace(['-', ':'], "")
    }

    /// Year, month and day, after Hinnant's `civil_from_days`: years begin in March, so that the leap day is
    /// the last one.
    fn date(self) -> (u64, u64, u64) {
        let days = self.0 / 86_400 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (era * 400 + year + u64::from(month <= 2), month, day)
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let (hour, minute, second) = (self.0 / 3600 % 24, self.0 / 60 % 60, self.0 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (seconds, said) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_794_738_790, "2026-11-15T10:33:10Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Utc(seconds).to_string(), said);
        }
        assert_eq!(Utc(1_794_738_790).compact(), "20261115T103310Z");
        assert_eq!(Utc(LAST).to_string(), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn what_is_stated_counts_or_is_refused() {
        assert_eq!(Utc::stated("1794738790"), Ok(Utc(1_794_738_790)));
        for bad in ["abc", "-5", "", "1.5", "253402300800"] {
            let error = Utc::stated(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("SOURCE_DATE_EPOCH={bad}: ")), "{error}");
        }
    }
}
