//! Quantities as types, with one parser and one printer each.
//!
//! Sizes follow nccl-tests: `64K` is 64 × 1024 bytes. Bandwidths are NCCL's GB/s (10⁹ bytes a
//! second); link rates may also be written as `tc` writes them (`25gbit`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A quantity that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadQuantity {
    what: &'static str,
    value: String,
    example: &'static str,
}

impl fmt::Display for BadQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not a {}; write it like {}", self.value, self.what, self.example)
    }
}

impl std::error::Error for BadQuantity {}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub f64);

/// A bandwidth in 10⁹ bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GBps(pub f64);

const BYTE_UNITS: [(&str, u32); 5] = [("", 0), ("K", 10), ("M", 20), ("G", 30), ("T", 40)];

impl FromStr for Bytes {
    type Err = BadQuantity;

    fn from_str(s: &str) -> Result<Self, BadQuantity> {
        let bad = || BadQuantity { what: "size", value: s.to_owned(), example: "1024, 64K, 1M or 4G" };
        let (number, unit) = split_number(s);
        let unit = unit.to_uppercase();
        let unit = unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B')).unwrap_or(&unit);
        let shift = BYTE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?.1;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(1 << shift).map(Bytes).ok_or_else(bad);
        }
        let scaled = number.parse::<f64>().map_err(|_| bad())? * (1u64 << shift) as f64;
        let fits = scaled.fract() == 0.0 && (0.0..9e18).contains(&scaled);
        if fits { Ok(Bytes(scaled as u64)) } else { Err(bad()) }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit =
            BYTE_UNITS.iter().rev().find(|(_, shift)| self.0 != 0 && self.0.is_multiple_of(1 << shift));
        let (name, shift) = unit.copied().unwrap_or(("", 0));
        f.pad(&format!("{}{name}", self.0 >> shift))
    }
}

const TIME_UNITS: [(&str, f64); 5] = [("us", 1.0), ("µs", 1.0), ("ns", 1e-3), ("ms", 1e3), ("s", 1e6)];

impl FromStr for Micros {
    type Err = BadQuantity;

    fn from_str(s: &str) -> Result<Self, BadQuantity> {
        scaled(s, &TIME_UNITS).map(Micros).ok_or_else(|| BadQuantity {
            what: "time",
            value: s.to_owned(),
            example: "12.5us, 3ms or 1s",
        })
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            t if t < 1e4 => format!("{t:.1} µs"),
            t if t < 1e7 => format!("{:.1} ms", t / 1e3),
            t => format!("{:.1} s", t / 1e6),
        };
        f.pad(&text)
    }
}

const RATE_UNITS: [(&str, f64); 9] = [
    ("GB/s", 1.0),
    ("GBps", 1.0),
    ("gbit", 0.125),
    ("Gb/s", 0.125),
    ("Gbps", 0.125),
    ("mbit", 0.125e-3),
    ("Mb/s", 0.125e-3),
    ("kbit", 0.125e-6),
    ("tbit", 125.0),
];

impl FromStr for GBps {
    type Err = BadQuantity;

    fn from_str(s: &str) -> Result<Self, BadQuantity> {
        scaled(s, &RATE_UNITS).map(GBps).ok_or_else(|| BadQuantity {
            what: "rate",
            value: s.to_owned(),
            example: "25gbit, 500mbit or 12.5GB/s",
        })
    }
}

impl fmt::Display for GBps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.2} GB/s", self.0))
    }
}

/// A finite number above zero with one of these units, scaled by it.
fn scaled(s: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, unit) = split_number(s);
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    let value = number.parse::<f64>().ok()? * scale;
    (value.is_finite() && value > 0.0).then_some(value)
}

fn split_number(s: &str) -> (&str, &str) {
    let s = s.trim();
    let end = s.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(s.len());
    (&s[..end], s[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_nccl_tests() {
        for (text, bytes) in [
            ("0", 0),
            ("8", 8),
            ("64K", 65_536),
            ("64k", 65_536),
            ("1M", 1 << 20),
            ("1MiB", 1 << 20),
            ("1.5M", 3 << 19),
            ("1T", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["12Q", "", "K", "-1", "1.0000001K", "99999999999G", "1e3", "0x10"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert_eq!(
            "12Q".parse::<Bytes>().unwrap_err().to_string(),
            "\"12Q\" is not a size; write it like 1024, 64K, 1M or 4G"
        );
    }

    #[test]
    fn sizes_print_as_they_parse() {
        for bytes in [0, 1, 1000, 1024, 65_536, 1 << 20, 3 << 19, 1 << 40, u64::MAX >> 1] {
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
        assert_eq!(Bytes(65_536).to_string(), "64K");
    }

    #[test]
    fn times_and_rates_carry_their_unit() {
        assert_eq!("3ms".parse(), Ok(Micros(3000.0)));
        assert_eq!("12.5 µs".parse(), Ok(Micros(12.5)));
        assert!("3".parse::<Micros>().is_err());
        assert_eq!(Micros(12.44).to_string(), "12.4 µs");
        assert_eq!("25gbit".parse(), Ok(GBps(3.125)));
        assert_eq!("2.5gbit".parse(), Ok(GBps(0.3125)));
        assert_eq!("400 Gb/s".parse(), Ok(GBps(50.0)));
        assert!("0gbit".parse::<GBps>().is_err());
        assert!("fast".parse::<GBps>().is_err());
    }
}
