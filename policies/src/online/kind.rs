//! One kind of call under search: its trials spread over the job's own calls, then its lookup table.

use dynamiccl_spec::{Knobs, Query};

use super::method::{MOST_CALLS, Method};
use super::recent::Recent;
use crate::search::Search;
use crate::settings::OwnSettings;

/// Decisions after which the best known setting is used where nobody has told of a call, for nobody may be measuring; and calls
/// with other knobs after which a trial is believed never to run.
const PATIENCE: u32 = 64;

/// Settings that stay in the lookup table after the search. Of many noisy times the shortest was lucky: used
/// again and again its recent time says so, and the next one has its turn.
const KEPT: usize = 4;

/// The state of one kind of call.
pub struct Kind {
    settings: OwnSettings,
    /// None when it is over: what it needed is given back.
    search: Option<Box<dyn Search>>,
    trial: Option<Running>,
    recent: Recent,
    best: Knobs,
    /// Decisions since a call of this kind was last told of.
    silence: u32,
}

/// A trial under way.
struct Running {
    knobs: Knobs,
    wanted: usize,
    times: [f64; MOST_CALLS],
    got: usize,
    /// Decisions that ended in a call with other knobs, since these last ran.
    others: u32,
}

/// What to run, and whether it is a trial of something not believed best.
pub struct Next {
    /// The knobs.
    pub knobs: Knobs,
    /// Whether they are tried to learn about them.
    pub exploratory: bool,
}

impl Kind {
    /// A search for the kind of the call that is asked about; nothing where there is nothing to search.
    pub fn new(query: &Query<'_>, method: &Method, seed: u64) -> Option<Self> {
        let settings = OwnSettings::new(&query.gated.mask, query.gated.own?);
        let search = Some((method.make)(&settings, &query.call.table, seed));
        let best = query.own();
        let mut kind = Kind { settings, search, trial: None, recent: Recent::default(), best, silence: 0 };
        kind.go_on(method);
        Some(kind)
    }

    /// The knobs that are on trial; none once the search is over.
    pub fn trial(&self) -> Option<Knobs> {
        self.trial.as_ref().map(|trial| trial.knobs)
    }

    /// The knobs of the next call.
    pub fn next(&mut self) -> Next {
        self.silence = self.silence.saturating_add(1);
        match &self.trial {
            Some(trial) if self.silence <= PATIENCE && trial.others < PATIENCE => {
                Next { knobs: trial.knobs, exploratory: trial.knobs != self.best }
            }
            _ => Next { knobs: self.best, exploratory: false },
        }
    }

    /// What a call of this kind took; infinite where these knobs cannot run.
    pub fn learn(&mut self, knobs: &Knobs, micros: f64, method: &Method) {
        let decided = std::mem::take(&mut self.silence) > 0;
        let Some(trial) = &mut self.trial else {
            self.recent.update(knobs, micros);
            self.best = self.recent.fastest().unwrap_or(self.best);
            return;
        };
        if trial.knobs == *knobs {
            trial.others = 0;
            trial.times[trial.got] = micros;
            trial.got += 1;
            if micros == f64::INFINITY {
                self.conclude(micros, method);
            } else if trial.got == trial.wanted {
                let micros = middle(&mut trial.times[..trial.wanted]);
                self.conclude(micros, method);
            }
        } else if decided {
            trial.others += 1;
            if trial.others > PATIENCE {
                // Calls are measured, but a gate has kept the trial from ever running.
                self.conclude(f64::INFINITY, method);
            }
        }
    }

    fn conclude(&mut self, micros: f64, method: &Method) {
        self.trial = None;
        if let Some(search) = &mut self.search {
            search.tell(micros);
            if let Some(found) = search.best() {
                self.best = self.settings.knobs(&found.point);
            }
        }
        self.go_on(method);
    }

    /// Begins the next trial, or ends the search.
    fn go_on(&mut self, method: &Method) {
        let Some(search) = &mut self.search else { return };
        let Some(trial) = search.ask_within(method.budget) else {
            let settings = &self.settings;
            let ranked = search.ranked(KEPT).into_iter();
            self.recent = Recent::new(ranked.map(|found| (settings.knobs(&found.point), found.micros)));
            self.best = self.recent.fastest().unwrap_or(self.best);
            self.search = None;
            return;
        };
        let wanted = (f64::from(method.calls) * trial.resource + 0.5) as usize;
        let knobs = self.settings.knobs(&trial.point);
        let (wanted, times) = (wanted.clamp(1, MOST_CALLS), [0.0; MOST_CALLS]);
        self.trial = Some(Running { knobs, wanted, times, got: 0, others: 0 });
    }
}

/// The median, or the mean of the two in the middle: a pause of the machine is not the setting's fault.
fn middle(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    let half = times.len() / 2;
    if times.len() % 2 == 1 { times[half] } else { 0.5 * (times[half - 1] + times[half]) }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{Algorithm, Head, Mask, Pair, PairMask, Protocol};

    use super::*;
    use crate::online::method::GRID;

    const OWN: Pair = Pair::new(Algorithm::Ring, Protocol::Simple);

    /// A kind of which NCCL's own knobs have been timed, with another trial under way.
    fn kind() -> (Kind, Knobs) {
        let mask = Mask::ALL.only(Head::Path, 0).only(Head::Threads, 0);
        let settings = OwnSettings::new(&mask.with_pairs(PairMask::NONE.with(OWN)), OWN);
        let search =
            Some(Box::new(crate::search::Sequence::grid(settings.space(), settings.own())) as Box<_>);
        let best = settings.knobs(&settings.own());
        let mut kind = Kind { settings, search, trial: None, recent: Recent::default(), best, silence: 0 };
        kind.go_on(&GRID);
        kind.learn(&best, 10.0, &GRID);
        let trial = kind.trial().unwrap();
        assert!(trial != best && kind.next().exploratory);
        (kind, trial)
    }

    #[test]
    fn a_trial_outlives_a_silence() {
        let (mut kind, trial) = kind();
        let best = kind.best;
        (1..PATIENCE).for_each(|_| assert_eq!(kind.next().knobs, trial));
        (0..100).for_each(|_| assert_eq!(kind.next().knobs, best));
        kind.learn(&best, 10.0, &GRID);
        assert!(kind.trial() == Some(trial) && kind.next().knobs == trial);
        kind.learn(&trial, 5.0, &GRID);
        assert_eq!(kind.best, trial);
    }

    #[test]
    fn a_trial_that_never_runs_while_calls_are_told_is_given_up() {
        let (mut kind, trial) = kind();
        let best = kind.best;
        kind.learn(&best, 10.0, &GRID);
        for _ in 1..PATIENCE {
            assert_eq!(kind.next().knobs, trial);
            kind.learn(&best, 10.0, &GRID);
        }
        assert_eq!((kind.next().knobs, kind.trial()), (best, Some(trial)));
        kind.learn(&best, 10.0, &GRID);
        assert!(kind.trial().is_some_and(|next| next != trial));
    }

    #[test]
    fn what_ran_undecided_says_nothing_of_a_trial() {
        let (mut kind, trial) = kind();
        let best = kind.best;
        (0..3 * PATIENCE).for_each(|_| kind.learn(&best, 10.0, &GRID));
        assert!(kind.trial() == Some(trial) && kind.next().knobs == trial);
    }

    #[test]
    fn one_pause_does_not_move_the_middle() {
        assert_eq!(middle(&mut [11.0, 900.0, 10.0]), 11.0);
        assert_eq!(middle(&mut [11.0, 10.0]), 10.5);
        assert_eq!(middle(&mut [7.0]), 7.0);
    }
}
