//! Which release of NCCL a job runs with, as far as it decides what a tuner is asked.
//!
//! The version of the interface would say it too, but no decision may depend on that; what the deployment file says is the
//! same on every rank.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// The first release that asks tuners for chunk sizes.
const CHUNKS: Release = Release { major: 2, minor: 30 };

/// A release line of NCCL, such as 2.28.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Release {
    major: u32,
    minor: u32,
}

impl Release {
    /// Whether it asks tuners for chunk sizes.
    pub fn asks_for_chunks(self) -> bool {
        self >= CHUNKS
    }
}

impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[major, minor] | &[major, minor, _]) if major >= 2 => Ok(Release { major, minor }),
            _ => Err(format!("{text:?} is no release of NCCL: give it as in \"2.28\" or \"2.28.9\"")),
        }
    }
}

impl TryFrom<String> for Release {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_with_or_without_their_last_number() {
        let chunks = |text: &str| text.parse::<Release>().map(Release::asks_for_chunks);
        assert_eq!([chunks("2.9"), chunks("2.28.9"), chunks("2.29")], [Ok(false), Ok(false), Ok(false)]);
        assert_eq!([chunks("2.30"), chunks("2.32.3"), chunks("3.0")], [Ok(true), Ok(true), Ok(true)]);
        for wrong in ["", "2", "228", "2.x", "1.30", "2.28.9.1", "2.28-1", "v2.28"] {
            assert!(chunks(wrong).unwrap_err().contains("as in \"2.28\""), "{wrong}");
        }
    }
}
