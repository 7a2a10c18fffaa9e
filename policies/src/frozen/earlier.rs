//! Files of the encoding before this one: what they hold is still what a policy decides by.
//!
//! `feat-v1` ended before the two numbers of a synthesised schedule, which are 0 wherever no runtime can run one.
//! A policy that never saw them has no weight for them, so every decision of it keeps its bits.

use dynamiccl_spec::features::catalogue::{Part, slot, width};
use dynamiccl_spec::features::{CONTEXT_WIDTH, VERSION, hash};

use super::container::Container;
use super::fingerprint;

/// The encoding before this one, and its hash.
const EARLIER: (&str, &str) = ("feat-v1", "c7ebbb8b3c6c6351");
/// The tensor with a row for each number of a context.
const EMBEDDING: &str = "embed.weight";

/// Whether a file is of the encoding before this one; it then says that it is of this one.
pub fn adopt(container: &mut Container<'_>) -> bool {
    let words = &mut container.metadata;
    let says = |key: &str, word: &str| words.get(key).is_some_and(|said| said == word);
    let earlier = says("features", EARLIER.0) && says("encoder", EARLIER.1);
    if earlier {
        words.insert("features".to_owned(), VERSION.to_owned());
        words.insert("encoder".to_owned(), fingerprint::text(hash()));
    }
    earlier
}

/// The dimensions of a tensor in a file of the encoding before this one.
pub fn dims(name: &str, mut now: Vec<usize>) -> Vec<usize> {
    if name == EMBEDDING {
        now[0] = known();
    }
    now
}

/// Gives what a file of the encoding before this one does not know no weight.
pub fn pad(name: &str, numbers: &mut Vec<f32>) {
    if name == EMBEDDING {
        numbers.resize(numbers.len() / known() * CONTEXT_WIDTH, 0.0);
    }
}

/// Numbers of a context before this encoding; its new ones are the last of a call.
fn known() -> usize {
    let added = slot("synthesised_available").map_or(0, |slot| width(Part::Call) - slot.start);
    CONTEXT_WIDTH - added
}
