//! An episode as calls: every answer is a number from the tables.

use std::sync::Arc;

use dynamiccl_spec::features::{Encoder, PastCall};
use dynamiccl_spec::{Choice, Head, Knobs, Tuner};

use super::episode::{Drawn, Episode, segment};
use super::options::{Ground, Options};
use crate::evaluate::calls::{Calls, Outcome, Pick, Trial};
use crate::evaluate::judge::{Judge, Logs, Tally};
use crate::memory::{Finished, Memory};
use crate::question::Question;
use crate::trigger::Key;

/// One tuner's way through an episode.
pub struct Table<'a> {
    ground: &'a Ground,
    episode: &'a Episode,
    /// What the tuner is told of the job.
    encoder: Arc<Encoder>,
    memory: &'a mut Memory,
    /// Calls that are done.
    at: usize,
    /// The threads of the job, once they are chosen.
    threads: Option<u8>,
    /// What was chosen last, with the threads of the job.
    asked: Choice,
    /// The same as the tuner said it.
    said: Knobs,
    trials: usize,
}

impl<'a> Table<'a> {
    /// An episode that has not begun.
    pub fn new(
        ground: &'a Ground,
        episode: &'a Episode,
        encoder: Arc<Encoder>,
        memory: &'a mut Memory,
    ) -> Self {
        memory.clear();
        Table {
            ground,
            episode,
            encoder,
            memory,
            at: 0,
            threads: None,
            asked: Choice::default(),
            said: Knobs::OWN,
            trials: episode.first_trial,
        }
    }

    /// Goes through all calls with the same launch of a cell each time.
    pub fn play_fixed(&mut self, fixed: &[usize], judge: &mut Judge<'_>) {
        while let Some(drawn) = self.drawn() {
            let cell = self.episode.kinds[drawn.kind].cell;
            judge.call(&self.run(fixed[cell]), 0.0, false, None);
        }
    }

    /// What a tuner chooses for each kind that is told nothing of the job's calls: each time as if the job had
    /// just begun, but with the threads of the first. It may measure before it chooses, as before any call.
    pub fn hold(&mut self, tuner: &mut dyn Tuner) -> Vec<usize> {
        (self.threads, self.at, self.trials) = (None, 0, self.episode.first_trial);
        let kinds = self.episode.kinds.len();
        let decided = |kind: usize| {
            let question = self.question(kind, PastCall::default());
            tuner.begin();
            let mut measure = |knobs: &Knobs| Some(self.attempt_for(kind, knobs)?.measured);
            let decision = tuner.decide(&question.query(), &mut measure);
            self.choose_for(kind, &decision.knobs).choice
        };
        (0..kinds).map(decided).collect()
    }

    /// Judges a launch per kind in every segment, each as often as it has judged calls.
    pub fn judge_held(&self, tally: &mut Tally, launch: impl Fn(usize, usize) -> usize) {
        for (kind, of_kind) in self.episode.kinds.iter().enumerate() {
            let (own, ran) = (self.ground.cells[of_kind.cell].own, launch(kind, of_kind.cell));
            let mut held = Logs::default();
            for ((times, weight), (best, _)) in of_kind.truth.segments().zip(of_kind.truth.fastest()) {
                held.add(weight, [own, ran, best].map(|launch| times[launch].log));
            }
            let cell = tally.cell(of_kind.cell);
            cell.held.add_world(held);
            cell.decided.add(ran, 1);
        }
    }

    /// The same for the fastest launch of each segment.
    pub fn judge_fastest_held(&self, tally: &mut Tally) {
        for (cell, truth) in self.episode.truths() {
            let own = self.ground.cells[cell].own;
            let mut held = Logs::default();
            for ((times, weight), (best, _)) in truth.segments().zip(truth.fastest()) {
                held.add(weight, [own, best, best].map(|launch| times[launch].log));
            }
            tally.cell(cell).held.add_world(held);
        }
    }

    fn drawn(&self) -> Option<Drawn> {
        self.episode.calls.get(self.at).copied()
    }

    fn options(&self, kind: usize) -> &'a Options {
        &self.ground.cells[self.episode.kinds[kind].cell]
    }

    fn question(&self, kind: usize, past: PastCall) -> Question {
        let options = self.options(kind);
        let gated = if self.threads.is_none() { options.asked.gated } else { options.held };
        let (ranks, nodes) = (self.ground.ranks, self.ground.nodes);
        let (encoder, call) = (Arc::clone(&self.encoder), options.asked.call);
        Question { communicator: 0, ranks, nodes, encoder, call, gated, past }
    }

    fn choose_for(&mut self, kind: usize, knobs: &Knobs) -> Pick {
        let options = self.options(kind);
        let Some(own) = options.asked.gated.own else { return Pick { choice: options.own, legal: false } };
        let mut choice = Choice::of(knobs, own);
        let wanted = choice.0[Head::Threads as usize];
        choice.0[Head::Threads as usize] = self.threads.unwrap_or(wanted);
        let launch = options.launch(&choice);
        // A refused choice runs as NCCL's own, with its threads, which are the first.
        self.threads.get_or_insert(launch.map_or(0, |_| wanted));
        (self.asked, self.said) = match launch {
            Some(_) => (choice, *knobs),
            None => (options.launches[options.own].choice, Knobs { pair: Some(own), ..Knobs::OWN }),
        };
        Pick { choice: launch.unwrap_or(options.own), legal: launch.is_some() }
    }

    fn attempt_for(&mut self, kind: usize, knobs: &Knobs) -> Option<Trial> {
        let options = self.options(kind);
        let mut choice = Choice::of(knobs, options.asked.gated.own?);
        if let Some(threads) = self.threads {
            choice.0[Head::Threads as usize] = threads;
        }
        let launch = options.launch(&choice)?;
        let truth = &self.episode.kinds[kind].truth;
        let micros = truth.time(segment(self.at), launch).micros;
        let luck = self.episode.trials[self.trials % self.episode.trials.len()];
        self.trials += 1;
        Some(Trial { measured: luck.apply(micros, truth.modes(launch)), micros })
    }
}

impl Calls for Table<'_> {
    fn next(&mut self) -> Option<Question> {
        let kind = self.drawn()?.kind;
        let collective = self.options(kind).asked.call.collective;
        self.memory.asked(0, collective, self.at as u32);
        Some(self.question(kind, self.memory.past))
    }

    fn choose(&mut self, knobs: &Knobs) -> Pick {
        let drawn = self.drawn().expect("knobs are chosen for a call that was asked about");
        self.choose_for(drawn.kind, knobs)
    }

    fn fastest(&mut self) -> usize {
        self.drawn().map_or(0, |drawn| self.episode.kinds[drawn.kind].truth.fastest_in(segment(self.at)))
    }

    fn attempt(&mut self, knobs: &Knobs) -> Option<Trial> {
        self.attempt_for(self.drawn()?.kind, knobs)
    }

    fn run(&mut self, choice: usize) -> Outcome {
        let Drawn { kind, luck } = self.episode.calls[self.at];
        let (options, of_kind) = (self.options(kind), &self.episode.kinds[kind]);
        let (truth, segment) = (&of_kind.truth, segment(self.at));
        let time = truth.time(segment, choice);
        let measured = luck.apply(time.micros, truth.modes(choice));
        let launch = &options.launches[choice];
        let call = &options.asked.call;
        self.memory.remember(&Finished {
            key: Key::new(0, call.collective, call.bytes),
            choice: Some(self.asked),
            launched: launch.realised.channels,
            ran: launch.ran,
            measured: Some(measured),
            predicted: launch.predicted,
        });
        self.at += 1;
        Outcome {
            cell: of_kind.cell,
            ran: choice,
            knobs: self.said,
            truth: time,
            own: truth.time(segment, options.own),
            best: truth.time(segment, truth.fastest_in(segment)),
            measured,
            told: self.memory.past.feedback.is_some(),
        }
    }
}
