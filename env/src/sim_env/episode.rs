//! A running job: the call that is next, what it would take, and what it leaves behind.

use dynamiccl_spec::{GateCounts, Head, Mask, ThreadChoice, Workload};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::dynamics::{Congestion, Loss, Wan, climate, stall_share, waiting_share};
use super::info::{Advice, CallReport, SimInfo};
use super::line::Question;
use super::lines::{self, Lines};
use super::schedule::{Next, Schedule};
use crate::carrier::Making;
use crate::cluster::ClusterError;
use crate::curriculum::{Dynamics, Regime};
use crate::job::Job;
use crate::memory::Memory;
use crate::model::Conditions;
use crate::model::constants::Compute;
use crate::reward::Weights;
use crate::sim::Setting;
use crate::workload::Planned;
use crate::world::draw::uniform;
use crate::world::{Climate, Luck, WeatherState, World};

/// The tier of communicators that cross a WAN.
const BETWEEN_DATACENTRES: u8 = 4;

/// What a stage says about every episode.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub dynamics: Dynamics,
    pub weights: Weights,
    /// Calls after which an episode is cut short.
    pub calls: u32,
    /// What sync mode and tau may change to; none where they stay.
    pub regime: Option<Regime>,
    /// Whether threads can be chosen anew at every call.
    pub free_threads: bool,
}

/// A running job.
#[derive(Debug)]
pub(super) struct Episode {
    pub(super) job: Job,
    pub(super) rules: Rules,
    pub(super) rng: ChaCha8Rng,
    pub(super) workload: Workload,
    pub(super) lines: Lines,
    /// Inside nodes, and across the network.
    pub(super) weather: [WeatherState; 2],
    /// The luck of trials beside the job's calls.
    pub(super) aside: Option<Box<[WeatherState; 2]>>,
    /// µs for which each weather has not been looked at.
    pub(super) lag: [f64; 2],
    pub(super) schedule: Schedule,
    pub(super) congestion: Congestion,
    /// What is between datacentres, where the stage says how it changes.
    pub(super) wan: Option<Wan>,
    pub(super) loss: Loss,
    pub(super) loss_change: f64,
    pub(super) memory: Memory,
    pub(super) compute: Compute,
    pub(super) sms: u32,
    pub(super) threads: Option<ThreadChoice>,
    pub(super) calls: u32,
    pub(super) gates: GateCounts,
    pub(super) advice: Advice,
    pub(super) pending: Option<Pending>,
}

/// The call that is next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) line: usize,
    pub(super) planned: Planned,
    pub(super) question: Question,
    pub(super) mask: Mask,
    /// The state of the machine, without own congestion.
    pub(super) conditions: Conditions,
    pub(super) luck: Luck,
    /// NCCL's own choice in these conditions.
    pub(super) own: Option<Setting>,
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
        world: &World,
        making: Option<&Making<'_>>,
        mut rng: ChaCha8Rng,
    ) -> Result<Episode, ClusterError> {
        let schedule = Schedule::new(&job, &mut rng);
        let workload = job.workload();
        let lines = lines::of_job(&job, &workload, world, making)?;
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
        let wan = rules.dynamics.wan.map(|rho| Wan::new(rho, ChaCha8Rng::seed_from_u64(rng.random())));
        let mut episode = Episode {
            wan,
            memory: Memory::new(lines.all.len(), job.feedback_every),
            compute: world.constants().around.compute,
            sms: job.cluster.gpu.sms,
            job,
            rules,
            rng,
            workload,
            lines,
            weather,
            aside: None,
            lag: [0.0; 2],
            schedule,
            congestion: Congestion::default(),
            loss: Loss::new(),
            loss_change: 0.0,
            threads: None,
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
    pub(super) fn prepare(&mut self) {
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
        self.memory.asked(line, planned.collective, self.calls);
        let (conditions, luck) = self.look_up(line);
        let mask = self.narrowed(&question);
        let own = self.lines.all[line].settle(&question, &planned, &conditions);
        self.pending = Some(Pending { line, planned, question, mask, conditions, luck, own });
    }

    /// The mask of a call, with what only a running process knows.
    fn narrowed(&self, question: &Question) -> Mask {
        let mask = self.any_threads(question);
        if self.threads.is_some() { mask.only(Head::Threads, 0) } else { mask }
    }

    /// The mask of a call as if the job's threads were not chosen yet.
    pub(super) fn any_threads(&self, question: &Question) -> Mask {
        if question.gated.own.is_none() { Mask::FIRST } else { question.gated.mask }
    }

    /// Time passes on the whole machine, and queues drain.
    pub(super) fn pass(&mut self, micros: f64) {
        self.lag.iter_mut().for_each(|lag| *lag += micros);
        self.congestion.drain(micros);
    }

    /// The conditions that a call meets, before own congestion, and its luck.
    fn look_up(&mut self, line: usize) -> (Conditions, Luck) {
        let crosses = usize::from(self.lines.all[line].crosses);
        if self.lines.all[line].recorded.is_some() {
            // Whatever was in the way is in the times.
            return (Conditions::CALM, self.weather[crosses].luck());
        }
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
        if let Some(wan) = self.wan.as_mut().filter(|_| self.lines.all[line].tier == BETWEEN_DATACENTRES) {
            conditions = wan.upon(&conditions);
        }
        conditions.speed = 1.0 - (1.0 - conditions.speed) * waiting_share(self.schedule.sync());
        conditions.stall *=
            stall_share(self.job.setting.fault_tolerance, self.job.setting.template == Some(true));
        (conditions, self.weather[crosses].luck())
    }

    fn straggling(&self) -> f64 {
        climate(self.job.setting.environment).stragglers
    }
}
