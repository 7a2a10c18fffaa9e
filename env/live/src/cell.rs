//! What is measured: calls, and the settings that each is tried with.

use std::fmt;

use dynamiccl_env::measure::Clock;
use dynamiccl_spec::{Bytes, ChannelChoice, ChunkChoice, Collective, CostTable, Order};
use serde::Serialize;

use crate::clock;
use crate::message::Task;

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Cell {
    /// The collective.
    pub collective: Collective,
    /// Bytes in nccl-tests' convention.
    pub bytes: u64,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.collective, Bytes(self.bytes))
    }
}

impl Cell {
    /// The call as a worker gets it, timed by this clock.
    pub fn task(self, clock: Clock) -> Task {
        let Cell { collective, bytes } = self;
        Task {
            collective,
            bytes,
            calls: clock::calls(clock, collective, bytes),
            load: 0,
            drained: clock.is_drained(),
        }
    }
}

/// Every collective with every size, in that order.
pub fn grid(collectives: &[Collective], sizes: &[u64]) -> Vec<Cell> {
    let cells =
        collectives.iter().map(|&collective| sizes.iter().map(move |&bytes| Cell { collective, bytes }));
    cells.flatten().collect()
}

/// Which settings are tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tries {
    /// Channels to ask for.
    pub channels: Vec<ChannelChoice>,
    /// Chunk sizes; NCCL's own alone where the interface cannot set others.
    pub chunks: Vec<ChunkChoice>,
}

/// The first version of NCCL's interface that asks for chunk sizes.
pub(crate) const CHUNKS_SINCE: u32 = 6;

impl Tries {
    /// NCCL's own first, then every available pair with all channels and chunk sizes.
    pub fn orders(&self, table: &CostTable) -> Vec<Order> {
        let mut orders = vec![Order::Own];
        for (pair, _) in table.available() {
            for &channels in &self.channels {
                orders.extend(self.chunks.iter().map(|&chunk| Order::Knobs { pair, channels, chunk }));
            }
        }
        orders
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::{Algorithm, Pair, Protocol};

    #[test]
    fn every_available_setting_is_tried_once() {
        let mut table = CostTable::default();
        table.set(Pair::new(Algorithm::Ring, Protocol::LL), 3.0);
        table.set(Pair::new(Algorithm::Tree, Protocol::Simple), 4.0);
        let channels = [1, 4].map(|channels| ChannelChoice::of(channels).unwrap()).to_vec();
        let tries = Tries { channels, chunks: vec![ChunkChoice::Own, ChunkChoice::Half] };
        assert_eq!(tries.orders(&table).len(), 1 + 2 * 2 * 2);
        assert_eq!(tries.orders(&table)[0], Order::Own);
    }
}
