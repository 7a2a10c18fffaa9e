//! One communicator of a running job: what NCCL would do on it and what that takes.

use std::sync::Arc;

use dynamiccl_spec::features::{CONTEXT_WIDTH, CallContext, Encoder};
use dynamiccl_spec::{
    Collective, CostTable, Gate, Gated, Gates, JobContext, Knobs, PairMask, Path, Role, Workload,
};

use crate::asking::{Asked, Ground};
use crate::carrier::{Carrier, Making, Offer};
use crate::cluster::{Cluster, ClusterError, CommOptions};
use crate::job::Job;
use crate::known::KnownTimes;
use crate::model::{Call, Conditions, Fabric, Surroundings};
use crate::nccl::Realised;
use crate::sim::{Setting, Simulator};
use crate::trigger::Ran;
use crate::workload::{Group, Placement, Planned};
use crate::world::{Luck, World};

/// Size octaves that are kept apart when knobs are compared with the last ones.
const OCTAVES: usize = 48;

/// A communicator of a running job.
#[derive(Debug)]
pub(super) struct Line {
    /// Its tier.
    pub tier: u8,
    /// Whether it crosses the network.
    pub crosses: bool,
    /// Channels of one rank that meet at one NIC, for each that a call launches.
    pub flows: f64,
    simulator: Simulator,
    /// Its links when the rank waits for the call, and when compute runs beside it.
    fabrics: [Fabric; 2],
    load_weights: [f64; 8],
    gates: Gates,
    /// Its synthesised schedules, where a runtime can run them.
    carrier: Option<Carrier>,
    group: Option<Group>,
    place: Placement,
    context: JobContext,
    encoder: Arc<Encoder>,
    /// The last question and its context: jobs ask the same one over and over.
    asked: Option<Question>,
    written: Box<[f32; CONTEXT_WIDTH]>,
    /// The links as the last call met them before own congestion, what they were made of, and what NCCL's
    /// own choice takes there: conditions last for many calls.
    met: Fabric,
    met_in: Option<Surrounded>,
    own: Option<Setting>,
    /// The times that were measured here, where they are not simulated.
    pub recorded: Option<Arc<dyn KnownTimes>>,
    last: Vec<Ran>,
}

/// What links depend on: the weather, whether compute runs beside, the call's class.
type Surrounded = (Conditions, bool, Option<u8>);

/// What is worked out about a call before it is decided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    pub collective: Collective,
    pub bytes: u64,
    pub pipelined: u32,
    pub table: CostTable,
    pub gated: Gated,
    /// The pairs that an encoder is told of.
    pub pairs: PairMask,
    /// What would happen without a policy; none where NCCL tunes nothing.
    pub own: Option<(Knobs, Realised)>,
    /// Its synthesised schedule, where it may be chosen.
    pub schedule: Option<Offer>,
}

impl Question {
    /// The call as an encoder sees it.
    pub fn call(&self) -> CallContext {
        let Question { collective, bytes, pipelined, table, pairs, .. } = *self;
        let synthesised = self.schedule.map(|schedule| schedule.predicted);
        CallContext { collective, bytes, pipelined, table, pairs, synthesised }
    }
}

impl Line {
    pub fn new(
        job: &Job,
        cluster: &Cluster,
        place: Placement,
        group: Option<Group>,
        workload: &Workload,
        world: &World,
    ) -> Result<Line, ClusterError> {
        let setting = &job.setting;
        let options = CommOptions {
            ranks_per_node: Some(place.ranks_per_node),
            sharp: setting.sharp,
            version: setting.version,
            overrides: setting.overrides.clone(),
        };
        let simulator = Simulator::new(cluster, place.nodes, &options, world)?;
        let around = &world.constants().around;
        let amid = |beside_compute| {
            let Placement { siblings, .. } = place;
            let (sharing, library, priority) = (setting.sharing, setting.library, None);
            let surroundings = Surroundings { sharing, library, siblings, priority, beside_compute };
            simulator.fabric().amid(&surroundings, around)
        };
        let fabrics = [amid(false), amid(true)];
        // A gate holds whether or not anybody has told the policy.
        let topology = job.topology(&place);
        let gates = Gates::new(&topology, setting.deterministic, setting.overrides.clone());
        let context = job.context(&place, group, workload);
        let nics = cluster.inter.as_ref().map_or(1, |inter| inter.nics.max(1));
        Ok(Line {
            tier: cluster.tier(place.nodes),
            crosses: place.nodes > 1,
            flows: flows(place.siblings, nics, simulator.fabric().nic_share),
            fabrics,
            load_weights: std::array::from_fn(|class| around.priority.weight(class as u8)),
            gates,
            carrier: None,
            group,
            place,
            encoder: Arc::new(Encoder::new(&context)),
            context,
            asked: None,
            written: Box::new([0.0; CONTEXT_WIDTH]),
            met: *simulator.fabric(),
            met_in: None,
            own: None,
            recorded: None,
            last: vec![Ran::default(); Collective::TUNED.len() * OCTAVES],
            simulator,
        })
    }

    /// Lets a runtime run schedules on it, as far as somebody makes any for such a machine.
    pub fn carry(&mut self, making: &Making<'_>, cluster: &Cluster) {
        self.carrier = Carrier::new(making, cluster, self.simulator.communicator());
    }

    /// What NCCL says about a call, and what the gates leave of it.
    pub fn question(&mut self, planned: &Planned) -> Question {
        let Planned { collective, bytes, pipelined, .. } = *planned;
        let same = |asked: &Question| {
            (asked.collective, asked.bytes, asked.pipelined) == (collective, bytes, pipelined)
        };
        if let Some(asked) = self.asked.filter(same) {
            return asked;
        }
        let communicator = self.simulator.communicator();
        let ground = Ground {
            communicator,
            gates: &self.gates,
            known: self.recorded.as_deref(),
            carrier: self.carrier.as_ref(),
        };
        let Asked { call, gated, schedule } = ground.offered(collective, bytes, pipelined);
        let CallContext { table, pairs, .. } = call;
        let own = gated.own.and_then(|pair| {
            let path = if gated.fired.contains(Gate::InNetwork) { Path::InNetwork } else { Path::Nccl };
            let knobs = Knobs { path, pair: Some(pair), ..Knobs::OWN };
            Some((knobs, communicator.realise(collective, bytes, &table, &knobs)?))
        });
        let question = Question { collective, bytes, pipelined, table, gated, pairs, own, schedule };
        self.encoder.context(&call, &mut self.written);
        self.own = None;
        *self.asked.insert(question)
    }

    /// Sets what the policy is told of a call; `anew` where the job itself has changed.
    pub fn tell(&mut self, job: &Job, planned: &Planned, workload: &Workload, anew: bool) {
        let shown = job.shown.scheduler;
        let priority = planned.priority.filter(|_| shown);
        let role = if shown { planned.role } else { Role::Unknown };
        if anew {
            self.context = job.context(&self.place, self.group, workload);
        }
        let scheduler = &mut self.context.scheduler;
        if anew || (scheduler.priority, scheduler.role) != (priority, role) {
            (scheduler.priority, scheduler.role) = (priority, role);
            self.encoder = Arc::new(Encoder::new(&self.context));
            self.asked = None;
        }
    }

    /// What is known of the job here.
    pub fn encoder(&self) -> &Arc<Encoder> {
        &self.encoder
    }

    /// Its nodes and ranks.
    pub fn size(&self) -> (u32, u32) {
        (self.place.nodes, self.place.nodes * self.place.ranks_per_node)
    }

    /// The context of the last question.
    pub fn written(&self) -> &[f32; CONTEXT_WIDTH] {
        &self.written
    }

    /// Lets the weather reach the links; what NCCL's own choice takes then, where NCCL tunes the call.
    pub fn settle(
        &mut self,
        question: &Question,
        planned: &Planned,
        conditions: &Conditions,
    ) -> Option<Setting> {
        let around = (*conditions, planned.beside > 0.0, planned.priority);
        if self.met_in != Some(around) {
            self.met = self.fabric(planned, conditions);
            (self.met_in, self.own) = (Some(around), None);
        }
        if self.own.is_none() {
            self.own = question.own.map(|(knobs, realised)| self.timed(question, knobs, realised, &self.met));
        }
        self.own
    }

    /// The links as the last call met them before own congestion.
    pub fn met(&self) -> &Fabric {
        &self.met
    }

    /// The links as a call meets them in these conditions.
    pub fn fabric(&mut self, planned: &Planned, conditions: &Conditions) -> Fabric {
        let fabric = &mut self.fabrics[usize::from(planned.beside > 0.0)];
        fabric.load_weight =
            planned.priority.map_or(1.0, |class| self.load_weights[usize::from(class.min(7))]);
        fabric.under(conditions)
    }

    /// What NCCL makes of these knobs, and its true time on these links.
    pub fn setting(&self, question: &Question, knobs: Knobs, fabric: &Fabric) -> Option<Setting> {
        let realised = self.realised(question, &knobs)?;
        Some(self.timed(question, knobs, realised, fabric))
    }

    /// What NCCL makes of these knobs.
    pub fn realised(&self, question: &Question, knobs: &Knobs) -> Option<Realised> {
        let Question { collective, bytes, .. } = *question;
        self.simulator.communicator().realise(collective, bytes, &question.table, knobs)
    }

    /// The true time of realised knobs on these links.
    pub fn timed(&self, question: &Question, knobs: Knobs, realised: Realised, fabric: &Fabric) -> Setting {
        if let Some(recorded) = &self.recorded {
            let micros = recorded.micros(question.collective, question.bytes, &realised);
            // Not a number where nobody has tried it yet: real ranks find out when it is chosen.
            return Setting { knobs, realised, micros: micros.unwrap_or(f64::NAN) };
        }
        let micros = match knobs.path {
            Path::InNetwork => fabric.in_network(question.bytes),
            Path::Synthesised => question.schedule.map(|schedule| {
                schedule.micros(&self.simulator, fabric, question.collective, question.bytes)
            }),
            Path::Nccl => None,
        };
        let micros = micros.unwrap_or_else(|| self.nccl_micros(question, &realised, fabric));
        Setting { knobs, realised, micros }
    }

    fn nccl_micros(&self, question: &Question, realised: &Realised, fabric: &Fabric) -> f64 {
        let call =
            Call { pipelined: question.pipelined, ..Call::of(question.collective, question.bytes, realised) };
        self.simulator.micros_of(fabric, &call)
    }

    /// The µs of a call that NCCL does not tune.
    pub fn transfer(&self, question: &Question, fabric: &Fabric) -> f64 {
        fabric.transfer(question.collective, question.bytes)
    }

    /// The µs that luck makes of a call.
    pub fn measured(&self, question: &Question, setting: &Setting, luck: &Luck) -> f64 {
        if let Some(recorded) = &self.recorded {
            let drawn = recorded.draw(question.collective, question.bytes, &setting.realised, luck.mode);
            return drawn.unwrap_or(setting.micros);
        }
        let by_nccl = setting.knobs.path == Path::Nccl;
        let modes = by_nccl.then(|| self.simulator.modes(question.bytes, &setting.realised)).flatten();
        luck.apply(setting.micros, modes)
    }

    /// Remembers what ran in a kind of call; whether it differs from the last time.
    pub fn switched(&mut self, question: &Question, ran: Ran) -> bool {
        let octave = (question.bytes.max(1).ilog2() as usize).min(OCTAVES - 1);
        let last = &mut self.last[question.collective.id() * OCTAVES + octave];
        let before = std::mem::replace(last, ran);
        before != Ran::default() && before != ran
    }
}

/// Flows into one NIC for each channel: those of all siblings, spread over a node's NICs, and at least a
/// communicator's own on those that it drives.
fn flows(siblings: u32, nics: u32, driven: f64) -> f64 {
    f64::from(siblings).max(1.0 / driven) / f64::from(nics)
}
