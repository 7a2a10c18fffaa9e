//! Which pairs a job has tried for which kinds of call, as far as the memory of decisions can know.
//!
//! What is not known yet is worth a try: lessons add to it. They must not count a try that decisions have not seen.

use dynamiccl_spec::features::JOB_WIDTH;
use dynamiccl_spec::features::catalogue::slot;
use serde::{Deserialize, Serialize};

/// Tries of one job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Tried {
    /// A kind of call, the pairs that decisions know to have been tried for it, and those that were tried since.
    kinds: Vec<(Kind, u32, u32)>,
}

/// A kind of call: collective and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Kind([u32; 2]);

impl Kind {
    fn of(context: &[f32]) -> Self {
        let of_call = &context[JOB_WIDTH..];
        let slot = |name| slot(name).expect("a feature of this encoding");
        let collective = of_call[slot("collective")].iter().position(|&x| x == 1.0);
        let size = of_call[slot("log2_bytes").start];
        Kind([collective.map_or(u32::MAX, |at| at as u32), size.to_bits()])
    }
}

impl Tried {
    /// Nothing yet.
    pub fn clear(&mut self) {
        self.kinds.clear();
    }

    /// A pair was tried for the call of a context, and measured.
    pub fn add(&mut self, context: &[f32], pair: u8) {
        let kind = Kind::of(context);
        let bit = 1 << pair;
        match self.kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., since)) => *since |= bit,
            None => self.kinds.push((kind, 0, bit)),
        }
    }

    /// Decisions know all of it from now on.
    pub fn refresh(&mut self) {
        self.kinds.iter_mut().for_each(|(_, known, since)| *known |= *since);
    }

    /// The pairs that decisions know to have been tried for the call of a context, as bits.
    pub fn pairs(&self, context: &[f32]) -> u32 {
        let kind = Kind::of(context);
        self.kinds.iter().find(|(known, ..)| *known == kind).map_or(0, |(_, known, _)| *known)
    }
}
