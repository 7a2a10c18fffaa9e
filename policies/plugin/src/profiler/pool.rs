//! Collectives that are under way, in slots that exist from the start: no event allocates.
//!
//! NCCL stops a collective's own event when it is launched, and the kernel events of its channels come
//! later, from another thread. A slot is closed by whoever brings the last of them. Where some never come
//! (v3 does not say how many there will be), [`Pool::sweep`] closes it after a while.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::handle::{SLOTS_MAX, Ticket};
use super::record::{Clock, Record, WORDS};

/// Slots that are looked at before a collective is given up.
const TRIES: usize = 16;
/// The first of them stand side by side; the others are spread over all slots, since those that are taken for long are
/// taken in a row.
const NEAR: usize = 8;
/// Kernels that have all stopped and stay quiet for so long were all there are.
const QUIET_NS: u64 = 1_000_000_000;
/// A collective without news for so long gives its slot up where slots run short.
const STALE_NS: u64 = 10_000_000_000;

/// When a slot is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It is launched.
    Launched,
    /// So many kernels have stopped too.
    Kernels(u8),
    /// Nothing more comes.
    Quiet,
}

/// A pool of `N` slots.
pub struct Pool<const N: usize> {
    next: AtomicU64,
    slots: [Slot; N],
}

/// The state counts four phases per use: free, being filled, open, being closed.
struct Slot {
    state: AtomicU64,
    owner: AtomicU64,
    words: [AtomicU64; WORDS],
    until: AtomicU64,
    launched: AtomicBool,
    launched_ns: AtomicU64,
    touched_ns: AtomicU64,
    started: AtomicU64,
    stopped: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
}

const FREE: u64 = 0;
const FILLED: u64 = 1;
const OPEN: u64 = 2;
const CLOSED: u64 = 3;
const QUIET: u64 = u64::MAX;

impl<const N: usize> Pool<N> {
    /// All slots free.
    pub const fn new() -> Self {
        assert!(N <= SLOTS_MAX);
        Pool { next: AtomicU64::new(0), slots: [const { Slot::new() }; N] }
    }

    /// Takes a slot for a collective of this communicator, whose duration is not known yet; nothing where none is free.
    pub fn open(&self, owner: u64, record: Record, until: Until) -> Option<Ticket> {
        for tried in 0..TRIES.min(N) {
            let step = if tried < NEAR { 1 } else { N / (TRIES - NEAR) };
            let at = self.next.fetch_add(step as u64, Ordering::Relaxed) as usize % N;
            let slot = &self.slots[at];
            let state = slot.state.load(Ordering::Relaxed);
            if state % 4 != FREE {
                continue;
            }
            if slot
                .state
                .compare_exchange(state, state + FILLED, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            slot.fill(owner, record, until);
            slot.state.store(state + OPEN, Ordering::Release);
            return Some(Ticket::new(at as u16, state / 4));
        }
        None
    }

    /// The slot of a ticket while it is open, and its state.
    fn open_slot(&self, ticket: Ticket) -> Option<(&Slot, u64)> {
        let slot = self.slots.get(usize::from(ticket.slot))?;
        let state = slot.state.load(Ordering::Acquire);
        (state % 4 == OPEN && ticket.is_turn(state / 4)).then_some((slot, state))
    }

    /// The collective is launched. The record, if this completes it.
    pub fn launched(&self, ticket: Ticket, now: u64) -> Option<Record> {
        let (slot, state) = self.open_slot(ticket)?;
        slot.launched_ns.store(now, Ordering::Relaxed);
        slot.touched_ns.store(now, Ordering::Relaxed);
        slot.launched.store(true, Ordering::SeqCst);
        slot.close_if_complete(state)
    }

    /// A channel's kernel has started. Whether anybody waits for it.
    pub fn kernel_started(&self, ticket: Ticket, channel: u8, at_ns: u64) -> bool {
        let Some((slot, _)) = self.open_slot(ticket) else { return false };
        slot.first_ns.fetch_min(at_ns, Ordering::Relaxed);
        slot.started.fetch_or(1 << (channel % 64), Ordering::Relaxed);
        true
    }

    /// The time at which a channel's kernel stopped.
    pub fn kernel_ended(&self, ticket: Ticket, at_ns: u64) {
        if let Some((slot, _)) = self.open_slot(ticket) {
            slot.last_ns.fetch_max(at_ns, Ordering::Relaxed);
        }
    }

    /// A channel's kernel has stopped. The record, if this completes it.
    pub fn kernel_stopped(&self, ticket: Ticket, channel: u8, now: u64) -> Option<Record> {
        let (slot, state) = self.open_slot(ticket)?;
        slot.touched_ns.store(now, Ordering::Relaxed);
        slot.stopped.fetch_or(1 << (channel % 64), Ordering::SeqCst);
        slot.close_if_complete(state)
    }

    /// Gives the records of slots to which nothing more comes.
    pub fn sweep(&self, now: u64, mut take: impl FnMut(Record)) {
        let used = self.slots.iter().filter(|slot| slot.state.load(Ordering::Relaxed) % 4 != FREE).count();
        let is_short = used > N / 2;
        for slot in &self.slots {
            let state = slot.state.load(Ordering::Acquire);
            if state % 4 != OPEN || !slot.launched.load(Ordering::SeqCst) {
                continue;
            }
            let silence = now.saturating_sub(slot.touched_ns.load(Ordering::Relaxed));
            let (started, stopped) =
                (slot.started.load(Ordering::SeqCst), slot.stopped.load(Ordering::SeqCst));
            let is_open_ended = slot.until.load(Ordering::Relaxed) == QUIET;
            let is_done = is_open_ended && stopped != 0 && started == stopped && silence >= QUIET_NS;
            if is_done || is_short && silence >= STALE_NS {
                slot.close(state).into_iter().for_each(&mut take);
            }
        }
    }

    /// Gives the records of a communicator's slots that are open: nothing more comes to them. Of one that was aborted, these
    /// are all that were under way.
    pub fn close_of(&self, owner: u64, take: impl FnMut(Record)) {
        self.close_where(|slot| slot.owner.load(Ordering::Relaxed) == owner, take);
    }

    /// Gives the records of all slots that are open: nothing more comes to any of them.
    pub fn close_all(&self, take: impl FnMut(Record)) {
        self.close_where(|_| true, take);
    }

    fn close_where(&self, is_meant: impl Fn(&Slot) -> bool, mut take: impl FnMut(Record)) {
        for slot in &self.slots {
            // What is read of it is of this use, or closing fails.
            let state = slot.state.load(Ordering::Acquire);
            if state % 4 == OPEN && is_meant(slot) {
                slot.close(state).into_iter().for_each(&mut take);
            }
        }
    }

    /// Forgets everything. No other thread may be at the pool: a child of a fork has none.
    pub fn clear(&self) {
        for slot in &self.slots {
            let state = slot.state.load(Ordering::Relaxed);
            if state % 4 != FREE {
                slot.state.store((state / 4 + 1) * 4, Ordering::Release);
            }
        }
    }
}

impl Slot {
    const fn new() -> Self {
        Slot {
            state: AtomicU64::new(0),
            owner: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
            until: AtomicU64::new(0),
            launched: AtomicBool::new(false),
            launched_ns: AtomicU64::new(0),
            touched_ns: AtomicU64::new(0),
            started: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            first_ns: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
        }
    }

    fn fill(&self, owner: u64, record: Record, until: Until) {
        self.owner.store(owner, Ordering::Relaxed);
        for (place, word) in self.words.iter().zip(record.to_words()) {
            place.store(word, Ordering::Relaxed);
        }
        let until = match until {
            Until::Launched => 0,
            Until::Kernels(count) => count.into(),
            Until::Quiet => QUIET,
        };
        self.until.store(until, Ordering::Relaxed);
        self.launched.store(false, Ordering::Relaxed);
        self.launched_ns.store(record.start_ns, Ordering::Relaxed);
        self.touched_ns.store(record.start_ns, Ordering::Relaxed);
        self.started.store(0, Ordering::Relaxed);
        self.stopped.store(0, Ordering::Relaxed);
        self.first_ns.store(u64::MAX, Ordering::Relaxed);
        self.last_ns.store(0, Ordering::Relaxed);
    }

    /// Both conditions are read after either was set, in one order for all threads: the last one sees both.
    fn close_if_complete(&self, state: u64) -> Option<Record> {
        let until = self.until.load(Ordering::Relaxed);
        let stopped = u64::from(self.stopped.load(Ordering::SeqCst).count_ones());
        (self.launched.load(Ordering::SeqCst) && stopped >= until).then(|| self.close(state))?
    }

    /// Closes this use of the slot, once: whoever comes second gets nothing.
    fn close(&self, state: u64) -> Option<Record> {
        let closed = state - OPEN + CLOSED;
        self.state.compare_exchange(state, closed, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        let words = std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed));
        let record = Record::from_words(words).map(|record| self.timed(record));
        self.state.store(closed + 1, Ordering::Release);
        record
    }

    /// The record with the time that its kernels took, where they said, or else that of its launch.
    fn timed(&self, record: Record) -> Record {
        let (started, stopped) = (self.started.load(Ordering::Relaxed), self.stopped.load(Ordering::Relaxed));
        let (first, last) = (self.first_ns.load(Ordering::Relaxed), self.last_ns.load(Ordering::Relaxed));
        let until = self.until.load(Ordering::Relaxed);
        let all_stopped = stopped != 0 && (until == QUIET || u64::from(stopped.count_ones()) >= until);
        let counted = if until == QUIET { started.count_ones() as u8 } else { record.channels };
        let record = Record { channels: counted, ..record };
        if all_stopped && first != 0 && first < last {
            return Record { duration_ns: last - first, ..record };
        }
        let launch = self.launched_ns.load(Ordering::Relaxed).saturating_sub(record.start_ns);
        Record { duration_ns: launch, clock: Clock::Launch, ..record }
    }
}

#[cfg(test)]
mod tests;
