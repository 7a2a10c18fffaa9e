//! The driven mode: a program that measures says in its own process what the next calls get.
//!
//! Orders hold for all communicators of the process. That ranks get the same ones is up to who gives them: between two
//! orders all ranks make the same calls, so none can run what another does not. An order never forces what NCCL has
//! ruled out: such a call is NCCL's own, and counted as refused.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use dynamiccl_spec::driven::CHUNKS_SINCE;
use dynamiccl_spec::{ChunkChoice, Order};

use super::answer::Answer;
use super::call::Call;

static ORDER: AtomicU64 = AtomicU64::new(0);
static SEEN: Mutex<Option<Seen>> = Mutex::new(None);

/// What has happened since the last order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// The version of the interface through which NCCL asks.
    pub interface: u32,
    /// Calls.
    pub calls: u64,
    /// Those of them that could not get what was ordered.
    pub refused: u64,
    /// The last of them.
    pub last: Call,
    /// What was done to it.
    pub answer: Answer,
}

/// Gives an order, from which on calls are counted anew; false where the word is none.
pub fn give(bits: u64) -> bool {
    let known = Order::of_bits(bits).is_some();
    if known {
        ORDER.store(bits, Relaxed);
        *SEEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
    known
}

/// The order that holds.
pub fn order() -> Order {
    Order::of_bits(ORDER.load(Relaxed)).unwrap_or_default()
}

/// What has happened since the last order; nothing without a call.
pub fn seen() -> Option<Seen> {
    *SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes note of a call and what was done to it.
pub fn note(interface: u32, order: Order, call: &Call, answer: Answer) {
    let refused = u64::from(!is_carried_out(interface, order, call, answer));
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (calls, before) = seen.map_or((0, 0), |seen| (seen.calls, seen.refused));
    *seen = Some(Seen { interface, calls: calls + 1, refused: before + refused, last: *call, answer });
}

/// Whether NCCL will do what was ordered.
fn is_carried_out(interface: u32, order: Order, call: &Call, answer: Answer) -> bool {
    let Order::Knobs { pair, channels, chunk } = order else { return true };
    let own = call.table.known.best().is_some_and(|(best, us)| best == pair && us < call.table.beyond);
    let wins = match answer.entry() {
        Some((written, _)) => written == pair.index(),
        None => own,
    };
    let counted = answer.channels() == channels.requested().map(|channels| channels as i32);
    let cut = chunk == ChunkChoice::Own || interface >= CHUNKS_SINCE;
    wins && counted && cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuner::call::RawTable;
    use dynamiccl_spec::{Algorithm, ChannelChoice, Collective, CostTable, Knobs, Pair, Protocol};

    const RING: Pair = Pair::new(Algorithm::Ring, Protocol::LL);
    const TREE: Pair = Pair::new(Algorithm::Tree, Protocol::LL);

    fn call() -> Call {
        let mut known = CostTable::default();
        known.set(RING, 20.0);
        known.set(TREE, 10.0);
        let table = RawTable { known, beyond: f32::INFINITY };
        Call { collective: Collective::AllReduce, bytes: 1024, pipelined: 1, table }
    }

    fn carried_out(interface: u32, pair: Pair, channels: u8, chunk: ChunkChoice) -> bool {
        let channels = ChannelChoice::of(channels).unwrap();
        let (order, call) = (Order::Knobs { pair, channels, chunk }, call());
        let knobs = Knobs { chunk, ..Knobs::with_pair(pair, channels) };
        is_carried_out(interface, order, &call, Answer::new(&knobs, f32::NAN, &call.table, 1))
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        assert!(carried_out(5, RING, 4, ChunkChoice::Own));
        assert!(carried_out(5, TREE, 0, ChunkChoice::Own), "NCCL's own pick needs nothing written");
        assert!(!carried_out(5, Pair::new(Algorithm::Nvls, Protocol::Simple), 4, ChunkChoice::Own));
        assert!(!carried_out(5, RING, 4, ChunkChoice::Half), "no chunk before interface 6");
        assert!(carried_out(6, RING, 4, ChunkChoice::Half));
    }

    #[test]
    fn what_is_no_order_changes_nothing() {
        assert!(!give(u64::MAX));
        assert_eq!(order(), Order::Own);
    }
}
