//! What each kind of call has taken with each setting that was tried, in this job.
//!
//! The LSTM knows sizes by bands and calls by what they have in common; now and then it goes on believing in
//! knobs whose every measurement says otherwise. What was measured of the very same kind of call outweighs
//! what is believed of it: knobs that were tried give way to ones that were measured to be faster by more than luck,
//! and NCCL's own are measured beside whatever else is chosen, so that there is something to compare with.

use dynamiccl_spec::{Decision, Knobs, Measured, Query};

use crate::kinds::{ByKey, Key};

/// Kinds of calls that notes are kept of; a job has some dozens.
const KINDS: usize = 1024;
/// Settings of a kind that notes are kept of: a policy that wants more of them has them take turns.
const SETTINGS: usize = 8;
/// How much the newest time counts at least: what the machine was like twenty calls ago matters little.
const NEWEST: f64 = 0.2;
/// How far beyond its mean a time counts; the rest is a pause of the machine. A time that is shorter by as much shows that
/// there were pauses before.
const PAUSE: f64 = 1.25;
/// How often NCCL's own are asked for: what ran once may have met a pause. No more: nobody may be measuring, or a gate may be
/// in the way.
const ASKED: u32 = 2;
/// How much faster (as a share) a setting must have been than another to be taken instead: always, and beside that
/// once for the luck of a single call, which falls with the root of the calls.
const FASTER: f64 = 0.01;
const LUCK: f64 = 0.08;

/// Notes of one job.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    kinds: ByKey<Kind>,
}

/// What is known of one kind of call.
#[derive(Debug, Clone, Default)]
struct Kind {
    notes: Vec<Note>,
    /// How often NCCL's own were asked for.
    asked: u32,
}

/// What a setting has taken.
#[derive(Debug, Clone, Copy)]
struct Note {
    knobs: Knobs,
    /// µs, newer ones counting more.
    mean: f64,
    /// How many times the mean is worth.
    times: f64,
}

impl Notes {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.kinds.clear();
    }

    /// What a call has taken.
    pub fn learn(&mut self, query: &Query<'_>, measured: &Measured) {
        let Measured { knobs, micros } = *measured;
        let key = Key::of(query);
        let room = self.kinds.len() < KINDS || self.kinds.contains_key(&key);
        if !room || !micros.is_finite() || micros <= 0.0 {
            return;
        }
        let Kind { notes, .. } = self.kinds.entry(key).or_default();
        if let Some(note) = notes.iter_mut().find(|note| note.knobs == knobs) {
            return note.add(micros);
        }
        let new = Note { knobs, mean: micros, times: 1.0 };
        if notes.len() < SETTINGS {
            notes.push(new);
        } else if let Some(slowest) = notes.iter_mut().max_by(|a, b| a.mean.total_cmp(&b.mean)) {
            *slowest = new;
        }
    }

    /// The decision, or what the notes say instead.
    pub fn weigh(&mut self, query: &Query<'_>, decision: Decision) -> Decision {
        match self.instead(query, &decision.knobs) {
            Some((knobs, exploratory)) => Decision { exploratory, ..Decision::chosen(query, knobs) },
            None => decision,
        }
    }

    /// Knobs to use instead of the wanted ones, and whether only to learn about them.
    fn instead(&mut self, query: &Query<'_>, wanted: &Knobs) -> Option<(Knobs, bool)> {
        let Kind { notes, asked } = self.kinds.get_mut(&Key::of(query))?;
        let of = |knobs: &Knobs| notes.iter().find(|note| note.knobs == *knobs);
        let (now, own) = (of(wanted)?, query.own());
        let doubtful = of(&own).is_none_or(|own| own.times < 2.0 && now.surely_faster_than(own));
        if doubtful && *asked < ASKED {
            *asked += 1;
            return Some((own, true));
        }
        let legal = |knobs: &Knobs| query.gated.pass(knobs).0 == *knobs;
        let faster = notes.iter().filter(|note| note.surely_faster_than(now) && legal(&note.knobs));
        let fastest = faster.min_by(|a, b| a.mean.total_cmp(&b.mean))?;
        Some((fastest.knobs, false))
    }
}

impl Note {
    fn add(&mut self, micros: f64) {
        if micros * PAUSE < self.mean {
            (self.mean, self.times) = (micros, 1.0);
            return;
        }
        self.times = (self.times + 1.0).min(1.0 / NEWEST);
        self.mean += (micros.min(self.mean * PAUSE) - self.mean) / self.times;
    }

    fn surely_faster_than(&self, other: &Note) -> bool {
        let luck = LUCK / self.times.min(other.times).sqrt();
        self.mean * (1.0 + FASTER + luck) < other.mean
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::context::JobContext;
    use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
    use dynamiccl_spec::gates::GateSet;
    use dynamiccl_spec::{ChannelChoice, Collective, CostTable, Gated, Head, Mask, Pair, PairMask};

    use super::*;

    /// NCCL's own are those of 0 channels.
    fn knobs(channels: u8) -> Knobs {
        let channels = ChannelChoice::of(channels).expect("a number of channels");
        Knobs { pair: Pair::from_index(3), channels, ..Knobs::OWN }
    }

    /// Asks about a call of so many bytes.
    fn ask<T>(bytes: u64, mask: Mask, f: impl FnOnce(&Query<'_>) -> T) -> T {
        let (table, pairs) = (CostTable::default(), PairMask::ALL);
        let collective = Collective::AllReduce;
        let call = CallContext { collective, bytes, pipelined: 1, table, pairs, synthesised: None };
        let gated = Gated { mask, own: Pair::from_index(3), fired: GateSet::default() };
        let (encoder, past) = (Encoder::new(&JobContext::default()), PastCall::default());
        let (encoder, call, gated, past) = (&encoder, &call, &gated, &past);
        f(&Query { communicator: 0, ranks: 8, nodes: 2, encoder, call, gated, past })
    }

    fn learn(notes: &mut Notes, channels: u8, micros: f64) {
        ask(1 << 20, Mask::ALL, |query| {
            notes.learn(query, &Measured { knobs: knobs(channels), micros });
        });
    }

    /// What becomes of a wish for so many channels.
    fn instead(notes: &mut Notes, channels: u8) -> Option<(Knobs, bool)> {
        ask(1 << 20, Mask::ALL, |query| notes.instead(query, &knobs(channels)))
    }

    #[test]
    fn nccls_own_is_measured_once_beside_what_was_chosen() {
        let mut notes = Notes::default();
        assert_eq!(instead(&mut notes, 8), None, "nothing is known yet");
        learn(&mut notes, 8, 100.0);
        assert_eq!(instead(&mut notes, 8), Some((knobs(0), true)));
        learn(&mut notes, 0, 99.0);
        assert_eq!(instead(&mut notes, 8), None, "as fast as can be told");
        assert_eq!(instead(&mut notes, 0), None);
    }

    #[test]
    fn nccls_own_has_a_second_chance_and_no_third() {
        let mut notes = Notes::default();
        learn(&mut notes, 8, 100.0);
        assert_eq!(instead(&mut notes, 8), Some((knobs(0), true)));
        learn(&mut notes, 0, 900.0);
        assert_eq!(instead(&mut notes, 8), Some((knobs(0), true)));
        assert_eq!(instead(&mut notes, 8), None, "nobody measures");
        learn(&mut notes, 0, 50.0);
        assert_eq!(instead(&mut notes, 8), Some((knobs(0), false)), "the first time was a pause");
    }

    #[test]
    fn what_was_slower_by_more_than_luck_gives_way_and_may_come_back() {
        let mut notes = Notes::default();
        learn(&mut notes, 8, 120.0);
        learn(&mut notes, 0, 100.0);
        assert_eq!(instead(&mut notes, 8), Some((knobs(0), false)));
        assert_eq!(instead(&mut notes, 4), None, "what was never tried may be tried");
        (0..20).for_each(|_| learn(&mut notes, 0, 150.0));
        assert_eq!(instead(&mut notes, 8), None);
        assert_eq!(
            instead(&mut notes, 0),
            Some((knobs(8), false)),
            "nor is NCCL's own kept where it is slower"
        );
    }

    #[test]
    fn the_more_calls_the_smaller_a_difference_counts() {
        let differs = |times: usize| {
            let mut notes = Notes::default();
            for _ in 0..times {
                learn(&mut notes, 8, 106.0);
                learn(&mut notes, 0, 100.0);
            }
            instead(&mut notes, 8).is_some()
        };
        assert_eq!([1, 2, 3, 5, 9].map(differs), [false, false, true, true, true]);
    }

    #[test]
    fn one_pause_of_the_machine_changes_little() {
        let mut notes = Notes::default();
        for _ in 0..5 {
            learn(&mut notes, 8, 100.0);
            learn(&mut notes, 0, 103.0);
        }
        learn(&mut notes, 8, 5000.0);
        assert_eq!(instead(&mut notes, 8), None);
        [f64::NAN, f64::INFINITY, 0.0, -1.0].into_iter().for_each(|micros| learn(&mut notes, 8, micros));
        assert_eq!(instead(&mut notes, 8), None, "what is no time is not heard of");
    }

    #[test]
    fn what_a_gate_forbids_is_not_taken_however_fast_it_was() {
        let mut notes = Notes::default();
        learn(&mut notes, 8, 200.0);
        learn(&mut notes, 0, 200.0);
        learn(&mut notes, 2, 100.0);
        assert_eq!(instead(&mut notes, 8), Some((knobs(2), false)));
        assert_eq!(ChannelChoice::VALUES[2], 2);
        let channels = Mask::ALL.bits(Head::Channels) & !(1 << 2);
        let mask = Mask::ALL.with(Head::Channels, channels);
        assert_eq!(ask(1 << 20, mask, |query| notes.instead(query, &knobs(8))), None);
    }

    #[test]
    fn kinds_do_not_share_notes_and_both_kinds_and_settings_are_few() {
        let mut notes = Notes::default();
        learn(&mut notes, 8, 120.0);
        assert_eq!(ask(1 << 21, Mask::ALL, |query| notes.instead(query, &knobs(8))), None);
        for bytes in 1..3000 {
            ask(bytes, Mask::ALL, |query| notes.learn(query, &Measured { knobs: knobs(1), micros: 1.0 }));
        }
        assert_eq!(notes.kinds.len(), KINDS);
        for (micros, channels) in [0, 1, 2, 4, 8, 12, 16, 24, 32, 64].into_iter().enumerate() {
            learn(&mut notes, channels, micros as f64 + 1.0);
        }
        assert!(notes.kinds.values().all(|kind| kind.notes.len() <= SETTINGS));
        notes.clear();
        assert_eq!(instead(&mut notes, 8), None);
    }
}
