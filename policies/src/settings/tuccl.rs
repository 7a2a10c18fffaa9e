//! The space of TuCCL's table IV: protocol × channels × threads × buffer, for MSCCL's ring.
//!
//! 3 × 4 × 20 × 15 = 3,600 settings. The table gives buffers of 128 · 2^N for N from 1 to 15, which is 256
//! B to 4 MiB; the text beside it says up to 8 MiB and channels from 1, which would be another table. The
//! table is taken.

use dynamiccl_spec::Protocol;

use super::kernel_width;
use crate::search::{Dimension, Point, Space};

/// Channels.
const CHANNELS: usize = 4;
/// Thread counts.
const THREADS: usize = 20;
/// Buffer sizes.
const BUFFERS: usize = 15;

/// One setting of the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TucclSetting {
    /// The protocol.
    pub protocol: Protocol,
    /// Channels: 2, 4, 8 or 16.
    pub channels: u32,
    /// Threads of a block: 32 to 640 in warps.
    pub threads: u32,
    /// Bytes of a channel's buffer: 256 to 4 Mi in powers of two.
    pub buffer: u64,
}

/// The space.
pub fn space() -> Space {
    let ordered = Dimension::ordered;
    Space::new(&[
        Dimension::named(Protocol::ALL.len()),
        ordered(CHANNELS),
        ordered(THREADS),
        ordered(BUFFERS),
    ])
}

/// The setting of a point of [`space`].
pub fn setting(point: &Point) -> TucclSetting {
    TucclSetting {
        protocol: Protocol::ALL[point.value(0)],
        channels: 2 << point.value(1),
        threads: 32 * (point.value(2) as u32 + 1),
        buffer: 256 << point.value(3),
    }
}

/// What MSCCL takes where nobody says otherwise: Simple, 8 channels, 512 threads, 4 MiB.
pub const DEFAULT: Point = Point::at([2, 2, 15, 14]);

/// MRACO's kernel widths, by protocol.
pub fn widths() -> Vec<f64> {
    Protocol::ALL.iter().map(|&protocol| kernel_width(protocol)).collect()
}

/// A coarse grid for those who play every arm: the default, then every protocol and channel count with
/// three thread counts and four buffers.
pub fn arms() -> Vec<Point> {
    let mut arms = vec![DEFAULT];
    for protocol in 0..Protocol::ALL.len() as u8 {
        for channels in 0..CHANNELS as u8 {
            for threads in [7, 15, 19] {
                arms.extend([5, 8, 11, 14].map(|buffer| Point::at([protocol, channels, threads, buffer])));
            }
        }
    }
    let again = arms.iter().skip(1).position(|&arm| arm == DEFAULT).map(|index| index + 1);
    again.map(|index| arms.remove(index));
    arms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_3600_settings_with_the_ends_that_it_says() {
        let space = space();
        assert_eq!(space.points(), 3600);
        let (first, last) = (setting(&space.point(0)), setting(&space.point(3599)));
        assert_eq!((first.protocol, first.channels, first.threads, first.buffer), (Protocol::LL, 2, 32, 256));
        assert_eq!((last.channels, last.threads, last.buffer), (16, 640, 4 << 20));
        let default = setting(&DEFAULT);
        assert_eq!((default.channels, default.threads, default.buffer), (8, 512, 4 << 20));
        assert_eq!(default.protocol, Protocol::Simple);
    }

    #[test]
    fn arms_are_distinct_points_and_begin_with_the_default() {
        let (space, arms) = (space(), arms());
        assert_eq!(arms[0], DEFAULT);
        assert!(arms.iter().all(|arm| space.point(space.index(arm)) == *arm), "each is of the space");
        assert!((1..arms.len()).all(|i| !arms[..i].contains(&arms[i])));
        assert_eq!(arms.len(), 3 * 4 * 3 * 4);
    }
}
