//! What a synthesizer believes of links: how long a chunk keeps one busy, and which exclude each other.

use std::collections::HashMap;

use super::Assume;
use crate::machine::{BYTES_PER_US, Machine, Wiring};
use crate::sketch::Sketch;

/// A link as believed.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Who sends.
    pub from: u32,
    /// Who receives.
    pub to: u32,
    /// Whether it leaves the node.
    pub remote: bool,
    /// Picoseconds that a chunk keeps it busy.
    pub busy: u64,
    /// Picoseconds until the chunk is there, after that.
    pub hop: u64,
    /// What it excludes others from while busy, as indices.
    pub shared: [Option<u32>; 2],
}

/// All links, in the order of the sketch.
#[derive(Debug)]
pub struct Belief {
    /// The links.
    pub links: Vec<Link>,
    /// How many shared things there are.
    pub shared: usize,
}

/// What links may share, as believed.
#[derive(PartialEq, Eq, Hash)]
enum Shared {
    GpuOut(u32),
    GpuIn(u32),
    NicOut(Option<u32>),
    NicIn(Option<u32>),
    PortOut(u32),
    PortIn(u32),
}

impl Belief {
    /// The links of a sketch for chunks of so many bytes.
    pub fn new(machine: &Machine, sketch: &Sketch, assume: Assume, chunk_bytes: f64) -> Self {
        let picoseconds = |micros: f64| ((micros * 1e6) as u64).max(1);
        let mut known: HashMap<Shared, u32> = HashMap::new();
        let mut links = Vec::with_capacity(sketch.links.len());
        for &(from, to) in &sketch.links {
            let remote = !machine.together(from, to);
            let shared = sharing(machine, sketch, assume, from, to).map(|pair| {
                pair.map(|shared| {
                    let next = known.len() as u32;
                    *known.entry(shared).or_insert(next)
                })
            });
            let rates = &machine.rates;
            let hop = picoseconds(if remote { rates.remote_hop } else { rates.local_hop });
            let busy = picoseconds(chunk_bytes / (sketch.rate(machine, from, to) * BYTES_PER_US));
            // Who knows of NICs also knows that they work on while a chunk is under way.
            let (busy, hop) = if assume == Assume::Nic { (busy, hop) } else { (busy + hop, 0) };
            let shared = shared.map_or([None, None], |pair| pair.map(Some));
            links.push(Link { from, to, remote, busy, hop, shared });
        }
        Belief { links, shared: known.len() }
    }

    /// The links out of each of so many ranks, as indices.
    pub fn out(&self, ranks: u32) -> Vec<Vec<u32>> {
        let mut out = vec![Vec::new(); ranks as usize];
        for (link, number) in self.links.iter().zip(0_u32..) {
            out[link.from as usize].push(number);
        }
        out
    }
}

fn sharing(machine: &Machine, sketch: &Sketch, assume: Assume, from: u32, to: u32) -> Option<[Shared; 2]> {
    let nic = |rank: u32| sketch.nic_of[rank as usize];
    match (machine.together(from, to), assume) {
        (true, _) if machine.wiring == Wiring::Switched => Some([Shared::PortOut(from), Shared::PortIn(to)]),
        (true, _) | (false, Assume::Connection) => None,
        (false, Assume::Gpu) => Some([Shared::GpuOut(from), Shared::GpuIn(to)]),
        (false, Assume::Nic) => Some([Shared::NicOut(nic(from)), Shared::NicIn(nic(to))]),
    }
}
