//! Which kind of call a time belongs to, and what ran in it.

use dynamiccl_spec::{Collective, Path};

use crate::nccl::Realised;

/// Size octaves that are kept apart: 1 B to 1 TiB.
pub(super) const OCTAVES: usize = 41;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Index of the communicator.
    pub communicator: u16,
    /// The collective.
    pub collective: Collective,
    octave: u8,
}

impl Key {
    /// The kind of a call of this size.
    pub fn new(communicator: u16, collective: Collective, bytes: u64) -> Self {
        let octave = bytes.max(1).ilog2().min(OCTAVES as u32 - 1) as u8;
        Key { communicator, collective, octave }
    }

    /// Where it stands among all kinds.
    pub(super) fn slot(self) -> usize {
        let collective = usize::from(self.communicator) * Collective::ALL.len() + self.collective.id();
        collective * OCTAVES + usize::from(self.octave)
    }
}

/// The identity of what ran. Two calls of a kind that ran alike have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ran(pub u32);

impl Ran {
    /// What NCCL ran.
    pub fn of(realised: &Realised) -> Self {
        let chunk = (realised.chunk_bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as u32;
        let pair = 1 + realised.pair.index() as u32;
        let (warps, channels) = (realised.threads / 32, realised.channels);
        Ran((chunk << 19) | ((warps & 0x3f) << 13) | ((channels & 0xff) << 5) | pair)
    }

    /// A call that somebody else carried, or that NCCL does not tune.
    pub fn path(path: Path) -> Self {
        Ran((path.id() as u32) << 5)
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{Algorithm, Pair, Protocol};

    use super::*;

    #[test]
    fn kinds_differ_by_communicator_collective_and_octave() {
        let key = |c, collective, bytes| Key::new(c, collective, bytes).slot();
        let base = key(0, Collective::AllReduce, 1 << 20);
        assert_eq!(base, key(0, Collective::AllReduce, (2 << 20) - 1));
        assert_ne!(base, key(0, Collective::AllReduce, 2 << 20));
        assert_ne!(base, key(0, Collective::AllGather, 1 << 20));
        assert_ne!(base, key(1, Collective::AllReduce, 1 << 20));
        assert_eq!(key(0, Collective::AllReduce, 0), key(0, Collective::AllReduce, 1));
        assert_eq!(key(0, Collective::AllReduce, u64::MAX), key(0, Collective::AllReduce, 1 << 40));
    }

    #[test]
    fn whatever_runs_differently_is_another_setting() {
        let pair = Pair::new(Algorithm::Ring, Protocol::LL);
        let base = Realised { pair, max_channels: 8, channels: 8, threads: 512, chunk_bytes: 1 << 17 };
        let others = [
            Realised { pair: Pair::new(Algorithm::Tree, Protocol::LL), ..base },
            Realised { channels: 4, ..base },
            Realised { threads: 256, ..base },
            Realised { chunk_bytes: 1 << 18, ..base },
            Realised { chunk_bytes: 1 << 16, ..base },
        ];
        assert!(others.iter().all(|other| Ran::of(other) != Ran::of(&base)));
        assert_eq!(Ran::of(&Realised { max_channels: 9, ..base }), Ran::of(&base));
        assert!(Path::ALL.iter().all(|&path| Ran::path(path) != Ran::of(&base)));
    }
}
