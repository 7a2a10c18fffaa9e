//! Judging on jobs: whole jobs drawn from a curriculum or replayed from a recording, call by call through the
//! environment.
//!
//! Here calls meet what cells leave out: several communicators, compute beside, gates, faults, feedback that
//! comes late, and the queues that own channels fill. What a call could have taken is asked of the
//! environment at every call, which costs more than a table.

use std::collections::BTreeMap;

use dynamiccl_spec::math::ln;
use dynamiccl_spec::{Choice, Head, Knobs};

use super::calls::{Calls, Outcome, Pick, Timed, Trial, play, play_fastest};
use super::entrant::{Entrant, Player};
use super::gathered::{Cell, Gathered};
use super::judge::{Judge, Tally};
use super::machines::is_held_out;
use super::report::{MARKS, Place};
use crate::gym::{Action, Env, EnvError, Observation};
use crate::question::Question;
use crate::sim::{Setting, same_launch};
use crate::sim_env::SimEnv;

/// Tuned calls after which an episode is left, if it has not ended by itself.
const CALLS: u32 = MARKS[MARKS.len() - 1];

/// Why nobody is the best of fixed knobs here.
const NO_BAYES: &str = "bayes is the best of fixed knobs over the worlds of a cell, and jobs have no such cells; \
                        leave it out, or judge on cells";

/// Why nobody is told less than a job says.
const NO_HIDING: &str = "a job itself says what is told of it; hide features on cells";

/// Judges all entrants on one job, that of this seed. `seeds` is how many there are, `at` which of them counts.
pub fn judge(
    make: &dyn Fn() -> SimEnv,
    entrants: &[Entrant],
    (at, seeds): (usize, usize),
    job: u64,
    tuner_seed: u64,
) -> Result<Gathered, EnvError> {
    let mut cells = Cells::default();
    let mut players = Vec::new();
    if entrants.iter().any(|entrant| !entrant.hidden.is_nothing()) {
        return Err(EnvError::Backend(NO_HIDING.to_owned()));
    }
    for entrant in entrants {
        let mut tally = Tally::default();
        for held in [false, true] {
            let env = if held { make().kept().untold() } else { make().kept() };
            // Whoever knows the truth may set threads at any call.
            let free = matches!(entrant.player, Player::Oracle);
            let env = if free { env.free_threads() } else { env };
            let mut running = Running::new(env, job, &mut cells)?;
            let (tier, held_out) = (running.tier, running.held_out);
            let mut judge = Judge::new(&mut tally, held);
            match &entrant.player {
                Player::Tuner(make) => play(&mut running, make(tuner_seed).as_mut(), held, &mut judge),
                Player::Oracle => play_fastest(&mut running, &mut judge),
                Player::Bayes => return Err(EnvError::Backend(NO_BAYES.to_owned())),
            }
            judge.finish(tier, held_out);
            running.failed.map_or(Ok(()), Err)?;
        }
        let mut by_seed = vec![Tally::default(); seeds];
        by_seed[at] = tally;
        players.push(by_seed);
    }
    Ok(Gathered { cells: cells.all, players })
}

/// The cells that have come up, and what ran in them.
#[derive(Default)]
struct Cells {
    all: Vec<Cell>,
    known: BTreeMap<Place, usize>,
}

impl Cells {
    fn at(&mut self, place: Place, tier: u8, held_out: bool) -> usize {
        *self.known.entry(place).or_insert_with_key(|place| {
            let place = place.clone();
            self.all.push(Cell {
                place,
                tier,
                held_out,
                own: 0,
                fastest: Vec::new(),
                logs: Vec::new(),
                choices: Vec::new(),
            });
            self.all.len() - 1
        })
    }
}

impl Cell {
    /// The position of what ran, which is added where it is new.
    fn choice(&mut self, setting: &Setting) -> usize {
        let choice = Choice::of(&setting.knobs, setting.realised.pair);
        let known = self.choices.iter().position(|(known, _)| *known == choice);
        known.unwrap_or_else(|| {
            self.choices.push((choice, setting.realised));
            self.fastest.push(0.0);
            self.choices.len() - 1
        })
    }
}

/// A running job. A choice is one index per head, as one number.
struct Running<'a> {
    env: SimEnv,
    observation: Observation,
    /// The tier of its machine.
    tier: u8,
    /// Whether the machine's cluster is held out.
    held_out: bool,
    cells: &'a mut Cells,
    calls: u32,
    over: bool,
    /// What the next call can be, with any number of threads; NCCL's own first.
    truths: Vec<Setting>,
    said: Knobs,
    failed: Option<EnvError>,
}

impl<'a> Running<'a> {
    fn new(mut env: SimEnv, seed: u64, cells: &'a mut Cells) -> Result<Self, EnvError> {
        let mut observation = Observation::new(env.spaces());
        env.reset(Some(seed), &mut observation)?;
        // Whether a cluster is held out is read from files: once for a job, not at every call.
        let ground = env
            .machine()
            .map(|(cluster, nodes)| (cluster.tier(nodes), !env.is_recorded() && is_held_out(cluster)));
        let (tier, held_out) = ground.unwrap_or_default();
        let (calls, over, truths, said, failed) = (0, false, Vec::new(), Knobs::OWN, None);
        Ok(Running { env, observation, tier, held_out, cells, calls, over, truths, said, failed })
    }

    /// Takes a step; what came of the call, unless the environment failed.
    fn step(&mut self, choice: Choice) -> Option<crate::sim_env::CallReport> {
        let action = Action { choice: choice.0, exploratory: false };
        match self.env.step(&action, &mut self.observation) {
            Ok(transition) => {
                self.over = transition.terminated || transition.truncated;
                transition.info.last
            }
            Err(error) => {
                (self.over, self.failed) = (true, Some(error));
                None
            }
        }
    }

    /// The setting with the smallest true time; NCCL's own where none is faster.
    fn best(&self) -> Setting {
        let faster = |a: Setting, b: &Setting| if b.micros < a.micros { *b } else { a };
        self.truths.iter().fold(self.truths[0], faster)
    }

    /// The truth about what ran; an error where nobody knows it, because every figure would be wrong.
    fn truth(&mut self, ran: &Setting) -> Setting {
        let found = self.truths.iter().find(|truth| same_launch(truth, ran)).copied();
        found.unwrap_or_else(|| {
            self.failed = Some(EnvError::Backend(format!(
                "{} with {:?} ran and is not among the {} launches that can; this is a fault of the simulator",
                ran.realised.pair,
                ran.knobs,
                self.truths.len()
            )));
            self.truths[0]
        })
    }
}

/// Sizes of jobs are put together: the power of 4 at or below.
fn rounded(bytes: u64) -> u64 {
    1 << (bytes.max(1).ilog2() & !1)
}

impl Calls for Running<'_> {
    fn next(&mut self) -> Option<Question> {
        if self.over || self.failed.is_some() || self.calls == CALLS {
            return None;
        }
        let question = self.env.question()?;
        if question.is_tuned() {
            self.truths = self.env.truths();
        }
        Some(question)
    }

    fn pass(&mut self) {
        self.step(Choice::default());
    }

    fn choose(&mut self, knobs: &Knobs) -> Pick {
        let question = self.env.question().expect("knobs are chosen for a call that was asked about");
        let query = question.query();
        let (mask, own) = (&question.gated.mask, query.own());
        let pair = question.gated.own.expect("a tuner is asked only where NCCL tunes");
        let mut wish = Choice::of(knobs, pair);
        if !mask.allows(Head::Threads, wish.index(Head::Threads)) {
            // They are the job's by now.
            wish.0[Head::Threads as usize] = 0;
        }
        let legal = mask.refuses(&wish).is_none();
        self.said = if legal { *knobs } else { own };
        Pick { choice: pack(&if legal { wish } else { Choice::of(&own, pair) }), legal }
    }

    fn fastest(&mut self) -> usize {
        self.choose(&self.best().knobs).choice
    }

    fn attempt(&mut self, knobs: &Knobs) -> Option<Trial> {
        let (setting, measured) = self.env.attempt(knobs)?;
        Some(Trial { measured, micros: setting.micros })
    }

    fn run(&mut self, choice: usize) -> Outcome {
        let question = self.env.question().expect("a call runs after it was asked about");
        let cluster = self.env.machine().map_or_else(String::new, |(cluster, _)| cluster.name.clone());
        let (collective, bytes) = (question.call.collective, question.call.bytes);
        let bytes = if self.env.is_recorded() { bytes } else { rounded(bytes) };
        let place = Place { cluster, nodes: question.nodes, collective, bytes };
        self.calls += 1;
        let (own, best) = (self.truths[0], self.best());
        let report = self.step(unpack(choice));
        // Judged without the queues that own channels have filled, as everything else is.
        let ran = report.and_then(|report| report.ran).map_or(own, |ran| self.truth(&ran));
        let tier = report.map_or(0, |report| report.tier);
        let cell = self.cells.at(place, tier, self.held_out);
        let known = &mut self.cells.all[cell];
        known.own = known.choice(&own);
        let fastest = known.choice(&best);
        known.fastest[fastest] += 1.0;
        let ran_at = known.choice(&ran);
        let [truth, own, best] = [ran, own, best].map(|s| Timed { micros: s.micros, log: ln(s.micros) });
        let measured = report.map_or(truth.micros, |report| report.measured);
        Outcome { cell, ran: ran_at, knobs: self.said, truth, own, best, measured, told: self.env.told() }
    }
}

fn pack(choice: &Choice) -> usize {
    Head::ALL.iter().fold(0, |packed, &head| packed * head.size() + choice.index(head))
}

fn unpack(mut packed: usize) -> Choice {
    let mut choice = Choice::default();
    for &head in Head::ALL.iter().rev() {
        choice.0[head as usize] = (packed % head.size()) as u8;
        packed /= head.size();
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_survives_as_a_number() {
        for choice in [Choice([0, 0, 0, 0, 0]), Choice([0, 20, 9, 4, 4]), Choice([1, 3, 2, 1, 0])] {
            assert_eq!(unpack(pack(&choice)), choice);
        }
    }

    #[test]
    fn sizes_are_put_together_by_powers_of_four() {
        assert_eq!(
            [0, 1, 3, 4, 15, 16, 1 << 20, (1 << 22) - 1].map(rounded),
            [1, 1, 1, 4, 4, 16, 1 << 20, 1 << 20]
        );
    }
}
