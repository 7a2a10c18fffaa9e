//! What is measured: calls, and the settings that each is tried with.

use std::fmt;

use dynamiccl_env::measure::Clock;
use dynamiccl_spec::{Bytes, ChannelChoice, ChunkChoice, Collective, CostTable, Order};
use serde::Serialize;

use crate::clock;
use crate::crew::LiveError;
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
    /// Whether every one of so many ranks has something to send.
    pub fn check(self, ranks: u32) -> Result<(), LiveError> {
        let parts = matches!(self.collective, Collective::AllGather | Collective::ReduceScatter);
        let least = if parts { u64::from(ranks) * size_of::<f32>() as u64 } else { 0 };
        if self.bytes >= least {
            return Ok(());
        }
        Err(LiveError::Lacking(format!(
            "{self}: each of {ranks} ranks has a part of it, of 4 bytes at least; the smallest size is {least} bytes"
        )))
    }

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
    fn parts_of_nothing_are_refused() {
        let check = |collective, ranks| {
            Cell { collective, bytes: 256 }.check(ranks).map_err(|error| error.to_string())
        };
        assert_eq!((check(Collective::AllGather, 64), check(Collective::AllReduce, 1024)), (Ok(()), Ok(())));
        let error = check(Collective::ReduceScatter, 65).unwrap_err();
        assert!(
            error.starts_with("reducescatter 256: each of 65 ranks") && error.ends_with("260 bytes"),
            "{error}"
        );
    }

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
