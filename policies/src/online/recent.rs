//! The lookup table at run time: a few good settings of one kind of call, with their recent times.
//!
//! The one with the shortest recent time is used, and what it took updates it (TuCCL, section III-A). So a
//! setting that has become slow gives way to the next best without a new search.

use dynamiccl_spec::Knobs;

/// How much the newest time counts.
const NEWEST: f64 = 0.1;

/// The best settings of one kind of call.
#[derive(Debug, Clone, Default)]
pub struct Recent {
    /// Unsorted: there are few.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    knobs: Knobs,
    micros: f64,
}

impl Recent {
    /// These settings, each with the time that it is believed to take.
    pub fn new(believed: impl IntoIterator<Item = (Knobs, f64)>) -> Self {
        Recent { entries: believed.into_iter().map(|(knobs, micros)| Entry { knobs, micros }).collect() }
    }

    /// What a setting has just taken.
    pub fn update(&mut self, knobs: &Knobs, micros: f64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.knobs == *knobs) {
            entry.micros += NEWEST * (micros - entry.micros);
        }
    }

    /// The setting with the shortest recent time.
    pub fn fastest(&self) -> Option<Knobs> {
        let fastest =
            self.entries.iter().reduce(|low, next| if next.micros < low.micros { next } else { low });
        fastest.map(|entry| entry.knobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::ChannelChoice;

    fn knobs(channels: u8) -> Knobs {
        Knobs { channels: ChannelChoice::of(channels).unwrap(), ..Knobs::OWN }
    }

    #[test]
    fn a_setting_that_has_become_slow_gives_way_and_may_come_back() {
        let believed = [(2, 10.0), (4, 11.0), (8, 12.0)];
        let mut recent = Recent::new(believed.map(|(channels, micros)| (knobs(channels), micros)));
        assert_eq!(recent.fastest(), Some(knobs(2)));
        recent.update(&knobs(2), 100.0);
        assert_eq!(recent.fastest(), Some(knobs(4)));
        recent.update(&knobs(64), 0.1);
        assert_eq!(recent.fastest(), Some(knobs(4)), "what is not in the table is not heard of");
        (0..50).for_each(|_| recent.update(&knobs(4), 40.0));
        assert_eq!(recent.fastest(), Some(knobs(8)));
    }
}
