//! What the interfaces of every version call: events in, finished records into the ring.
//!
//! Nothing here allocates, locks or waits, and nothing here can fail: what does not fit is counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::clock;
use super::communicators::Communicators;
use super::event::{Channels, Counted, Event, Started};
use super::handle::{CHANNELS_MAX, Handle};
use super::pool::{Pool, Until};
use super::record::{Clock, Record, WORDS};
use super::ring::Ring;

/// Collectives that can be under way: a host runs ahead of its GPU by about a thousand launches.
const UNDER_WAY: usize = 4096;
/// Records that can wait for the writer: it comes every 50 ms.
const WAITING: usize = 8192;

/// One process's recorder.
pub struct Recorder {
    /// The communicators.
    pub communicators: Communicators,
    /// Whether no kernel events are asked for.
    pub launches_only: AtomicBool,
    pool: Pool<UNDER_WAY>,
    ring: Ring<WAITING, WORDS>,
    dropped: AtomicU64,
}

impl Recorder {
    /// Nothing recorded. All of it is zeros, so that the library's file does not grow by it.
    pub const fn new() -> Self {
        Recorder {
            communicators: Communicators::new(),
            launches_only: AtomicBool::new(false),
            pool: Pool::new(),
            ring: Ring::new(),
            dropped: AtomicU64::new(0),
        }
    }

    /// An event starts. The handle that NCCL shall keep, or zero.
    pub fn start(&self, context: u64, event: Event) -> u64 {
        let handle = match event {
            Event::Group => Some(Handle::Group),
            Event::Collective(started) => self.start_collective(context, started),
            Event::Kernel { parent, channel, gpu_ns } => self.start_kernel(parent, channel, gpu_ns),
        };
        handle.map_or(0, Handle::to_bits)
    }

    fn start_collective(&self, context: u64, started: Started) -> Option<Handle> {
        let about = self.communicators.get(context)?;
        let (bytes, is_part) = match started.bytes {
            Counted::Whole(bytes) => (bytes, false),
            Counted::Part(bytes) => (bytes, started.collective.is_sharded()),
        };
        let times_kernels = !self.launches_only.load(Ordering::Relaxed);
        let (channels, channels_max, until, clock) = match started.channels {
            // No NCCL has so many: nothing that follows would make sense.
            Channels::Exactly(count) if count > CHANNELS_MAX => (0, 0, Until::Launched, Clock::Launch),
            Channels::Exactly(count) if times_kernels => (count, 0, Until::Kernels(count), Clock::Gpu),
            Channels::AtMost(most) if times_kernels => (0, most, Until::Quiet, Clock::Host),
            Channels::Exactly(count) => (count, 0, Until::Launched, Clock::Launch),
            Channels::AtMost(most) | Channels::Untimed(most) => (0, most, Until::Launched, Clock::Launch),
        };
        let record = Record {
            comm: started.comm.unwrap_or(about.id),
            rank: started.rank,
            ranks: about.ranks,
            nodes: about.nodes,
            seq: started.seq,
            collective: started.collective,
            bytes,
            is_part,
            algorithm: started.algorithm,
            protocol: started.protocol,
            channels,
            channels_max,
            warps: started.warps,
            start_ns: clock::nanos(),
            duration_ns: 0,
            clock,
            name: about.name,
        };
        let ticket = self.pool.open(context, record, until);
        if ticket.is_none() {
            self.count_dropped();
        }
        ticket.map(Handle::Collective)
    }

    fn start_kernel(&self, parent: u64, channel: u8, gpu_ns: Option<u64>) -> Option<Handle> {
        let Some(Handle::Collective(ticket)) = Handle::from_bits(parent) else { return None };
        let at = gpu_ns.unwrap_or_else(clock::nanos);
        let waits = channel < CHANNELS_MAX && self.pool.kernel_started(ticket, channel, at);
        waits.then_some(Handle::Kernel(ticket, channel))
    }

    /// The GPU's clock when a kernel stopped.
    pub fn kernel_ended(&self, handle: u64, gpu_ns: u64) {
        if let Some(Handle::Kernel(ticket, _)) = Handle::from_bits(handle) {
            self.pool.kernel_ended(ticket, gpu_ns);
        }
    }

    /// An event stops. `by_host`: nobody has said when its kernel stopped, so it is now.
    pub fn stop(&self, handle: u64, by_host: bool) {
        let finished = match Handle::from_bits(handle) {
            Some(Handle::Collective(ticket)) => self.pool.launched(ticket, clock::nanos()),
            Some(Handle::Kernel(ticket, channel)) => {
                let now = clock::nanos();
                if by_host {
                    self.pool.kernel_ended(ticket, now);
                }
                self.pool.kernel_stopped(ticket, channel, now)
            }
            Some(Handle::Group) | None => None,
        };
        finished.into_iter().for_each(|record| self.finish(record));
    }

    fn finish(&self, record: Record) {
        if !self.ring.push(record.to_words()) {
            self.count_dropped();
        }
    }

    fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that were lost since somebody last asked.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// The oldest finished record. Only the writer may take it.
    pub fn pop(&self) -> Option<Record> {
        self.ring.pop().and_then(Record::from_words)
    }

    /// Finishes what nothing more comes to.
    pub fn sweep(&self) {
        self.pool.sweep(clock::nanos(), |record| self.finish(record));
    }

    /// Finishes what this communicator has under way, without waiting for it.
    pub fn close_of(&self, context: u64) {
        self.pool.close_of(context, |record| self.finish(record));
    }

    /// Finishes all that is under way, without waiting for it.
    pub fn close_all(&self) {
        self.pool.close_all(|record| self.finish(record));
    }

    /// Forgets what a parent had under way when it forked this process.
    pub fn forget(&self) {
        self.communicators.clear();
        self.pool.clear();
        self.ring.clear();
        self.take_dropped();
    }
}
