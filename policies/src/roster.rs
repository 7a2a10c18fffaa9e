//! The baseline tuners by name.
//!
//! Each module that has tuners lists them itself; here the lists are joined, so that a new tuner is one
//! line beside its code.

use dynamiccl_spec::Tuner;
use dynamiccl_spec::words::{UnknownWord, look_up};

use crate::{baselines, online};

/// A tuner that can be had by name.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Makes one; the seed decides whatever it draws.
    pub make: fn(u64) -> Box<dyn Tuner>,
}

/// Every list.
const LISTS: &[&[Entry]] = &[baselines::ROSTER, online::ROSTER];

/// The tuner of this name.
pub fn by_name(name: &str, seed: u64) -> Result<Box<dyn Tuner>, UnknownWord> {
    let known: Vec<_> = entries().map(|entry| (entry.name, entry.make)).collect();
    look_up("tuner", name, &known).map(|make| make(seed))
}

/// All tuners that can be had.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    LISTS.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tuner_has_a_name_of_its_own_and_answers_to_it() {
        let mut all: Vec<_> = entries().map(|entry| entry.name).collect();
        for &name in &all {
            assert_eq!(by_name(name, 1).unwrap().name(), name);
        }
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_typo_is_answered_with_the_tuner_that_was_meant() {
        let error = by_name("corodinate", 1).err().unwrap().to_string();
        assert!(error.starts_with("unknown tuner \"corodinate\"; did you mean \"coordinate\"?"), "{error}");
    }
}
