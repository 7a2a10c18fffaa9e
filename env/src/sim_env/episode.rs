//! A running job: the call that is next, what it would take, and what it leaves behind.

use dynamiccl_spec::features::{Encoder, Feedback, PastCall};
use dynamiccl_spec::math::ln;
use dynamiccl_spec::{
    Choice, Compression, GateCounts, Head, Knobs, Mask, Path, Role, SyncMode, ThreadChoice, Workload,
};
use rand_chacha::ChaCha8Rng;

use super::dynamics::{Congestion, Loss, climate, stall_share, waiting_share};
use super::info::{Advice, CallReport, SimInfo};
use super::line::Question;
use super::lines::{self, Lines};
use super::schedule::{Next, Schedule};
use crate::cluster::ClusterError;
use crate::curriculum::{Dynamics, Regime};
use crate::gym::{Action, Observation};
use crate::job::Job;
use crate::model::{ConstantsFile, Fabric, compute_stretch};
use crate::reward::{Outcome, Terms, Weights, demand};
use crate::sim::Setting;
use crate::trigger::{Key, Ran, Trigger, TriggerConfig};
use crate::workload::Planned;
use crate::world::draw::uniform;
use crate::world::{Climate, Conditions, Luck, WeatherState, World};

/// Compression from which on a sparse-aware library pays.
const SPARSE_RATE: f32 = 10.0;

/// What a stage says about every episode.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub dynamics: Dynamics,
    pub weights: Weights,
    /// Calls after which an episode is cut short.
    pub calls: u32,
    /// What sync mode and tau may change to; none where they stay.
    pub regime: Option<Regime>,
}

/// A running job.
#[derive(Debug)]
pub(super) struct Episode {
    job: Job,
    rules: Rules,
    rng: ChaCha8Rng,
    workload: Workload,
    lines: Lines,
    /// Inside nodes, and across the network.
    weather: [WeatherState; 2],
    /// µs for which each weather has not been looked at.
    lag: [f64; 2],
    schedule: Schedule,
    congestion: Congestion,
    loss: Loss,
    loss_change: f64,
    trigger: Trigger,
    compute: crate::model::constants::Compute,
    sms: u32,
    threads: Option<ThreadChoice>,
    past: PastCall,
    since_feedback: Option<u32>,
    calls: u32,
    gates: GateCounts,
    advice: Advice,
    pending: Option<Pending>,
}

/// The call that is next.
#[derive(Debug, Clone, Copy)]
struct Pending {
    line: usize,
    planned: Planned,
    question: Question,
    mask: Mask,
    /// The state of the machine, without own congestion.
    conditions: Conditions,
    luck: Luck,
    /// NCCL's own choice in these conditions.
    own: Option<Setting>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ended {
    pub reward: f64,
    pub terminated: bool,
    pub truncated: bool,
}

impl Episode {
    pub fn new(
        job: Job,
        rules: Rules,
        constants: &ConstantsFile,
        mut rng: ChaCha8Rng,
    ) -> Result<Episode, ClusterError> {
        let world = World::draw(constants, job.world);
        let schedule = Schedule::new(&job, &mut rng);
        let workload = job.workload();
        let lines = lines::of_job(&job, &workload, &world)?;
        let mut around = climate(job.setting.environment);
        let Dynamics { load, jitter, drift, .. } = rules.dynamics;
        around = Climate {
            load: around.load * load,
            jitter: around.jitter * jitter,
            drift: around.drift * drift,
            ..around
        };
        let weather = [1, job.nodes.max(2)].map(|nodes| {
            let weather = world.weather(&job.cluster, nodes).expect("a drawn world has weather");
            weather.in_climate(&around)
        });
        let mut episode = Episode {
            trigger: Trigger::new(TriggerConfig::default(), lines.all.len()),
            compute: world.constants().around.compute,
            sms: job.cluster.gpu.sms,
            job,
            rules,
            rng,
            workload,
            lines,
            weather,
            lag: [0.0; 2],
            schedule,
            congestion: Congestion::default(),
            loss: Loss::new(),
            loss_change: 0.0,
            threads: None,
            past: PastCall::default(),
            since_feedback: None,
            calls: 0,
            gates: GateCounts::default(),
            advice: Advice::default(),
            pending: None,
        };
        episode.loss_change = episode.loss.advance(1.0);
        episode.prepare();
        Ok(episode)
    }

    /// The mask of the next call.
    pub fn mask(&self) -> Option<Mask> {
        self.pending.as_ref().map(|pending| pending.mask)
    }

    /// What an info says after this many calls.
    pub fn info(&self, last: Option<CallReport>) -> SimInfo {
        let iteration = self.schedule.iteration;
        SimInfo { calls: self.calls, iteration, last, gates: self.gates, advice: self.advice }
    }

    /// Takes the next call of the job and works out all that does not depend on the decision.
    fn prepare(&mut self) {
        let lines = &self.lines;
        let next = self.schedule.next(self.rules.regime.as_ref(), |g| lines.of(g), &mut self.rng);
        let Some(Next { line, planned, idle, updates, changed }) = next else {
            self.pending = None;
            return;
        };
        if updates > 0.0 {
            self.loss_change = self.loss.advance(updates);
        }
        if changed {
            self.schedule.describe(&mut self.workload);
            self.lines.job_changed();
        }
        self.pass(idle + planned.window);
        let anew = self.lines.told_anew(line);
        let at = &mut self.lines.all[line];
        at.tell(&self.job, &planned, &self.workload, anew);
        let question = at.question(&planned);
        self.past.since_kind = at.since(planned.collective, self.calls);
        let (conditions, luck) = self.look_up(line);
        let mask = self.narrowed(&question);
        let own = self.lines.all[line].settle(&question, &planned, &conditions);
        self.gates.add(question.gated.fired);
        self.pending = Some(Pending { line, planned, question, mask, conditions, luck, own });
    }

    /// The mask of a call, with what only a running process knows.
    fn narrowed(&self, question: &Question) -> Mask {
        if question.gated.own.is_none() {
            return Mask::FIRST;
        }
        let mut mask = question.gated.mask;
        if self.threads.is_some() {
            mask = mask.only(Head::Threads, 0);
        }
        if !self.job.setting.version.has_chunk_knob() {
            mask = mask.only(Head::Chunk, 0);
        }
        mask
    }

    /// Time passes on the whole machine.
    fn pass(&mut self, micros: f64) {
        self.lag.iter_mut().for_each(|lag| *lag += micros);
    }

    /// The conditions that a call meets, before own congestion, and its luck.
    fn look_up(&mut self, line: usize) -> (Conditions, Luck) {
        let crosses = usize::from(self.lines.all[line].crosses);
        let weather = &mut self.weather[crosses];
        weather.advance(std::mem::take(&mut self.lag[crosses]));
        let Dynamics { stragglers, faults, .. } = self.rules.dynamics;
        if uniform(&mut self.rng) < stragglers * self.straggling() / 1000.0 {
            self.weather[crosses].strike_straggler();
        }
        if crosses == 1 && uniform(&mut self.rng) < faults / 1000.0 {
            self.weather[crosses].strike_fault();
        }
        let mut conditions = *self.weather[crosses].conditions();
        conditions.speed = 1.0 - (1.0 - conditions.speed) * waiting_share(self.sync());
        conditions.stall *= stall_share(self.job.setting.fault_tolerance, self.job.setting.template);
        (conditions, self.weather[crosses].luck())
    }

    fn straggling(&self) -> f64 {
        climate(self.job.setting.environment).stragglers
    }

    fn sync(&self) -> SyncMode {
        self.schedule.sync()
    }

    /// Runs the next call with a legal action, and prepares the one after it.
    pub fn step(&mut self, action: &Action) -> (Ended, CallReport) {
        let pending = self.pending.take().expect("a step follows an observation");
        let report = match self.wish(&pending, action) {
            Some(knobs) => self.run_tuned(&pending, knobs, action.exploratory),
            None => self.run_transfer(&pending),
        };
        self.calls += 1;
        self.prepare();
        let terminated = self.pending.is_none();
        let truncated = !terminated && self.calls >= self.rules.calls;
        (Ended { reward: report.terms.sum(), terminated, truncated }, report)
    }

    /// The knobs that an action asks for; none where there is nothing to tune.
    fn wish(&mut self, pending: &Pending, action: &Action) -> Option<Knobs> {
        pending.own?;
        let mut knobs = Choice(action.choice).knobs()?;
        knobs.threads = *self.threads.get_or_insert(knobs.threads);
        Some(knobs)
    }

    fn run_tuned(&mut self, pending: &Pending, knobs: Knobs, exploratory: bool) -> CallReport {
        let Pending { line, planned, question, conditions, luck, own, .. } = *pending;
        let congestion = self.congestion.level();
        let queued = self.queued(pending);
        let at = &mut self.lines.all[line];
        let mut ran = at
            .setting(&question, knobs, queued.as_ref().unwrap_or(at.met()))
            .or(own)
            .expect("a tuned call has a setting");
        let mut own = own.unwrap_or(ran);
        ran.micros += conditions.stall;
        own.micros += conditions.stall;
        let measured = at.measured(&question, &ran, &luck);
        let id = if knobs.path == Path::Nccl { Ran::of(&ran.realised) } else { Ran::path(knobs.path) };
        let switched = at.switched(&question, id);
        let (tier, flows) = (at.tier, at.flows * f64::from(ran.realised.channels));
        let compute_lost = self.compute_lost(&planned, &ran);
        let outcome = Outcome {
            micros: ran.micros,
            reference: own.micros,
            switched,
            congestion,
            exploratory,
            loss_change: self.loss_change,
            compute_lost,
            demand: demand(ran.realised.pair.protocol, knobs.chunk, ran.realised.channels, tier),
            fault: conditions.stall > 0.0,
        };
        let terms = Terms::new(&self.rules.weights, &outcome);
        if self.lines.all[line].crosses {
            self.congestion.after(flows, measured, 0.0);
        }
        let choice = Choice::of(&knobs, ran.realised.pair);
        let triggered = self.remember(pending, Some(choice), Some(&ran), measured, id);
        self.finish(&planned, measured, compute_lost);
        CallReport {
            terms,
            ..self.report(pending, Some(own), Some(ran), measured, compute_lost, congestion, triggered)
        }
    }

    fn run_transfer(&mut self, pending: &Pending) -> CallReport {
        let Pending { line, planned, question, conditions, luck, .. } = *pending;
        let queued = self.queued(pending);
        let at = &self.lines.all[line];
        let micros = at.transfer(&question, queued.as_ref().unwrap_or(at.met())) + conditions.stall;
        let measured = luck.apply(micros, None);
        self.remember(pending, None, None, measured, Ran::default());
        self.finish(&planned, measured, 0.0);
        self.report(pending, None, None, measured, 0.0, self.congestion.level(), false)
    }

    /// The links behind the queues that own channels have filled; none where there are no queues.
    fn queued(&mut self, pending: &Pending) -> Option<Fabric> {
        let at = &mut self.lines.all[pending.line];
        let share = self.rules.dynamics.congestion;
        let fills = at.crosses && share > 0.0 && self.congestion.level() > 0.0;
        fills.then(|| at.fabric(&pending.planned, &self.congestion.upon(&pending.conditions, share)))
    }

    /// µs that compute beside the call loses to its channels.
    fn compute_lost(&self, planned: &Planned, ran: &Setting) -> f64 {
        if planned.beside <= 0.0 || ran.knobs.path != Path::Nccl {
            return 0.0;
        }
        let stretch = compute_stretch(&self.compute, ran.realised.channels, self.sms);
        planned.beside.min(ran.micros) * (stretch - 1.0)
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
        let every = self.job.feedback_every;
        let arrives = every.is_some_and(|every| self.calls.is_multiple_of(every.max(1)));
        let predicted = ran.and_then(|ran| pending.question.table.get(ran.realised.pair));
        let signals = predicted.filter(|_| arrives).map(|predicted| {
            let key = Key::new(pending.line as u16, pending.question.collective, pending.question.bytes);
            self.trigger.observe(key, id, measured, f64::from(predicted))
        });
        self.since_feedback = match signals {
            Some(_) => Some(0),
            None => self.since_feedback.map(|calls| calls.saturating_add(1)),
        };
        self.past = PastCall {
            choice,
            launched: ran.map_or(0, |ran| ran.realised.channels),
            since_kind: None,
            since_feedback: self.since_feedback,
            feedback: signals.map(Feedback::from),
        };
        signals.is_some_and(|signals| signals.fired)
    }

    /// Lets the time of a call pass.
    fn finish(&mut self, planned: &Planned, measured: f64, compute_lost: f64) {
        let exposed = planned.exposed(measured) + compute_lost;
        self.congestion.after(0.0, 0.0, planned.window);
        self.pass(exposed);
        let sparse = matches!(
            self.workload.compression,
            Compression::TopK | Compression::RandomK | Compression::Combined
        );
        let reduces = planned.group.role() == Role::InterStage;
        if sparse && reduces && self.workload.compression_rate >= SPARSE_RATE {
            self.advice.sparse_library += 1;
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn report(
        &self,
        pending: &Pending,
        own: Option<Setting>,
        ran: Option<Setting>,
        measured: f64,
        compute_lost: f64,
        congestion: f64,
        triggered: bool,
    ) -> CallReport {
        let Pending { line, planned, question, conditions, .. } = *pending;
        CallReport {
            communicator: line as u8,
            tier: self.lines.all[line].tier,
            collective: planned.collective,
            bytes: planned.bytes,
            role: planned.role,
            own,
            ran,
            measured,
            compute_lost,
            terms: Terms::default(),
            gates: question.gated.fired,
            conditions,
            congestion,
            fault: conditions.stall > 0.0,
            triggered,
        }
    }

    /// Writes what is seen before the next call; nothing where the job is done.
    pub fn observe(&self, into: &mut Observation) {
        let Some(pending) = &self.pending else {
            for numbers in [&mut into.context, &mut into.history, &mut into.privileged] {
                numbers.fill(0.0);
            }
            (into.mask, into.decides) = (Mask::FIRST.all_bits(), false);
            return;
        };
        let at = &self.lines.all[pending.line];
        into.context.copy_from_slice(at.written());
        let history = (&mut *into.history).try_into().expect("as wide as the spaces say");
        Encoder::history(&self.past, history);
        into.privileged.copy_from_slice(&self.privileged(pending));
        (into.mask, into.decides) = (pending.mask.all_bits(), pending.mask.decides());
    }

    fn privileged(&self, pending: &Pending) -> [f32; super::PRIVILEGED.len()] {
        let Conditions { load, speed, nics, latency, bandwidth, .. } = pending.conditions;
        let predicted = pending.own.and_then(|own| pending.question.table.get(own.realised.pair));
        let ratio = match (pending.own, predicted) {
            (Some(own), Some(predicted)) => ln(own.micros / f64::from(predicted).max(1e-3)) / 8.0,
            _ => 0.0,
        };
        let signed = |x: f64| x.clamp(-1.0, 1.0) as f32;
        [load, speed, nics, latency / 2.0, bandwidth, self.congestion.level(), ratio].map(signed)
    }

    /// Every legal setting of the next call with its true time, without own congestion; the first is
    /// NCCL's own. Empty where there is nothing to tune.
    pub fn settings(&mut self) -> Vec<Setting> {
        let Some(pending) = self.pending else { return Vec::new() };
        let Some(own) = pending.own else { return Vec::new() };
        let at = &mut self.lines.all[pending.line];
        let threads = self.threads;
        let mut settings = vec![own];
        for mut knobs in crate::sim::knobs_in(&pending.mask) {
            knobs.threads = threads.unwrap_or(knobs.threads);
            settings.extend(at.setting(&pending.question, knobs, at.met()));
        }
        settings
    }
}
