//! Running a call: what the chosen knobs take, what that is worth, and what it leaves behind.

use dynamiccl_spec::{Choice, Collective, Compression, Knobs, Path};

use super::episode::{Ended, Episode, Pending};
use super::info::CallReport;
use super::line::Question;
use crate::gym::Action;
use crate::memory::Finished;
use crate::model::{Fabric, compute_stretch};
use crate::nccl::Realised;
use crate::reward::{Outcome, Terms, demand};
use crate::sim::Setting;
use crate::trigger::{Key, Ran};
use crate::workload::{Group, Planned};

/// Compression from which on a sparse-aware library pays.
const SPARSE_RATE: f32 = 10.0;

impl Episode {
    /// Runs the next call with a legal action, and prepares the one after it.
    pub fn step(&mut self, action: &Action) -> (Ended, CallReport) {
        let pending = self.pending.take().expect("a step follows an observation");
        let report = match self.wish(&pending, action) {
            Some(knobs) => self.run_tuned(&pending, knobs, action.exploratory),
            None => self.run_transfer(&pending),
        };
        self.calls += 1;
        self.gates.add(pending.question.gated.fired);
        self.prepare();
        let terminated = self.pending.is_none();
        let truncated = !terminated && self.calls >= self.rules.calls;
        (Ended { reward: report.terms.sum(), terminated, truncated }, report)
    }

    /// The call that an action would make, for whoever makes it in earnest: none where nothing is decided.
    pub fn ahead(&self, action: &Action) -> Option<(Collective, u64, Knobs, Realised)> {
        let pending = self.pending.as_ref().filter(|pending| pending.mask.decides())?;
        let (question, knobs) = (&pending.question, Choice(action.choice).knobs()?);
        let realised = self.lines.all[pending.line].realised(question, &knobs)?;
        Some((question.collective, question.bytes, knobs, realised))
    }

    /// The knobs that an action asks for; none where there is nothing to tune.
    fn wish(&mut self, pending: &Pending, action: &Action) -> Option<Knobs> {
        pending.own?;
        let mut knobs = Choice(action.choice).knobs()?;
        // A call that a gate has decided is not the one at which threads are chosen.
        if pending.mask.decides() && !self.rules.free_threads {
            self.threads.get_or_insert(knobs.threads);
        }
        knobs.threads = self.threads.unwrap_or(knobs.threads);
        Some(knobs)
    }

    fn run_tuned(&mut self, pending: &Pending, knobs: Knobs, exploratory: bool) -> CallReport {
        let Pending { line, planned, question, conditions, luck, .. } = *pending;
        let report = self.report(pending);
        let mut own = pending.own.expect("a tuned call has a setting of NCCL's own");
        let mut ran = self.chosen(pending, knobs).unwrap_or(own);
        if ran.knobs.path == Path::Synthesised {
            // NCCL's knobs mean nothing to a schedule. It is taken to need as much of the GPU as NCCL would.
            ran.realised = own.realised;
        }
        ran.micros += conditions.stall;
        own.micros += conditions.stall;
        let at = &mut self.lines.all[line];
        let measured = at.measured(&question, &ran, &luck);
        let carried = ran.knobs.path == Path::Nccl;
        let id = if carried { Ran::of(&ran.realised) } else { Ran::path(ran.knobs.path) };
        let switched = at.switched(&question, id);
        let channels = ran.channels();
        let (tier, flows) = (at.tier, at.flows * f64::from(channels));
        let compute_lost = self.compute_lost(&planned, &ran, channels);
        let protocol = ran.realised.pair.protocol;
        let outcome = Outcome {
            micros: ran.micros,
            reference: own.micros,
            switched,
            congestion: report.congestion,
            exploratory,
            loss_change: self.loss_change,
            compute_lost,
            demand: if carried { demand(protocol, knobs.chunk, channels, tier) } else { 0.0 },
            fault: conditions.stall > 0.0,
        };
        let terms = Terms::new(&self.rules.weights, &outcome);
        let choice = Choice::of(&knobs, ran.realised.pair);
        let triggered = self.remember(pending, Some(choice), Some(&ran), measured, id);
        self.finish(&planned, measured, compute_lost);
        if self.lines.all[line].crosses && self.rules.dynamics.congestion > 0.0 {
            self.congestion.fill(flows, measured);
        }
        // What a pair takes is learned from it: another path says nothing of one.
        let predicted = question.table.get(ran.realised.pair).filter(|_| carried);
        let (own, ran) = (Some(own), Some(ran));
        CallReport { own, ran, predicted, measured, compute_lost, terms, triggered, ..report }
    }

    /// What the knobs take behind the queues that own channels have filled; none where a gate has decided.
    fn chosen(&mut self, pending: &Pending, knobs: Knobs) -> Option<Setting> {
        if !pending.mask.decides() {
            return None;
        }
        let queued = self.queued(pending);
        let at = &self.lines.all[pending.line];
        at.setting(&pending.question, knobs, queued.as_ref().unwrap_or(at.met()))
    }

    fn run_transfer(&mut self, pending: &Pending) -> CallReport {
        let Pending { line, planned, question, conditions, luck, .. } = *pending;
        let queued = self.queued(pending);
        let at = &self.lines.all[line];
        let micros = at.transfer(&question, queued.as_ref().unwrap_or(at.met())) + conditions.stall;
        let measured = luck.apply(micros, None);
        let report = CallReport { measured, ..self.report(pending) };
        self.remember(pending, None, None, measured, Ran::default());
        self.finish(&planned, measured, 0.0);
        report
    }

    /// The links behind the queues that own channels have filled; none where there are no queues.
    fn queued(&mut self, pending: &Pending) -> Option<Fabric> {
        let at = &mut self.lines.all[pending.line];
        let share = self.rules.dynamics.congestion;
        let fills = at.crosses && share > 0.0 && self.congestion.level() > 0.0;
        fills.then(|| at.fabric(&pending.planned, &self.congestion.upon(&pending.conditions, share)))
    }

    /// µs that compute beside the call loses to its channels.
    fn compute_lost(&self, planned: &Planned, ran: &Setting, channels: u32) -> f64 {
        if planned.beside <= 0.0 {
            return 0.0;
        }
        planned.beside.min(ran.micros) * (compute_stretch(&self.compute, channels, self.sms) - 1.0)
    }

    /// What the next observation says about this call; whether the trigger fired.
    fn remember(
        &mut self,
        pending: &Pending,
        choice: Option<Choice>,
        ran: Option<&Setting>,
        measured: f64,
        id: Ran,
    ) -> bool {
        let Question { collective, bytes, table, .. } = pending.question;
        self.memory.remember(&Finished {
            key: Key::new(pending.line as u16, collective, bytes),
            choice,
            launched: ran.map_or(0, Setting::channels),
            ran: id,
            measured: Some(measured),
            predicted: ran.and_then(|ran| match ran.knobs.path {
                Path::Synthesised => pending.question.schedule.map(|schedule| schedule.predicted),
                Path::Nccl | Path::InNetwork => table.get(ran.realised.pair),
            }),
        })
    }

    /// Lets the time of a call pass.
    fn finish(&mut self, planned: &Planned, measured: f64, compute_lost: f64) {
        self.pass(planned.exposed(measured) + compute_lost);
        let sparse = matches!(
            self.workload.compression,
            Compression::TopK | Compression::RandomK | Compression::Combined
        );
        let replicas = matches!(planned.group, Group::Data | Group::ExpertData);
        let gathers = replicas && planned.collective == Collective::AllGather;
        if sparse && gathers && self.workload.compression_rate >= SPARSE_RATE {
            self.advice.sparse_library += 1;
        }
    }

    /// The report of a call of which nothing is known yet but what it was.
    fn report(&self, pending: &Pending) -> CallReport {
        let Pending { line, planned, question, conditions, .. } = *pending;
        CallReport {
            communicator: line as u16,
            tier: self.lines.all[line].tier,
            collective: planned.collective,
            bytes: planned.bytes,
            role: planned.role,
            own: None,
            ran: None,
            predicted: None,
            measured: 0.0,
            compute_lost: 0.0,
            terms: Terms::default(),
            gates: question.gated.fired,
            conditions,
            congestion: self.congestion.level(),
            fault: conditions.stall > 0.0,
            triggered: false,
        }
    }
}
