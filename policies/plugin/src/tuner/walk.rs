//! Every legal setting in turn. Only for tests of what carries decisions: it shows that NCCL survives any of
//! them, at every call another.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dynamiccl_spec::{Choice, Collective, Decision, Head, Query};

/// How many calls of each collective there were. All ranks make the same calls in the same order, so all of
/// them choose the same.
#[derive(Debug, Default)]
pub struct Walk([AtomicU64; Collective::TUNED.len()]);

/// The heads that a call can be given, the one that changes at every call first.
const HEADS: [Head; 3] = [Head::Pair, Head::Channels, Head::Chunk];

impl Walk {
    /// The next setting of this collective.
    pub fn decide(&self, query: &Query<'_>) -> Decision {
        let Some(calls) = self.0.get(query.call.collective.id()) else {
            return Decision::chosen(query, query.own());
        };
        let number = calls.fetch_add(1, Relaxed);
        let settled = query.settled();
        settled.unwrap_or_else(|| setting(query, number))
    }
}

/// The setting with this number: a digit for each head.
fn setting(query: &Query<'_>, number: u64) -> Decision {
    let mask = &query.gated.mask;
    let mut choice = Choice::default();
    let mut rest = number;
    for head in HEADS {
        let values = u64::from(mask.count(head).max(1));
        let index = mask.indices(head).nth((rest % values) as usize);
        choice.0[head as usize] = index.unwrap_or(0) as u8;
        rest /= values;
    }
    Decision::chosen(query, choice.knobs().unwrap_or(query.own()))
}
