//! A schedule: which rank sends which chunk to whom, in an order that keeps every dependency.
//!
//! It knows neither links nor times. A buffer is cut into ranks × `chunks` equal chunks.

use dynamiccl_spec::Collective;

use crate::bits::Bits;
use crate::stop::{NEVER, Stop, Turns};

/// The root of broadcast and reduce.
pub const ROOT: u32 = 0;

/// What a send does at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Adds a partial result.
    Reduce,
    /// Places a complete chunk.
    Gather,
}

/// One send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Send {
    /// What it does at its end.
    pub phase: Phase,
    /// The chunk.
    pub chunk: u32,
    /// Who sends.
    pub from: u32,
    /// Who receives.
    pub to: u32,
}

/// Sends in an order in which each needs only earlier ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// What it carries out.
    pub collective: Collective,
    /// Ranks.
    pub ranks: u32,
    /// Chunks of each rank.
    pub chunks: u32,
    /// The sends.
    pub sends: Vec<Send>,
    /// µs that the synthesizer believed it to take.
    pub planned_us: f64,
}

impl Schedule {
    /// Chunks of the whole buffer.
    pub fn total_chunks(&self) -> u32 {
        self.ranks * self.chunks
    }

    /// The rank that a chunk begins or ends at: its owner, or the root.
    pub fn owner(&self, chunk: u32) -> u32 {
        if self.collective.is_rooted() { ROOT } else { chunk / self.chunks }
    }

    /// Bytes of a chunk where the buffer has so many.
    pub fn chunk_bytes(&self, bytes: u64) -> f64 {
        bytes as f64 / f64::from(self.total_chunks())
    }

    /// For each send the earlier ones that it needs: what its sender has received of the chunk.
    pub fn needs(&self) -> Vec<Vec<u32>> {
        self.needs_unless(NEVER).unwrap_or_default()
    }

    /// The same; none where it is to stop.
    pub(crate) fn needs_unless(&self, stop: Stop<'_>) -> Option<Vec<Vec<u32>>> {
        let mut turns = Turns::new(stop);
        let total = self.total_chunks() as usize;
        let mut received: Vec<Vec<u32>> = vec![Vec::new(); self.ranks as usize * total];
        let at = |rank: u32, chunk: u32| rank as usize * total + chunk as usize;
        let mut needs = Vec::with_capacity(self.sends.len());
        for (send, number) in self.sends.iter().zip(0..) {
            if turns.ends() {
                return None;
            }
            needs.push(received[at(send.from, send.chunk)].clone());
            let arrivals = &mut received[at(send.to, send.chunk)];
            if send.phase == Phase::Gather {
                arrivals.clear();
            }
            arrivals.push(number);
        }
        Some(needs)
    }

    /// The longest chain of sends of which each needs the one before.
    pub fn steps(&self) -> u32 {
        let needs = self.needs();
        let mut depth: Vec<u32> = Vec::with_capacity(needs.len());
        for needed in &needs {
            depth.push(1 + needed.iter().map(|&send| depth[send as usize]).max().unwrap_or(0));
        }
        depth.into_iter().max().unwrap_or(0)
    }

    /// Which ranks receive which chunks, as a table of ranks × chunks.
    pub(crate) fn starts(&self) -> Bits {
        let mut have = Bits::new(self.ranks as usize, self.total_chunks() as usize);
        for chunk in 0..self.total_chunks() {
            have.set(self.owner(chunk) as usize, chunk as usize);
        }
        have
    }
}
