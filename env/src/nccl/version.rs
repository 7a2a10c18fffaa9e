//! Which release of NCCL decides.
//!
//! From 2.28 to 2.30 the formulas are the same and a handful of numbers are not. Each difference is a
//! question asked of [`Version`], so that none of them hides in a formula. (2.30 also allows LL128
//! between unequal GPUs from Hopper on; a communicator here has one kind of GPU.)

use std::fmt;
use std::str::FromStr;

use dynamiccl_spec::words::{UnknownWord, look_up};
use serde::{Deserialize, Serialize};

/// A release line of NCCL, checked against its last tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Version {
    /// 2.28 (2.28.9).
    #[serde(rename = "2.28")]
    V2_28,
    /// 2.29 (2.29.7).
    #[serde(rename = "2.29")]
    V2_29,
    /// 2.30 (2.30.7).
    #[default]
    #[serde(rename = "2.30")]
    V2_30,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Version; 3] = [Version::V2_28, Version::V2_29, Version::V2_30];

    /// The release line as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V2_28 => "2.28",
            Version::V2_29 => "2.29",
            Version::V2_30 => "2.30",
        }
    }

    /// Whether a tuner plugin may change the chunk size (tuner API v6).
    pub const fn has_chunk_knob(self) -> bool {
        matches!(self, Version::V2_30)
    }

    /// The least traffic for which the scheduler adds a channel, in bytes.
    pub(super) const fn traffic_cell(self) -> u64 {
        match self {
            Version::V2_28 => 16 << 10,
            Version::V2_29 | Version::V2_30 => 32 << 10,
        }
    }

    /// Whether the size correction of trees also applies to `nvls_tree` (Blackwell on x86).
    pub(super) const fn corrects_nvls_tree(self) -> bool {
        !matches!(self, Version::V2_28)
    }

    /// Whether Blackwell gets NVLS channels and chunks by node count and NIC.
    pub(super) const fn tunes_nvls(self) -> bool {
        matches!(self, Version::V2_30)
    }

    /// Blackwell's cap on ring LL128, GB/s per search channel on 1, 2 and more nodes.
    pub(super) const fn blackwell_ring_ll128(self) -> [f64; 3] {
        match self {
            Version::V2_28 => [73.4, 34.6, 73.4],
            Version::V2_29 | Version::V2_30 => [40.0; 3],
        }
    }

    /// Blackwell's cap on `nvls_tree`, GB/s per search channel on 1, 2 and more nodes.
    pub(super) const fn blackwell_nvls_tree(self) -> [f64; 3] {
        match self {
            Version::V2_28 | Version::V2_29 => [0.0, 96.0, 43.8],
            Version::V2_30 => [0.0, 96.0, 80.0],
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Version {
    type Err = UnknownWord;

    fn from_str(s: &str) -> Result<Self, UnknownWord> {
        // A full release number (2.30.7) names its line.
        let line = s.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        look_up("NCCL version", &line, &Version::ALL.map(|v| (v.name(), v)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_number_names_its_line() {
        assert_eq!("2.30.7".parse(), Ok(Version::V2_30));
        assert_eq!("2.28".parse(), Ok(Version::V2_28));
        assert_eq!(Version::default().to_string(), "2.30");
        assert!("2.19".parse::<Version>().unwrap_err().to_string().contains("known: 2.28, 2.29, 2.30"));
    }
}
