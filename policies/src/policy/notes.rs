//! What each kind of call has taken with each setting that was tried, in this job.
//!
//! The LSTM knows sizes by bands and calls by what they have in common; now and then it goes on believing in
//! knobs whose every measurement says otherwise. What was measured of the very same kind of call outweighs
//! what is believed of it: knobs that were tried give way to ones that were measured to be faster by more than luck,
//! and NCCL's own are measured beside whatever else is chosen, so that there is something to compare with. Pairs that may be
//! so much faster that finding out pays are tried, too.

use dynamiccl_spec::math::ln;
use dynamiccl_spec::{Decision, Knobs, Measured, Pair, Query};

use super::belief::Belief;
use crate::kinds::{ByKey, Key};

/// Kinds of calls that notes are kept of; a job has some dozens.
const KINDS: usize = 1024;
/// Settings of a kind that notes are kept of: a policy that wants more of them has them take turns.
const SETTINGS: usize = 8;
/// How many calls a mean is over at most: what the machine was like before matters little.
const RECENT: f64 = 10.0;
/// How far (ln) beyond its mean and twice the usual a time counts; the rest is a pause of the machine. A time that is shorter by
/// as much shows that there were pauses before.
const PAUSE: f64 = 0.2;
/// How far (ln) apart two calls of the same setting usually are where nothing is known yet, and how many calls that counts.
const USUAL: (f64, f64) = (0.05, 4.0);
/// How often NCCL's own are asked for: what ran once may have met a pause. No more: nobody may be measuring, or a gate may be
/// in the way.
const ASKED: u32 = 2;
/// How much faster (ln) a setting must have been than another to be taken instead: always, and beside that so many spreads
/// of what luck may do.
const FASTER: f64 = 0.01;
const LUCK: f64 = 1.25;
/// So many spreads of what luck may do are enough where what is believed of a setting speaks for it, too.
const LIKELY: f64 = 0.5;
/// Calls after which a setting is known: one may have met a pause.
const TWICE: f64 = 2.0;
/// How much faster (ln) the network may believe knobs to be than they were measured. Beyond that the machine has changed since:
/// the network has heard of it from other calls, and what it believes of other pairs is of now.
const OUTDATED: f64 = 0.3;
/// Calls of a kind after which what was measured of a setting before may be outdated; twice as many with every time that this was
/// found out.
const OLD: u32 = 8;
/// How often other pairs are tried because they may be faster, though nothing that was measured says so.
const GUESSES: u32 = 4;

/// Notes of one job.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    kinds: ByKey<Kind>,
}

/// What is known of one kind of call.
#[derive(Debug, Clone)]
struct Kind {
    notes: Vec<Note>,
    /// How far (ln) a call is from the mean of its setting: the mean, and over how many.
    apart: (f64, f64),
    /// How many calls were learned from.
    calls: u32,
    /// How often NCCL's own were asked for.
    asked: u32,
    /// How often what was outdated was measured anew.
    renewed: u32,
    /// How often other pairs were tried that had not been measured to be faster.
    guesses: u32,
}

/// What a setting has taken.
#[derive(Debug, Clone, Copy)]
struct Note {
    knobs: Knobs,
    /// Mean of ln µs, newer ones counting more.
    mean: f64,
    /// How many calls it is over.
    times: f64,
    /// The last of them, among the calls of its kind.
    last: u32,
}

/// What might be faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Trial {
    /// Knobs that were tried before.
    Again(Knobs),
    /// A pair that was not.
    New(Pair),
}

impl Notes {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.kinds.clear();
    }

    /// Whether there are any.
    pub fn begun(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// What a call has taken.
    pub fn learn(&mut self, query: &Query<'_>, measured: &Measured) {
        let Measured { knobs, micros } = *measured;
        let key = Key::of(query);
        let room = self.kinds.len() < KINDS || self.kinds.contains_key(&key);
        if room && micros.is_finite() && micros > 0.0 {
            self.kinds.entry(key).or_default().learn(knobs, ln(micros));
        }
    }

    /// The decision, or what the notes say instead.
    pub fn weigh(&mut self, query: &Query<'_>, decision: Decision) -> Decision {
        // Without a spread it is not the network that says so.
        let believed = decision.spread.and(decision.knobs.pair).and_then(|pair| decision.micros.get(pair));
        let believed = believed.map(|micros| ln(f64::from(micros)));
        match self.instead(query, &decision.knobs, believed) {
            Some((knobs, exploratory)) => Decision { exploratory, ..Decision::chosen(query, knobs) },
            None => decision,
        }
    }

    /// Knobs to use instead of the wanted ones, of which these ln µs are believed, and whether only to learn about them.
    fn instead(&mut self, query: &Query<'_>, wanted: &Knobs, believed: Option<f64>) -> Option<(Knobs, bool)> {
        let kind = self.kinds.get_mut(&Key::of(query))?;
        let (now, own) = (*kind.of(wanted)?, query.own());
        let doubtful = kind.of(&own).is_none_or(|own| own.times < TWICE && kind.surely_faster(&now, own));
        if doubtful && kind.asked < ASKED {
            kind.asked += 1;
            return Some((own, true));
        }
        if now.times < TWICE {
            return None;
        }
        let faster =
            kind.notes.iter().filter(|note| kind.surely_faster(note, &now) && legal(query, &note.knobs));
        let fastest = faster.min_by(|a, b| a.mean.total_cmp(&b.mean))?;
        if kind.is_outdated(&now, believed) {
            kind.renewed += 1;
            return Some((now.knobs, true));
        }
        Some((fastest.knobs, false))
    }

    /// What to try instead of knobs that were tried before, because it may be so much faster that one call for it pays: of
    /// these pairs, with what is believed of their ln µs. What was measured to be faster, if not surely, can be tried again and
    /// again: it is then the choice, until more calls say otherwise.
    pub fn trial(
        &mut self,
        query: &Query<'_>,
        knobs: &Knobs,
        pairs: impl Iterator<Item = (Pair, Belief)> + Clone,
    ) -> Option<Trial> {
        let kind = self.kinds.get_mut(&Key::of(query))?;
        let measured = kind.settled(knobs)?;
        let believed = pairs.clone().find(|(pair, _)| knobs.pair == Some(*pair));
        let now = believed.map_or(measured, |(_, belief)| measured.min(belief.mean + OUTDATED));
        let others = pairs.filter(|(pair, _)| knobs.pair != Some(*pair));
        let worth = others.filter_map(|(pair, belief)| {
            let (trial, belief) = kind.about(pair, belief);
            let possible = match &trial {
                Trial::Again(knobs) => legal(query, knobs),
                Trial::New(_) => true,
            };
            let affordable = kind.may_guess() || !kind.is_guess(&trial, now);
            (possible && affordable).then(|| (belief.worth_trying(now), trial))
        });
        let (_, best) = worth.filter(|(worth, _)| *worth > 0.0).max_by(|a, b| a.0.total_cmp(&b.0))?;
        kind.guesses += u32::from(kind.is_guess(&best, now));
        Some(best)
    }

    /// Whether something else may be tried instead of these knobs.
    pub fn may_try(&self, query: &Query<'_>, knobs: &Knobs) -> bool {
        self.kinds.get(&Key::of(query)).is_some_and(|kind| {
            let now = kind.settled(knobs);
            now.is_some_and(|now| {
                kind.may_guess() || kind.notes.iter().any(|note| kind.seems_faster(note, now))
            })
        })
    }
}

fn legal(query: &Query<'_>, knobs: &Knobs) -> bool {
    query.gated.pass(knobs).0 == *knobs
}

impl Default for Kind {
    fn default() -> Self {
        Kind { notes: Vec::new(), apart: USUAL, calls: 0, asked: 0, renewed: 0, guesses: 0 }
    }
}

impl Kind {
    fn of(&self, knobs: &Knobs) -> Option<&Note> {
        self.notes.iter().find(|note| note.knobs == *knobs)
    }

    /// The mean of knobs that are known.
    fn settled(&self, knobs: &Knobs) -> Option<f64> {
        self.of(knobs).filter(|note| note.times >= TWICE).map(|note| note.mean)
    }

    /// Whether pairs may be tried that were not measured to be faster.
    fn may_guess(&self) -> bool {
        self.guesses < GUESSES
    }

    /// Whether knobs were last measured so long ago that the machine may have changed, and are believed (ln µs) to be faster now.
    fn is_outdated(&self, note: &Note, believed: Option<f64>) -> bool {
        let old = OLD << self.renewed.min(16);
        self.calls - note.last >= old && believed.is_some_and(|believed| believed + OUTDATED < note.mean)
    }

    /// Whether nothing that was measured says that this is faster than `now` (ln µs).
    fn is_guess(&self, trial: &Trial, now: f64) -> bool {
        match trial {
            Trial::Again(knobs) => !self.of(knobs).is_some_and(|note| self.seems_faster(note, now)),
            Trial::New(_) => true,
        }
    }

    /// Whether a setting took less than `now` (ln µs), if not surely.
    fn seems_faster(&self, note: &Note, now: f64) -> bool {
        note.mean + LIKELY * self.spread() / note.times.sqrt() < now
    }

    fn learn(&mut self, knobs: Knobs, log: f64) {
        let usual = self.apart.0;
        self.calls = self.calls.saturating_add(1);
        let last = self.calls;
        if let Some(note) = self.notes.iter_mut().find(|note| note.knobs == knobs) {
            let off = log - note.mean;
            let (mean, calls) = &mut self.apart;
            *calls += 1.0;
            *mean += (off.abs().min(2.0 * *mean + PAUSE) - *mean) / *calls;
            note.last = last;
            return note.add(log, 2.0 * usual + PAUSE);
        }
        let new = Note { knobs, mean: log, times: 1.0, last };
        if self.notes.len() < SETTINGS {
            self.notes.push(new);
        } else if let Some(slowest) = self.notes.iter_mut().max_by(|a, b| a.mean.total_cmp(&b.mean)) {
            *slowest = new;
        }
    }

    /// Whether a setting is faster than another by more than luck.
    fn surely_faster(&self, note: &Note, other: &Note) -> bool {
        let luck = LUCK * self.spread() * (1.0 / note.times + 1.0 / other.times).sqrt();
        note.mean + FASTER + luck < other.mean
    }

    /// One spread of the ln µs of a call.
    fn spread(&self) -> f64 {
        // Of a normal distribution, the mean distance is 0.8 spreads.
        1.25 * self.apart.0
    }

    /// What is to be tried of a pair, and what is believed of it with what was measured.
    fn about(&self, pair: Pair, belief: Belief) -> (Trial, Belief) {
        let of_pair = self.notes.iter().filter(|note| note.knobs.pair == Some(pair));
        match of_pair.min_by(|a, b| a.mean.total_cmp(&b.mean)) {
            Some(note) => {
                // A single call that took much longer than was believed has met a pause, as likely as not.
                let pause = if note.times < TWICE { (note.mean - belief.mean).max(0.0) / 2.0 } else { 0.0 };
                let spread = self.spread() / note.times.sqrt() + pause;
                (Trial::Again(note.knobs), belief.and(Belief { mean: note.mean, spread }))
            }
            None => (Trial::New(pair), belief),
        }
    }
}

impl Note {
    /// Counts a call, as far as it is within `reach` of the mean.
    fn add(&mut self, log: f64, reach: f64) {
        if log < self.mean - reach {
            (self.mean, self.times) = (log, 1.0);
            return;
        }
        self.times = (self.times + 1.0).min(RECENT);
        self.mean += (log - self.mean).min(reach) / self.times;
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::context::JobContext;
    use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
    use dynamiccl_spec::gates::GateSet;
    use dynamiccl_spec::{ChannelChoice, Collective, CostTable, Gated, Head, Mask, PairMask};

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
        ask(1 << 20, Mask::ALL, |query| notes.instead(query, &knobs(channels), None))
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
        learn(&mut notes, 8, 100.0);
        assert_eq!(instead(&mut notes, 8), Some((knobs(0), false)), "the first time was a pause");
    }

    #[test]
    fn what_was_slower_by_more_than_luck_gives_way_and_may_come_back() {
        let mut notes = Notes::default();
        learn(&mut notes, 8, 120.0);
        learn(&mut notes, 0, 100.0);
        assert_eq!(instead(&mut notes, 8), None, "once may have been a pause");
        learn(&mut notes, 8, 120.0);
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
    fn what_is_believed_to_be_faster_by_now_is_measured_anew_ever_more_rarely() {
        let wish = |notes: &mut Notes, micros: f64| {
            ask(1 << 20, Mask::ALL, |query| notes.instead(query, &knobs(8), Some(ln(micros))))
        };
        let begun = || {
            let mut notes = Notes::default();
            (0..4).for_each(|_| learn(&mut notes, 8, 200.0));
            (0..8).for_each(|_| learn(&mut notes, 0, 100.0));
            notes
        };
        let renewed = |micros: f64| {
            let mut notes = begun();
            let trial = |_: &usize| {
                let (instead, trial) = wish(&mut notes, micros).expect("the other was faster");
                let [channels, took] = if instead == knobs(8) { [8, 200] } else { [0, 100] };
                learn(&mut notes, channels, f64::from(took));
                trial
            };
            (0..100).filter(trial).collect::<Vec<_>>()
        };
        assert_eq!(renewed(180.0), [0; 0], "much as it was measured");
        assert_eq!(renewed(50.0), [0, 17, 50]);
        let mut notes = begun();
        assert_eq!(wish(&mut notes, 50.0), Some((knobs(8), true)));
        learn(&mut notes, 8, 50.0);
        assert_eq!(wish(&mut notes, 50.0), None, "the machine has changed");
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
    fn where_calls_differ_a_lot_more_must_lie_between_two_settings() {
        let differs = |noise: f64| {
            let mut notes = Notes::default();
            for call in 0..10 {
                let luck = if call % 2 == 0 { 1.0 + noise } else { 1.0 - noise };
                learn(&mut notes, 8, 120.0 * luck);
                learn(&mut notes, 0, 100.0 * luck);
            }
            instead(&mut notes, 8).is_some()
        };
        assert_eq!([0.0, 0.1, 0.4].map(differs), [true, true, false]);
    }

    /// What is tried of another pair of which this is believed, µs and spread, instead of 8 channels of the first, of which
    /// 100 µs are believed.
    fn trial(notes: &mut Notes, micros: f64, spread: f64) -> Option<Trial> {
        trial_beside(100.0, notes, micros, spread)
    }

    /// The same where something else is believed of the first.
    fn trial_beside(first: f64, notes: &mut Notes, micros: f64, spread: f64) -> Option<Trial> {
        let pairs = [(knobs(0).pair, first), (Pair::from_index(5), micros)];
        let believed =
            |(pair, micros): (Option<Pair>, f64)| Some((pair?, Belief { mean: ln(micros), spread }));
        let pairs = pairs.into_iter().filter_map(believed);
        ask(1 << 20, Mask::ALL, |query| notes.trial(query, &knobs(8), pairs))
    }

    #[test]
    fn what_is_believed_now_is_not_compared_with_what_was_measured_on_another_machine() {
        let mut notes = Notes::default();
        (0..8).for_each(|_| learn(&mut notes, 8, 100.0));
        let tried = |notes: &mut Notes, first| trial_beside(first, notes, 60.0, 0.1).is_some();
        assert!(tried(&mut notes, 100.0) && tried(&mut notes, 80.0));
        assert!(!tried(&mut notes, 20.0), "everything has become faster, the other pair less so");
    }

    #[test]
    fn a_pair_is_tried_where_finding_out_pays() {
        let pair = Pair::from_index(5).unwrap();
        let mut notes = Notes::default();
        learn(&mut notes, 8, 100.0);
        assert_eq!(trial(&mut notes, 50.0, 0.1), None, "not before it is known what calls take");
        learn(&mut notes, 8, 100.0);
        assert_eq!(trial(&mut notes, 120.0, 0.02), None, "surely slower");
        assert_eq!(trial(&mut notes, 200.0, 0.6), None, "it may be faster, but a trial is dear");
        assert_eq!(trial(&mut notes, 120.0, 0.2), Some(Trial::New(pair)));
        let other = Knobs { pair: Some(pair), ..knobs(4) };
        let tell = |notes: &mut Notes, micros| {
            ask(1 << 20, Mask::ALL, |query| notes.learn(query, &Measured { knobs: other, micros }));
        };
        tell(&mut notes, 900.0);
        assert_eq!(trial(&mut notes, 100.0, 0.2), Some(Trial::Again(other)), "once may have been a pause");
        (0..2).for_each(|_| tell(&mut notes, 130.0));
        assert_eq!(trial(&mut notes, 100.0, 0.2), None, "it was seen to be slower");
    }

    #[test]
    fn guesses_come_to_an_end_and_what_was_faster_stays() {
        let pair = Pair::from_index(5);
        let may_try = |notes: &Notes| ask(1 << 20, Mask::ALL, |query| notes.may_try(query, &knobs(8)));
        let mut notes = Notes::default();
        (0..2).for_each(|_| learn(&mut notes, 8, 100.0));
        let tried = (0..100).filter(|_| trial(&mut notes, 80.0, 0.1).is_some()).count();
        assert_eq!(tried, GUESSES as usize);
        assert!(!may_try(&notes));
        let other = Knobs { pair, ..knobs(4) };
        let tell = |notes: &mut Notes, micros| {
            ask(1 << 20, Mask::ALL, |query| notes.learn(query, &Measured { knobs: other, micros }));
        };
        tell(&mut notes, 95.0);
        for _ in 0..100 {
            assert_eq!(
                trial(&mut notes, 95.0, 0.1),
                Some(Trial::Again(other)),
                "faster, by no more than luck"
            );
        }
        (0..2).for_each(|_| tell(&mut notes, 104.0));
        assert_eq!(trial(&mut notes, 95.0, 0.1), None, "it was luck");
        assert!(!may_try(&notes));
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
        (0..2).for_each(|_| learn(&mut notes, 8, 200.0));
        learn(&mut notes, 0, 200.0);
        learn(&mut notes, 2, 100.0);
        assert_eq!(instead(&mut notes, 8), Some((knobs(2), false)));
        assert_eq!(ChannelChoice::VALUES[2], 2);
        let channels = Mask::ALL.bits(Head::Channels) & !(1 << 2);
        let mask = Mask::ALL.with(Head::Channels, channels);
        assert_eq!(ask(1 << 20, mask, |query| notes.instead(query, &knobs(8), None)), None);
    }

    #[test]
    fn kinds_do_not_share_notes_and_both_kinds_and_settings_are_few() {
        let mut notes = Notes::default();
        learn(&mut notes, 8, 120.0);
        assert_eq!(ask(1 << 21, Mask::ALL, |query| notes.instead(query, &knobs(8), None)), None);
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
