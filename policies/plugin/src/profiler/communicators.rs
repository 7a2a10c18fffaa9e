//! The communicators of this process, as NCCL told of them at init.
//!
//! NCCL keeps a context for each, which is a number as every handle is: it can be stale or made up and
//! still harm nobody.

use std::sync::atomic::{AtomicU64, Ordering};

const SLOT_BITS: u32 = 12;
/// Most communicators at a time; those beyond are not recorded.
pub const LIVE_MAX: usize = 1 << SLOT_BITS;

/// What NCCL says of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct About {
    /// Its id; 0 in v1 to v3, where events have it.
    pub id: u64,
    /// Its ranks; 0 where NCCL did not say.
    pub ranks: u32,
    /// Its nodes; 0 where NCCL did not say.
    pub nodes: u32,
    /// The position of the user's name for it.
    pub name: u16,
}

/// A table of communicators.
pub struct Communicators {
    slots: [Slot; LIVE_MAX],
    next: AtomicU64,
}

/// Odd turns are in use.
struct Slot {
    turn: AtomicU64,
    id: AtomicU64,
    shape: AtomicU64,
    name: AtomicU64,
}

impl Slot {
    const fn new() -> Self {
        Slot {
            turn: AtomicU64::new(0),
            id: AtomicU64::new(0),
            shape: AtomicU64::new(0),
            name: AtomicU64::new(0),
        }
    }
}

impl Communicators {
    /// An empty table.
    pub const fn new() -> Self {
        Communicators { slots: [const { Slot::new() }; LIVE_MAX], next: AtomicU64::new(0) }
    }

    /// Adds one and gives its context, which is never zero; nothing where the table is full.
    pub fn add(&self, about: About) -> Option<u64> {
        for _ in 0..LIVE_MAX {
            let at = self.next.fetch_add(1, Ordering::Relaxed) as usize % LIVE_MAX;
            let slot = &self.slots[at];
            let turn = slot.turn.load(Ordering::Relaxed);
            // Half a claim: the turn stays even, so nobody reads the slot before it is filled.
            if turn.is_multiple_of(2)
                && slot.turn.compare_exchange(turn, turn + 2, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                slot.id.store(about.id, Ordering::Relaxed);
                slot.shape.store(u64::from(about.ranks) << 32 | u64::from(about.nodes), Ordering::Relaxed);
                slot.name.store(about.name.into(), Ordering::Relaxed);
                slot.turn.store(turn + 3, Ordering::Release);
                return Some((turn + 3) << SLOT_BITS | at as u64);
            }
        }
        None
    }

    fn slot(&self, context: u64) -> (&Slot, u64) {
        (&self.slots[context as usize % LIVE_MAX], context >> SLOT_BITS)
    }

    /// The communicator of a context.
    pub fn get(&self, context: u64) -> Option<About> {
        let (slot, turn) = self.slot(context);
        if turn.is_multiple_of(2) || slot.turn.load(Ordering::Acquire) != turn {
            return None;
        }
        let shape = slot.shape.load(Ordering::Relaxed);
        Some(About {
            id: slot.id.load(Ordering::Relaxed),
            ranks: (shape >> 32) as u32,
            nodes: shape as u32,
            name: slot.name.load(Ordering::Relaxed) as u16,
        })
    }

    /// Removes one; `false` where the context is no communicator's (any more).
    pub fn remove(&self, context: u64) -> bool {
        let (slot, turn) = self.slot(context);
        !turn.is_multiple_of(2)
            && slot.turn.compare_exchange(turn, turn + 1, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Forgets all of them; their contexts lead nowhere.
    pub fn clear(&self) {
        for slot in &self.slots {
            let turn = slot.turn.load(Ordering::Relaxed);
            slot.turn.store(turn + turn % 2, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(id: u64) -> About {
        About { id, ranks: 8, nodes: 2, name: 5 }
    }

    #[test]
    fn a_context_leads_to_its_communicator_until_it_is_removed() {
        let table = Box::new(Communicators::new());
        let first = table.add(about(7)).unwrap();
        let second = table.add(about(8)).unwrap();
        assert_ne!(first, 0);
        assert_eq!(table.get(first), Some(about(7)));
        assert_eq!(table.get(second), Some(about(8)));
        assert!(table.remove(first));
        assert!(!table.remove(first), "twice");
        assert_eq!(table.get(first), None);
        assert_eq!(table.get(second), Some(about(8)));
        table.clear();
        assert_eq!((table.get(second), table.remove(second)), (None, false));
        for made_up in [0, 1, u64::MAX, 0x7fff_ffff_f000] {
            assert_eq!(table.get(made_up), None);
            assert!(!table.remove(made_up));
        }
    }

    #[test]
    fn a_full_table_refuses_and_a_slot_that_is_used_again_has_another_context() {
        let table = Box::new(Communicators::new());
        let contexts: Vec<u64> = (0..LIVE_MAX as u64).map(|id| table.add(about(id)).unwrap()).collect();
        assert_eq!(table.add(about(1)), None);
        assert!(table.remove(contexts[77]));
        let again = table.add(about(1)).unwrap();
        assert_ne!(again, contexts[77]);
        assert_eq!((table.get(contexts[77]), table.get(again)), (None, Some(about(1))));
    }
}
