//! Files of the encodings before this one: what they hold is still what a policy decides by.
//!
//! Each encoding has ended where the next one's new numbers begin. A policy that never saw those has no weight for
//! them, so every decision of it keeps its bits.

use dynamiccl_spec::features::catalogue::{Part, slot, width};
use dynamiccl_spec::features::{CONTEXT_WIDTH, VERSION, hash};

use super::container::Container;
use super::fingerprint;

/// Encodings before this one: name, hash, and the first feature of a call that they do not have.
const EARLIER: [(&str, &str, &str); 2] = [
    ("feat-v1", "c7ebbb8b3c6c6351", "synthesised_available"),
    ("feat-v2", "8eb4eb767480d273", "unfilled_level"),
];
/// The tensor with a row for each number of a context.
const EMBEDDING: &str = "embed.weight";

/// The numbers of a context that a file knows: all, unless it is of an encoding before this one. It then says that it
/// is of this one.
pub fn adopt(container: &mut Container<'_>) -> usize {
    let words = &mut container.metadata;
    let says = |key: &str, word: &str| words.get(key).is_some_and(|said| said == word);
    let earlier = EARLIER.iter().find(|(name, hash, _)| says("features", name) && says("encoder", hash));
    let Some((.., unknown)) = earlier else { return CONTEXT_WIDTH };
    words.insert("features".to_owned(), VERSION.to_owned());
    words.insert("encoder".to_owned(), fingerprint::text(hash()));
    let added = slot(unknown).map_or(0, |slot| width(Part::Call) - slot.start);
    CONTEXT_WIDTH - added
}

/// The dimensions of a tensor in a file that knows so many numbers of a context.
pub fn dims(name: &str, known: usize, mut now: Vec<usize>) -> Vec<usize> {
    if name == EMBEDDING {
        now[0] = known;
    }
    now
}

/// Gives what such a file does not know no weight.
pub fn pad(name: &str, known: usize, numbers: &mut Vec<f32>) {
    if name == EMBEDDING {
        numbers.resize(numbers.len() / known * CONTEXT_WIDTH, 0.0);
    }
}
