//! What a tuner is asked on one communicator of a cluster, outside of any job.
//!
//! Showing a tuner's decisions and exporting them as a table both need the questions that NCCL would ask
//! on a machine, and neither needs a time. So this knows NCCL's side and the gates, and no world.

use std::sync::Arc;

use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
use dynamiccl_spec::{Collective, Gated, Gates, Head, JobContext, Knobs, Query, Role, TopologyClass};

use crate::carrier::{Carrier, Making, Offer};
use crate::cluster::{Cluster, ClusterError, CommOptions};
use crate::job::{Job, Setting, Shown, Source};
use crate::known::KnownTimes;
use crate::model::ConstantsFile;
use crate::nccl::{Communicator, Realised};
use crate::schedules::Schedules;
use crate::sim::Simulator;
use crate::workload::Placement;

/// A communicator on which a tuner can be asked.
#[derive(Debug, Clone)]
pub struct Asking {
    communicator: Communicator,
    context: JobContext,
    encoder: Encoder,
    gates: Gates,
    past: PastCall,
    /// Synthesised schedules, where a runtime can run them.
    carrier: Option<Carrier>,
}

/// A call as a tuner sees it.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The call, with NCCL's predicted times.
    pub call: CallContext,
    /// What may be chosen.
    pub gated: Gated,
    /// The synthesised schedule, where it may be.
    pub(crate) schedule: Option<Offer>,
}

/// What decides what a call offers on a communicator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    /// NCCL's side.
    pub communicator: &'a Communicator,
    /// The gates.
    pub gates: &'a Gates,
    /// What was measured there, where times are not simulated.
    pub known: Option<&'a dyn KnownTimes>,
    /// Synthesised schedules, where a runtime can run them.
    pub carrier: Option<&'a Carrier>,
}

impl Ground<'_> {
    /// What NCCL says about a call, `pipelined` operations in one launch, and what may be chosen. A tuner is told of pairs
    /// that nobody has measured, and may not choose them.
    pub fn offered(&self, collective: Collective, bytes: u64, pipelined: u32) -> Asked {
        let Ground { communicator, gates, known, carrier } = *self;
        let told = known.and_then(|known| known.table(collective, bytes));
        let own = || communicator.cost_table(collective, bytes, pipelined);
        let table = told.or_else(|| collective.is_tuned().then(own)).unwrap_or_default();
        let mut gated = gates.narrow(collective, &table);
        if !communicator.version().has_chunk_knob() {
            gated.mask = gated.mask.only(Head::Chunk, 0);
        }
        let pairs = gated.mask.pairs();
        if let Some(known) = known {
            gated.mask = known.narrow(collective, bytes, gated.mask);
        }
        let offer = |carrier: &Carrier| carrier.offer(communicator, &table, collective, bytes, pipelined);
        let schedule = carrier.and_then(offer).filter(|_| gated.with_schedule().has_schedule());
        let gated = if schedule.is_some() { gated.with_schedule() } else { gated };
        let synthesised = schedule.map(|schedule| schedule.predicted);
        let call = CallContext { collective, bytes, pipelined, table, pairs, synthesised };
        Asked { call, gated, schedule }
    }
}

impl Asking {
    /// On this many nodes of a cluster, where the tuner is told what `shown` says. A plugin without a
    /// context file is told [`Shown::NOTHING`].
    pub fn new(
        cluster: &Cluster,
        nodes: u32,
        options: &CommOptions,
        shown: Shown,
    ) -> Result<Self, ClusterError> {
        let ranks_per_node = options.ranks_per_node.unwrap_or(cluster.gpus_per_node);
        let place = Placement { nodes, ranks_per_node, siblings: 1 };
        Asking::in_job(&benchmark(cluster, nodes, options, shown), &place)
    }

    /// On a communicator of a job that lies like this.
    pub(crate) fn in_job(job: &Job, place: &Placement) -> Result<Self, ClusterError> {
        let Setting { sharp, version, deterministic, ref overrides, .. } = job.setting;
        let ranks_per_node = Some(place.ranks_per_node);
        let options = CommOptions { ranks_per_node, sharp, version, overrides: overrides.clone() };
        let communicator = job.cluster.communicator(place.nodes, &options)?;
        let context = job.context(place, None, &job.workload());
        // A gate holds whether or not anybody has told the tuner.
        let gates = Gates::new(&job.topology(place), deterministic, options.overrides);
        let (encoder, past) = (Encoder::new(&context), PastCall::default());
        Ok(Asking { communicator, context, encoder, gates, past, carrier: None })
    }

    /// The same where a runtime can run the schedules that somebody makes for this cluster.
    pub fn with_schedules(
        self,
        schedules: &dyn Schedules,
        cluster: &Cluster,
        constants: &ConstantsFile,
    ) -> Self {
        let making = Making { schedules, constants: &constants.nominal() };
        Asking { carrier: Carrier::new(&making, cluster, &self.communicator), ..self }
    }

    /// Tells the tuner what the next calls are for.
    pub(crate) fn tell_role(&mut self, role: Role) {
        if self.context.scheduler.role != role {
            self.context.scheduler.role = role;
            self.encoder = Encoder::new(&self.context);
        }
    }

    /// NCCL's side.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// A call, `pipelined` operations in one launch.
    pub fn call(&self, collective: Collective, bytes: u64, pipelined: u32) -> Asked {
        self.ground().offered(collective, bytes, pipelined)
    }

    /// A call of which only what was measured may be chosen.
    pub(crate) fn call_of(&self, known: &dyn KnownTimes, collective: Collective, bytes: u64) -> Asked {
        Ground { known: Some(known), ..self.ground() }.offered(collective, bytes, 1)
    }

    fn ground(&self) -> Ground<'_> {
        let (communicator, gates) = (&self.communicator, &self.gates);
        Ground { communicator, gates, known: None, carrier: self.carrier.as_ref() }
    }

    /// The question about a call that is the first of its job.
    pub fn query<'a>(&'a self, asked: &'a Asked) -> Query<'a> {
        self.query_after(0, asked, &self.past)
    }

    /// The question about a call after others, on the communicator with this number.
    pub(crate) fn query_after<'a>(
        &'a self,
        communicator: u32,
        asked: &'a Asked,
        past: &'a PastCall,
    ) -> Query<'a> {
        Query {
            communicator,
            ranks: self.communicator.ranks(),
            nodes: self.communicator.nodes(),
            encoder: &self.encoder,
            call: &asked.call,
            gated: &asked.gated,
            past,
        }
    }

    /// The true µs of the synthesised schedule of a call in a world; none where none may be chosen.
    pub fn schedule_micros(&self, asked: &Asked, simulator: &Simulator) -> Option<f64> {
        let CallContext { collective, bytes, .. } = asked.call;
        asked.schedule.map(|offer| offer.micros(simulator, simulator.fabric(), collective, bytes))
    }

    /// What NCCL makes of an answer; nothing where NCCL has no such pair.
    pub fn realise(&self, asked: &Asked, knobs: &Knobs) -> Option<Realised> {
        let CallContext { collective, bytes, table, .. } = &asked.call;
        self.communicator.realise(*collective, *bytes, table, knobs)
    }
}

/// A job that only makes calls, as nccl-tests does.
fn benchmark(cluster: &Cluster, nodes: u32, options: &CommOptions, shown: Shown) -> Job {
    let class = cluster.inter.as_ref().map_or(TopologyClass::FatTree, |inter| inter.class);
    let (sharp, version) = (options.sharp, options.version);
    let setting =
        Setting { class, sharp, version, overrides: options.overrides.clone(), ..Setting::default() };
    let (cluster, source) = (Arc::new(cluster.clone()), Source::Benchmark);
    Job { cluster, nodes, source, setting, shown, feedback_every: None, world: 0 }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::features::{CONTEXT_WIDTH, catalogue};
    use dynamiccl_spec::{GpuGeneration, Overrides};

    use super::*;
    use crate::nccl::Version;

    const MIB: u64 = 1 << 20;

    fn asking(options: &CommOptions, shown: Shown) -> Asking {
        Asking::new(&Cluster::load("dgx_h100").unwrap(), 2, options, shown).unwrap()
    }

    fn context(asking: &Asking, asked: &Asked) -> [f32; CONTEXT_WIDTH] {
        let mut context = [0.0; CONTEXT_WIDTH];
        asking.query(asked).encoder.context(&asked.call, &mut context);
        context
    }

    #[test]
    fn a_question_holds_what_nccl_says_and_would_do() {
        let asking = asking(&CommOptions::default(), Shown::NOTHING);
        let asked = asking.call(Collective::AllReduce, MIB, 1);
        let query = asking.query(&asked);
        assert_eq!((query.ranks, query.nodes), (16, 2));
        let decision = asking.communicator().decide(Collective::AllReduce, MIB, 1).unwrap();
        assert_eq!(query.own().pair, Some(decision.pair));
        assert_eq!(asking.realise(&asked, &query.own()).unwrap().max_channels, decision.channels);
    }

    #[test]
    fn a_tuner_is_told_the_machine_only_where_it_is_shown() {
        let gpu = catalogue::slot("gpu").unwrap();
        let told = |shown| {
            let asking = asking(&CommOptions::default(), shown);
            let asked = asking.call(Collective::AllReduce, MIB, 1);
            context(&asking, &asked)[gpu.clone()].iter().position(|&x| x == 1.0)
        };
        assert_eq!(told(Shown::NOTHING), Some(GpuGeneration::Unknown.id()));
        assert_eq!(told(Shown { topology: true, ..Shown::NOTHING }), Some(GpuGeneration::Hopper.id()));
    }

    #[test]
    fn a_chunk_may_be_chosen_where_nccl_asks_for_it() {
        let chunks = |version| {
            let asking = asking(&CommOptions { version, ..CommOptions::default() }, Shown::NOTHING);
            asking.call(Collective::AllReduce, MIB, 1).gated.mask.count(Head::Chunk)
        };
        assert_eq!(Version::ALL.map(chunks), [1, 1, 5]);
    }

    #[test]
    fn what_the_user_fixed_holds() {
        let mut overrides = Overrides::default();
        overrides.set("NCCL_ALGO", "Ring").unwrap();
        let options = CommOptions { overrides, ..CommOptions::default() };
        let asked = asking(&options, Shown::NOTHING).call(Collective::AllReduce, MIB, 1);
        assert!(
            asked.gated.mask.pairs().iter().all(|pair| pair.algorithm == dynamiccl_spec::Algorithm::Ring)
        );
    }
}
