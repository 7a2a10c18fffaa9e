//! Calls at random: every job, table and history that a tuner may be asked about, likely or not.

use dynamiccl_spec::features::{CallContext, Encoder, Feedback, PastCall};
use dynamiccl_spec::math::exp2;
use dynamiccl_spec::table::UNAVAILABLE;
use dynamiccl_spec::{
    CclLibrary, Choice, Collective, CostTable, Gated, Gates, Head, JobContext, Mask, Overrides, Pair, Query,
    Role, Topology,
};

use crate::random::Random;

/// A made-up call.
#[derive(Debug, Clone)]
pub struct Call {
    ranks: u32,
    nodes: u32,
    encoder: Encoder,
    gates: Gates,
    call: CallContext,
    gated: Gated,
    past: PastCall,
}

impl Call {
    /// A call on a communicator of its own.
    pub fn draw(random: &mut Random) -> Self {
        let job = job(random);
        let Topology { ranks, nodes, .. } = job.topology;
        let gates = Gates::new(&job.topology, random.below(4) == 0, Overrides::default());
        let (collective, table) = (Collective::AllReduce, CostTable::default());
        let gated = gates.narrow(collective, &table);
        let call = CallContext {
            collective,
            bytes: 0,
            pipelined: 1,
            table,
            pairs: gated.mask.pairs(),
            synthesised: None,
        };
        let encoder = Encoder::new(&job);
        let mut call = Call { ranks, nodes, encoder, gates, call, gated, past: PastCall::default() };
        call.next(random);
        call
    }

    /// The next call on the same communicator.
    pub fn next(&mut self, random: &mut Random) {
        let collective = Collective::TUNED[random.below(Collective::TUNED.len())];
        let bytes = exp2(40.0 * random.uniform()) as u64;
        let pipelined = 1 + random.below(4) as u32;
        let table = table(random);
        self.gated = self.gates.narrow(collective, &table);
        self.gated.mask = narrowed(self.gated.mask, random);
        let pairs = self.gated.mask.pairs();
        self.call = CallContext { collective, bytes, pipelined, table, pairs, synthesised: None };
        self.past = past(random);
    }

    /// What a tuner is asked about it.
    pub fn query(&self) -> Query<'_> {
        let Call { ranks, nodes, encoder, call, gated, past, .. } = self;
        Query { communicator: 0, ranks: *ranks, nodes: *nodes, encoder, call, gated, past }
    }
}

/// A job of which most is known.
fn job(random: &mut Random) -> JobContext {
    let mut job = JobContext::default();
    job.topology.nodes = 1 << random.below(8);
    job.topology.ranks = job.topology.nodes << random.below(4);
    job.topology.tier_max = Some(random.below(5) as u8);
    job.topology.in_network = Some(random.below(16) == 0);
    job.topology.library = if random.below(32) == 0 { CclLibrary::Gloo } else { CclLibrary::Nccl };
    job.scheduler.role = Role::ALL[random.below(Role::ALL.len())];
    job.scheduler.stage = Some(random.below(16) as u8);
    job.llm.params = exp2(40.0 * random.uniform());
    job.workload.compression_rate = (100.0 * random.uniform()) as f32;
    job
}

/// A table with everything in it that NCCL, a plugin before ours, or nobody would write.
fn table(random: &mut Random) -> CostTable {
    let mut table = CostTable::default();
    let level = exp2(20.0 * random.uniform());
    for pair in Pair::all() {
        let micros = match random.below(32) {
            0 => f32::NAN,
            1 => f32::INFINITY,
            2 => 0.0,
            3 => -1024.0,
            4 => level as f32,
            5 => (level as f32).next_up(),
            6..16 => UNAVAILABLE,
            _ => (level * exp2(4.0 * random.uniform())) as f32,
        };
        table.set(pair, micros);
    }
    table
}

/// A mask with what only a running process knows.
fn narrowed(mask: Mask, random: &mut Random) -> Mask {
    let mask = if random.below(8) == 0 { mask } else { mask.only(Head::Threads, 0) };
    if random.below(8) == 0 { mask.only(Head::Chunk, 0) } else { mask }
}

fn past(random: &mut Random) -> PastCall {
    let index = |head: Head, random: &mut Random| random.below(head.size()) as u8;
    let choice = std::array::from_fn(|at| index(Head::ALL[at], random));
    let signed = |random: &mut Random| 4.0 * random.uniform() - 2.0;
    let feedback = Feedback {
        ratio: signed(random),
        expected: signed(random),
        cusum: signed(random),
        error: 8.0 * random.uniform(),
        congestion: random.uniform(),
    };
    PastCall {
        choice: (random.below(8) > 0).then_some(Choice(choice)),
        launched: random.below(64) as u32,
        since_kind: Some(random.below(100) as u32),
        since_feedback: Some(random.below(100) as u32),
        feedback: (random.below(4) > 0).then_some(feedback),
    }
}
