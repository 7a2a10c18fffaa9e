//! NCCL's cost table and which of its entries may be chosen.
//!
//! NCCL marks an unavailable entry with a negative cost, and its fp8 guard prices entries out by a
//! factor of 1024; both arrive through the plugin as plain floats. The rule what counts as available
//! is therefore needed by the simulator, the guard and the plugin, and stands here once.

use serde::{Deserialize, Serialize};

use crate::ids::{ALGORITHMS, Algorithm, PAIRS, PROTOCOLS, Pair, Protocol};

/// What NCCL writes where a pair is not available.
pub const UNAVAILABLE: f32 = -1.0;

/// Ranks beyond which NCCL prices rings out where sums are in fp8.
const GUARDED_RANKS: u32 = 8;
/// A ring that is this much slower than what else there is has been priced out, by 1024. NCCL expects no
/// ring to be 8 times as fast as a tree; where one is so slow by itself, nobody misses it.
const PRICED_OUT: f32 = 128.0;

/// NCCL's predicted microseconds for every algorithm × protocol, in NCCL's own layout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostTable(pub [[f32; PROTOCOLS]; ALGORITHMS]);

impl Default for CostTable {
    fn default() -> Self {
        CostTable([[UNAVAILABLE; PROTOCOLS]; ALGORITHMS])
    }
}

impl CostTable {
    /// The predicted microseconds of a pair, if it is available.
    #[inline]
    pub fn get(&self, pair: Pair) -> Option<f32> {
        let cost = self.0[pair.algorithm.id()][pair.protocol.id()];
        (cost >= 0.0 && cost.is_finite()).then_some(cost)
    }

    /// Sets the predicted microseconds of a pair.
    #[inline]
    pub fn set(&mut self, pair: Pair, micros: f32) {
        self.0[pair.algorithm.id()][pair.protocol.id()] = micros;
    }

    /// The available pairs with their predicted microseconds, in the order of NCCL's scan.
    pub fn available(&self) -> impl Iterator<Item = (Pair, f32)> + '_ {
        Pair::all().filter_map(|pair| self.get(pair).map(|cost| (pair, cost)))
    }

    /// The entry that NCCL takes: the smallest, the first of equals.
    #[inline]
    pub fn best(&self) -> Option<(Pair, f32)> {
        // Every call of every tuner comes through here: a flat scan is several times faster than iterators
        // over pairs.
        let (mut index, mut lowest) = (PAIRS, f32::INFINITY);
        for (i, &cost) in self.0.as_flattened().iter().enumerate() {
            if cost >= 0.0 && cost < lowest {
                (index, lowest) = (i, cost);
            }
        }
        Pair::from_index(index).map(|pair| (pair, lowest))
    }

    /// The entry that NCCL would take if only these pairs were available.
    pub fn best_of(&self, pairs: PairMask) -> Option<(Pair, f32)> {
        let mut table = CostTable::default();
        self.available().filter(|(pair, _)| pairs.contains(*pair)).for_each(|(pair, us)| table.set(pair, us));
        table.best()
    }

    /// The same with the rings that NCCL has priced out marked as unavailable. A tuner is told neither type
    /// nor operation, so this is how it knows that sums in fp8 would lose precision in a ring of so many ranks.
    pub fn without_priced_out(mut self, ranks: u32) -> Self {
        let other = self.available().filter(|(pair, _)| pair.algorithm != Algorithm::Ring).map(|(_, us)| us);
        let Some(other) = other.min_by(f32::total_cmp).filter(|_| ranks > GUARDED_RANKS) else { return self };
        let ring = self.0[Algorithm::Ring.id()];
        // What was unavailable before was multiplied too.
        let marked = ring.iter().any(|&us| us < UNAVAILABLE);
        for &protocol in Protocol::ALL {
            if marked || ring[protocol.id()] >= PRICED_OUT * other {
                self.set(Pair::new(Algorithm::Ring, protocol), UNAVAILABLE);
            }
        }
        self
    }

    /// The available pairs as a mask.
    #[inline]
    pub fn mask(&self) -> PairMask {
        let costs = self.0.as_flattened().iter().enumerate();
        PairMask(costs.fold(0, |bits, (i, cost)| bits | u32::from(*cost >= 0.0 && cost.is_finite()) << i))
    }
}

/// A set of algorithm × protocol pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairMask(u32);

impl PairMask {
    /// No pair.
    pub const NONE: PairMask = PairMask(0);
    /// Every pair.
    pub const ALL: PairMask = PairMask((1 << PAIRS) - 1);

    /// The set of these bits.
    pub const fn from_bits(bits: u32) -> Self {
        PairMask(bits & PairMask::ALL.0)
    }

    /// This set and one pair more.
    pub const fn with(self, pair: Pair) -> Self {
        PairMask(self.0 | 1 << pair.index())
    }

    /// This set less one pair.
    pub const fn without(self, pair: Pair) -> Self {
        PairMask(self.0 & !(1 << pair.index()))
    }

    /// What is in both sets.
    pub const fn and(self, other: PairMask) -> Self {
        PairMask(self.0 & other.0)
    }

    /// The set as bits by the pairs' positions in NCCL's table.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the pair is in the set.
    pub const fn contains(self, pair: Pair) -> bool {
        self.0 & (1 << pair.index()) != 0
    }

    /// How many pairs are in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The pairs in the order of NCCL's scan.
    pub fn iter(self) -> impl Iterator<Item = Pair> {
        Pair::all().filter(move |&pair| self.contains(pair))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Algorithm::*, Protocol::*};

    #[test]
    fn unavailable_is_anything_negative_or_not_finite() {
        let mut table = CostTable::default();
        let pair = Pair::new(Ring, LL);
        for bad in [-1.0, -1024.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            table.set(pair, bad);
            assert_eq!(table.get(pair), None, "{bad}");
        }
        assert!(table.mask().is_empty());
        assert_eq!(table.best(), None);
    }

    #[test]
    fn the_first_of_equals_wins_as_in_nccls_scan() {
        let mut table = CostTable::default();
        table.set(Pair::new(Ring, Simple), 5.0);
        table.set(Pair::new(Tree, LL128), 5.0);
        table.set(Pair::new(Pat, Simple), 7.0);
        assert_eq!(table.best(), Some((Pair::new(Tree, LL128), 5.0)));
        assert_eq!(table.mask().len(), 3);
    }

    #[test]
    fn rings_that_were_priced_out_are_not_available() {
        let [ring, other] = [Pair::new(Ring, LL), Pair::new(Ring, LL128)];
        let tree = Pair::new(Tree, Simple);
        let mut table = CostTable::default();
        table.set(ring, 30.0);
        table.set(tree, 90.0);
        assert_eq!(table.without_priced_out(16), table);
        // As NCCL does it: every ring is multiplied, there or not.
        for us in &mut table.0[Ring.id()] {
            *us *= 1024.0;
        }
        assert_eq!(table.get(ring), Some(30720.0));
        assert_eq!(table.without_priced_out(16).mask(), PairMask::NONE.with(tree));
        assert_eq!(table.without_priced_out(8), table, "NCCL prices nothing out among few");
        // All three are there.
        table.0[Ring.id()] = [30720.0, 31000.0, 32000.0];
        assert_eq!(table.without_priced_out(16).mask(), PairMask::NONE.with(tree));
        // Nothing else is there: NCCL would take it, and so may we.
        table.set(tree, UNAVAILABLE);
        assert_eq!(table.without_priced_out(16).mask().len(), 3);
        table.set(other, -1024.0);
        assert_eq!(table.without_priced_out(16).mask().len(), 2);
    }

    #[test]
    fn masks_are_sets() {
        let ring = Pair::new(Ring, LL);
        let mask = PairMask::ALL.without(ring);
        assert!(!mask.contains(ring));
        assert_eq!(mask.len(), PAIRS - 1);
        assert_eq!(mask.with(ring), PairMask::ALL);
        assert_eq!(PairMask::NONE.with(ring).iter().collect::<Vec<_>>(), [ring]);
        assert!(PairMask::NONE.and(PairMask::ALL).is_empty());
    }
}
