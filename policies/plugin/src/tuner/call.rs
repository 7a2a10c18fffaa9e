//! A call as NCCL describes it, and the key under which its answer is kept.

use dynamiccl_spec::ids::{ALGORITHMS, PAIRS, PROTOCOLS};
use dynamiccl_spec::table::UNAVAILABLE;
use dynamiccl_spec::{Collective, CostTable};

/// Words of a key: the table, two entries to a word, with what lies beyond it; the bytes; the rest.
pub const KEY: usize = (PAIRS + 1).div_ceil(2) + 2;

/// Larger tables are not tables.
const MOST: usize = 64;

/// A call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// The collective.
    pub collective: Collective,
    /// Its bytes, as NCCL counts them.
    pub bytes: u64,
    /// Operations that NCCL groups into the launch.
    pub pipelined: u32,
    /// NCCL's table.
    pub table: RawTable,
}

/// NCCL's table as it came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawTable {
    /// What we have names for, unavailable where NCCL has none.
    pub known: CostTable,
    /// The smallest available entry of algorithms or protocols that are newer than we are; infinite without.
    pub beyond: f32,
}

/// How many algorithms and protocols NCCL's table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    algorithms: usize,
    protocols: usize,
}

impl Layout {
    /// The layout of these counts; none where no table can be like that.
    #[inline]
    pub fn new(algorithms: i32, protocols: i32) -> Option<Self> {
        let count = |n: i32| usize::try_from(n).ok().filter(|n| (1..=MOST).contains(n));
        Some(Layout { algorithms: count(algorithms)?, protocols: count(protocols)? })
    }

    /// Entries of the table.
    #[inline]
    pub fn entries(&self) -> usize {
        self.algorithms * self.protocols
    }

    /// Where the pair with this index of ours stands in NCCL's table, if it does.
    #[inline]
    pub fn position(&self, pair: usize) -> Option<usize> {
        let (algorithm, protocol) = (pair / PROTOCOLS, pair % PROTOCOLS);
        let there = algorithm < self.algorithms && protocol < self.protocols;
        there.then_some(algorithm * self.protocols + protocol)
    }
}

impl RawTable {
    /// Reads the entries of a table, row by row.
    #[inline]
    pub fn read(entries: &[f32], layout: Layout) -> Self {
        let (rows, _) = entries.as_chunks::<PROTOCOLS>();
        if layout == (Layout { algorithms: ALGORITHMS, protocols: PROTOCOLS })
            && let Ok(&known) = rows.try_into()
        {
            return RawTable { known: CostTable(known), beyond: f32::INFINITY };
        }
        RawTable::read_unusual(entries, layout)
    }

    #[cold]
    fn read_unusual(entries: &[f32], layout: Layout) -> Self {
        let mut table =
            RawTable { known: CostTable([[UNAVAILABLE; PROTOCOLS]; ALGORITHMS]), beyond: f32::INFINITY };
        for (at, &cost) in entries.iter().enumerate() {
            let (algorithm, protocol) = (at / layout.protocols, at % layout.protocols);
            if algorithm < ALGORITHMS && protocol < PROTOCOLS {
                table.known.0[algorithm][protocol] = cost;
            } else if cost >= 0.0 && cost < table.beyond {
                table.beyond = cost;
            }
        }
        table
    }
}

impl Call {
    /// The key of its answer. What may be chosen is not in it: for one communicator that follows from
    /// the collective and the table.
    #[inline]
    pub fn key(&self) -> [u64; KEY] {
        let mut key = [0; KEY];
        let costs = self.table.known.0.as_flattened();
        let bits = |at: usize| u64::from(costs.get(at).unwrap_or(&self.table.beyond).to_bits());
        // What differs most often comes first.
        key[0] = self.bytes;
        key[1] = (self.collective as u64) << 32 | u64::from(self.pipelined);
        for (at, word) in key[2..].iter_mut().enumerate() {
            *word = bits(2 * at) | bits(2 * at + 1) << 32;
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::{Algorithm, Pair, Protocol};

    fn numbered(algorithms: i32, protocols: i32) -> (RawTable, Layout) {
        let layout = Layout::new(algorithms, protocols).unwrap();
        let entries: Vec<f32> = (0..layout.entries()).map(|at| at as f32).collect();
        (RawTable::read(&entries, layout), layout)
    }

    #[test]
    fn pairs_are_found_in_tables_of_every_size() {
        for algorithms in 1..=9 {
            for protocols in 1..=4 {
                let (table, layout) = numbered(algorithms, protocols);
                for pair in Pair::all() {
                    let there = layout.position(pair.index());
                    assert_eq!(table.known.get(pair), there.map(|at| at as f32), "{layout:?} {pair}");
                }
            }
        }
        let (table, layout) = numbered(7, 3);
        assert_eq!((table.beyond, layout.position(20)), (f32::INFINITY, Some(20)));
        // A protocol that we have no name for, and an algorithm.
        assert_eq!(numbered(7, 4).0.beyond, 3.0);
        assert_eq!(numbered(8, 3).0.beyond, 21.0);
        let tree = Pair::new(Algorithm::Tree, Protocol::Simple);
        assert_eq!(Layout::new(7, 2).unwrap().position(tree.index()), None);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for (algorithms, protocols) in [(0, 3), (7, 0), (-1, 3), (7, -3), (65, 3), (7, i32::MAX)] {
            assert_eq!(Layout::new(algorithms, protocols), None);
        }
    }

    #[test]
    fn everything_that_may_differ_is_in_the_key() {
        let call =
            Call { collective: Collective::AllReduce, bytes: 1 << 20, pipelined: 1, table: numbered(7, 3).0 };
        let mut others = vec![
            Call { bytes: call.bytes + 1, ..call },
            Call { pipelined: 2, ..call },
            Call { collective: Collective::Reduce, ..call },
            Call { table: RawTable { beyond: 5.0, ..call.table }, ..call },
        ];
        for pair in Pair::all() {
            let mut other = call;
            other.table.known.set(pair, 99.0);
            others.push(other);
        }
        for other in others {
            assert_ne!(other.key(), call.key(), "{other:?}");
        }
    }
}
