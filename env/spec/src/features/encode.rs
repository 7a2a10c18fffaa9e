//! Writing the numbers, in the order of the catalogue, into memory that the caller owns.

use std::sync::LazyLock;

use crate::action::{Choice, Head};
use crate::context::{
    CclLibrary, Compression, Environment, FaultTolerance, GpuGeneration, GpuSharing, JobContext, NetLink,
    NodeLink, PRIORITY_MAX, Parallelism, Role, SyncMode, TIERS, Topology, TopologyClass,
};
use crate::features::catalogue::slot;
use crate::features::{CALL_WIDTH, CONTEXT_WIDTH, HISTORY_WIDTH, Hidden, JOB_WIDTH, SIZE_SCALE, TIME_SCALE};
use crate::ids::{Collective, PAIRS};
use crate::math::{ln, log2, log2_of_normal};
use crate::table::{CostTable, PairMask};

/// ln(time ratio) beyond which a difference no longer counts.
const RATIO: f64 = TIME_SCALE as f64;
/// The same for a synthesised schedule against NCCL: a choice of two, so that small differences count.
const SCHEDULE_RATIO: f64 = 2.0;
const LOG2_RANKS: f64 = 20.0;
const LOG2_BYTES: f64 = SIZE_SCALE as f64;
const LOG2_MICROS: f64 = 32.0;
const LOG2_CALLS: f64 = 12.0;
const LOG2_E: f64 = std::f64::consts::LOG2_E;
const LN_2: f64 = std::f64::consts::LN_2;
const LOG10_2: f64 = std::f64::consts::LOG10_2;

/// What is known of a call when it is decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallContext {
    /// The collective.
    pub collective: Collective,
    /// Its size as NCCL counts it.
    pub bytes: u64,
    /// Operations that NCCL groups into the launch.
    pub pipelined: u32,
    /// NCCL's predicted times.
    pub table: CostTable,
    /// The pairs that may be chosen.
    pub pairs: PairMask,
    /// µs that a synthesised schedule is predicted to take; none where no runtime can run one.
    pub synthesised: Option<f32>,
}

/// The call before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PastCall {
    /// What was chosen; none before the first call and for calls that are not tuned.
    pub choice: Option<Choice>,
    /// Channels that ran.
    pub launched: u32,
    /// Calls since the last one of the kind that now comes; none for its first.
    pub since_kind: Option<u32>,
    /// Calls since feedback arrived; none before any.
    pub since_feedback: Option<u32>,
    /// What was measured, if it was.
    pub feedback: Option<Feedback>,
}

/// What was measured of a call.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Feedback {
    /// ln(measured µs / predicted µs).
    pub ratio: f64,
    /// Running mean of it for this kind of call.
    pub expected: f64,
    /// CUSUM score relative to its threshold, with the sign of the shift.
    pub cusum: f64,
    /// How far from expected, in spreads.
    pub error: f64,
    /// Congestion signal, 0 to 1.
    pub congestion: f64,
}

/// Where a job's part says that nodes speak over kernel TCP, and that they are as far apart as can be.
static TCP_AND_FARTHEST: LazyLock<[usize; 2]> = LazyLock::new(|| {
    let [links, tiers] =
        ["inter_link", "communicator_tier_max"].map(|name| slot(name).expect("it is in the catalogue"));
    [links.start + NetLink::CommodityEthernet.id(), tiers.end - 1]
});

/// Encodes calls of one communicator; the job's part is worked out once.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoder {
    job: [f32; JOB_WIDTH],
    ranks: u32,
    unfilled: f32,
}

impl Encoder {
    /// The encoder of a communicator in this job.
    pub fn new(context: &JobContext) -> Self {
        let mut job = [0.0; JOB_WIDTH];
        write_job(context, &mut Cursor::new(&mut job));
        let Topology { ranks, nodes, .. } = context.topology;
        Encoder { job, ranks, unfilled: unfilled_level(nodes) }
    }

    /// The encoder of the same communicator in a job of which these features are not told.
    pub fn without(&self, hidden: &Hidden) -> Self {
        let unknown = Encoder::new(&JobContext::default());
        let mut encoder = self.clone();
        for slot in hidden.slots() {
            encoder.job[slot.clone()].copy_from_slice(&unknown.job[slot]);
        }
        encoder
    }

    /// Writes the context of a call.
    pub fn context(&self, call: &CallContext, out: &mut [f32; CONTEXT_WIDTH]) {
        let (job, rest) = out.split_at_mut(JOB_WIDTH);
        job.copy_from_slice(&self.job);
        self.call(call, rest.first_chunk_mut().expect("the call's part follows the job's"));
    }

    /// Writes the call's part of its context.
    pub fn call(&self, call: &CallContext, out: &mut [f32; CALL_WIDTH]) {
        write_call(self, call, &mut Cursor::new(out));
    }

    /// Whether it is told that nodes speak over kernel TCP.
    #[inline]
    pub fn over_tcp(&self) -> bool {
        let [tcp, _] = *TCP_AND_FARTHEST;
        self.job[tcp] != 0.0
    }

    /// Whether it is told that nodes speak over kernel TCP, and not that they are of tier 4, where links have 25 Gb/s at
    /// most: it may be faster.
    #[inline]
    pub fn over_fast_tcp(&self) -> bool {
        let [_, farthest] = *TCP_AND_FARTHEST;
        self.over_tcp() && self.job[farthest] == 0.0
    }

    /// The job's part of every context.
    pub fn job(&self) -> &[f32; JOB_WIDTH] {
        &self.job
    }

    /// Whether it writes the same contexts as the other, to the bit.
    #[inline]
    pub fn same(&self, other: &Encoder) -> bool {
        // Without an early end: this is faster, and almost always they are the same.
        let differing = |(a, b): (&f32, &f32)| a.to_bits() ^ b.to_bits();
        let differing = self.job.iter().zip(&other.job).map(differing).fold(0, |all, bits| all | bits);
        differing == 0 && self.ranks == other.ranks
    }

    /// Writes the history row before a call.
    pub fn history(past: &PastCall, out: &mut [f32; HISTORY_WIDTH]) {
        write_history(past, &mut Cursor::new(out));
    }
}

fn write_job(context: &JobContext, out: &mut Cursor<'_>) {
    let topology = &context.topology;
    let (ranks, nodes) = (f64::from(topology.ranks.max(1)), f64::from(topology.nodes.max(1)));
    out.unit(log2(ranks) / LOG2_RANKS);
    out.unit(log2(nodes) / LOG2_RANKS);
    out.unit(log2((ranks / nodes).max(1.0)) / LOG2_RANKS);
    out.word(topology.gpu.id(), GpuGeneration::ALL.len());
    out.word(topology.intra.id(), NodeLink::ALL.len());
    out.unit(f64::from(topology.intra_generation) / 8.0);
    out.word(topology.inter.id(), NetLink::ALL.len());
    out.word(topology.class.id(), TopologyClass::ALL.len());
    out.word(topology.tier_max.map_or(0, |tier| 1 + usize::from(tier).min(TIERS - 1)), TIERS + 1);
    topology.tier_mix.unwrap_or_default().into_iter().for_each(|share| out.unit(f64::from(share)));
    out.flag(topology.in_network);
    out.word(topology.library.id(), CclLibrary::ALL.len());

    let scheduler = &context.scheduler;
    out.unit(scheduler.stage.map_or(0.0, |stage| (1.0 + f64::from(stage)) / 65.0));
    out.word(scheduler.role.id(), Role::ALL.len());
    let classes = 1.0 + f64::from(PRIORITY_MAX);
    out.unit(scheduler.priority.map_or(0.0, |class| (1.0 + f64::from(class)) / classes));
    out.word(scheduler.sharing.id(), GpuSharing::ALL.len());
    out.flag(scheduler.template);

    let llm = &context.llm;
    out.word(llm.parallelism.id(), Parallelism::ALL.len());
    out.unit(if llm.params >= 1.0 { log2(llm.params) * LOG10_2 / 13.0 } else { 0.0 });
    out.word(llm.fault_tolerance.id(), FaultTolerance::ALL.len());
    out.flag(llm.three_d);

    let workload = &context.workload;
    out.word(workload.environment.id(), Environment::ALL.len());
    out.word(workload.sync.id(), SyncMode::ALL.len());
    out.unit(if workload.tau > 0 { (1.0 + log2(f64::from(workload.tau))) / 11.0 } else { 0.0 });
    out.word(workload.compression.id(), Compression::ALL.len());
    let rate = f64::from(workload.compression_rate);
    out.unit(if rate >= 1.0 { (1.0 + log2(rate)) / 12.0 } else { 0.0 });
}

/// How far a tree over these nodes is from one with every level full.
fn unfilled_level(nodes: u32) -> f32 {
    let nodes = nodes.max(1);
    let levels = u32::BITS - (nodes - 1).leading_zeros();
    unit(f64::from(levels) - log2(f64::from(nodes)))
}

fn write_call(encoder: &Encoder, call: &CallContext, out: &mut Cursor<'_>) {
    let parts = if call.collective.is_sharded() { u64::from(encoder.ranks.max(1)) } else { 1 };
    out.unit(log2((call.bytes / parts).max(1) as f64) / LOG2_BYTES);
    out.word(call.collective.id(), Collective::ALL.len());
    out.unit(log2(call.bytes.max(1) as f64) / LOG2_BYTES);
    out.unit(log2(f64::from(call.pipelined.max(1))) / 10.0);
    let best = call.table.best().map_or(1.0, |(_, us)| f64::from(us).max(1e-3));
    let log_best = ln(best);
    out.unit(log_best * LOG2_E / LOG2_MICROS);
    let (costs, available) = out.rest().split_at_mut(PAIRS);
    // No branch in here: all are worked out together, those that are not there for nothing.
    for (out, &cost) in costs.iter_mut().zip(call.table.0.as_flattened()) {
        let there = (0.0..f32::INFINITY).contains(&cost);
        let cost = f64::from(if there { cost } else { 1.0 });
        let ratio = (log2_of_normal(if cost > 1e-3 { cost } else { 1e-3 }) * LN_2 - log_best) / RATIO;
        *out = if there { unit(ratio) } else { 1.0 };
    }
    for (index, out) in available[..PAIRS].iter_mut().enumerate() {
        *out = (call.pairs.bits() >> index & 1) as f32;
    }
    let mut out = Cursor::new(&mut available[PAIRS..]);
    out.push(f32::from(call.synthesised.is_some()));
    let ratio = |micros: f32| (ln(f64::from(micros).max(1e-3)) - log_best) / SCHEDULE_RATIO;
    out.signed(call.synthesised.map_or(0.0, ratio));
    out.push(encoder.unfilled);
}

fn write_history(past: &PastCall, out: &mut Cursor<'_>) {
    for &head in Head::ALL {
        let chosen = past.choice.map(|choice| choice.index(head));
        out.one_of(chosen.filter(|&index| index < head.size()), head.size());
    }
    out.unit(log2(f64::from(past.launched.max(1))) / 6.0);
    let calls = |since: Option<u32>| since.map_or(1.0, |n| log2(1.0 + f64::from(n)) / LOG2_CALLS);
    out.unit(calls(past.since_kind));
    let feedback = past.feedback.unwrap_or_default();
    out.push(f32::from(past.feedback.is_some()));
    out.signed(feedback.ratio / RATIO);
    out.signed(feedback.expected / RATIO);
    out.signed(feedback.cusum);
    out.unit(feedback.error / RATIO);
    out.unit(feedback.congestion);
    out.unit(calls(past.since_feedback));
}

/// Within 0 and 1, and 0 for what is no number.
fn unit(x: f64) -> f32 {
    if x > 0.0 { x.min(1.0) as f32 } else { 0.0 }
}

/// Writes numbers one after the other. Whatever it is given, what it writes is finite and in range.
struct Cursor<'a> {
    out: &'a mut [f32],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(out: &'a mut [f32]) -> Self {
        Cursor { out, at: 0 }
    }

    fn push(&mut self, x: f32) {
        self.out[self.at] = x;
        self.at += 1;
    }

    /// What has not been written yet.
    fn rest(&mut self) -> &mut [f32] {
        &mut self.out[self.at..]
    }

    fn unit(&mut self, x: f64) {
        self.push(unit(x));
    }

    fn signed(&mut self, x: f64) {
        self.push(if x.is_nan() { 0.0 } else { x.clamp(-1.0, 1.0) as f32 });
    }

    fn word(&mut self, id: usize, len: usize) {
        self.one_of(Some(id.min(len - 1)), len);
    }

    /// 1 at this position of the next `len`, 0 at the others.
    fn one_of(&mut self, position: Option<usize>, len: usize) {
        let numbers = &mut self.out[self.at..self.at + len];
        numbers.fill(0.0);
        if let Some(position) = position {
            numbers[position] = 1.0;
        }
        self.at += len;
    }

    fn flag(&mut self, value: Option<bool>) {
        self.word(value.map_or(0, |yes| 1 + usize::from(yes)), 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::catalogue::{FEATURES, Part, slot};
    use crate::ids::{Algorithm, Pair, Protocol};

    fn call() -> CallContext {
        let mut table = CostTable::default();
        table.set(Pair::new(Algorithm::Ring, Protocol::LL), 20.0);
        table.set(Pair::new(Algorithm::Tree, Protocol::Simple), 30.0);
        let pairs = table.mask();
        let (collective, synthesised) = (Collective::AllGather, Some(25.0));
        CallContext { collective, bytes: 1 << 20, pipelined: 1, table, pairs, synthesised }
    }

    fn past() -> PastCall {
        let feedback = Feedback { ratio: 0.5, expected: 0.4, cusum: 0.3, error: 1.0, congestion: 0.2 };
        let choice = Some(Choice([0, 3, 2, 1, 1]));
        let (since_kind, since_feedback) = (Some(2), Some(1));
        PastCall { choice, launched: 4, since_kind, since_feedback, feedback: Some(feedback) }
    }

    fn row(
        job: &JobContext,
        call: &CallContext,
        past: &PastCall,
    ) -> ([f32; CONTEXT_WIDTH], [f32; HISTORY_WIDTH]) {
        let (mut context, mut history) = ([f32::NAN; CONTEXT_WIDTH], [f32::NAN; HISTORY_WIDTH]);
        Encoder::new(job).context(call, &mut context);
        Encoder::history(past, &mut history);
        (context, history)
    }

    /// The features that differ between two rows.
    fn changed(change: impl Fn(&mut JobContext, &mut CallContext, &mut PastCall)) -> Vec<&'static str> {
        let (mut job, mut call, mut past) = (JobContext::default(), call(), past());
        (job.topology.ranks, job.topology.nodes) = (16, 2);
        let before = row(&job, &call, &past);
        change(&mut job, &mut call, &mut past);
        let after = row(&job, &call, &past);
        let differs = |feature: &&crate::features::Feature| {
            let slot = slot(feature.name).unwrap();
            match feature.part {
                Part::Job => before.0[slot.clone()] != after.0[slot],
                Part::Call => before.0[JOB_WIDTH..][slot.clone()] != after.0[JOB_WIDTH..][slot],
                Part::History => before.1[slot.clone()] != after.1[slot],
            }
        };
        FEATURES.iter().filter(differs).map(|feature| feature.name).collect()
    }

    #[test]
    fn every_feature_follows_its_cause_and_nothing_else() {
        let mut seen = Vec::new();
        let mut expect =
            |names: &[&'static str], change: fn(&mut JobContext, &mut CallContext, &mut PastCall)| {
                assert_eq!(changed(change), names);
                seen.extend_from_slice(names);
            };
        expect(&["log2_ranks", "log2_ranks_per_node", "effective_bytes"], |j, _, _| j.topology.ranks = 32);
        expect(&["log2_nodes", "log2_ranks_per_node"], |j, _, _| j.topology.nodes = 4);
        expect(&["log2_nodes", "log2_ranks_per_node", "unfilled_level"], |j, _, _| j.topology.nodes = 5);
        expect(&["gpu"], |j, _, _| j.topology.gpu = GpuGeneration::Hopper);
        expect(&["intra_link"], |j, _, _| j.topology.intra = NodeLink::Nvlink);
        expect(&["intra_generation"], |j, _, _| j.topology.intra_generation = 4);
        expect(&["inter_link"], |j, _, _| j.topology.inter = NetLink::RoceV2);
        expect(&["topology_class"], |j, _, _| j.topology.class = TopologyClass::Torus);
        expect(&["communicator_tier_max"], |j, _, _| j.topology.tier_max = Some(0));
        expect(&["communicator_tier_mix"], |j, _, _| j.topology.tier_mix = Some([0.0, 0.5, 0.5, 0.0, 0.0]));
        expect(&["in_network_aggregation"], |j, _, _| j.topology.in_network = Some(false));
        expect(&["ccl_library"], |j, _, _| j.topology.library = CclLibrary::Nccl);
        expect(&["pipeline_stage"], |j, _, _| j.scheduler.stage = Some(0));
        expect(&["pipeline_role"], |j, _, _| j.scheduler.role = Role::InterStage);
        expect(&["coflow_priority"], |j, _, _| j.scheduler.priority = Some(0));
        expect(&["gpu_sharing"], |j, _, _| j.scheduler.sharing = GpuSharing::Mps);
        expect(&["pipeline_template"], |j, _, _| j.scheduler.template = Some(true));
        expect(&["parallelism"], |j, _, _| j.llm.parallelism = Parallelism::ThreeD);
        expect(&["log10_params"], |j, _, _| j.llm.params = 8e9);
        expect(&["fault_tolerance"], |j, _, _| j.llm.fault_tolerance = FaultTolerance::Oobleck);
        expect(&["is_3d"], |j, _, _| j.llm.three_d = Some(true));
        expect(&["environment"], |j, _, _| j.workload.environment = Environment::Edge);
        expect(&["sync_mode"], |j, _, _| j.workload.sync = SyncMode::Local);
        expect(&["local_tau"], |j, _, _| j.workload.tau = 1);
        expect(&["compression"], |j, _, _| j.workload.compression = Compression::TopK);
        expect(&["compression_rate"], |j, _, _| j.workload.compression_rate = 1.0);
        expect(&["effective_bytes", "collective"], |_, c, _| c.collective = Collective::AllReduce);
        expect(&["effective_bytes", "log2_bytes"], |_, c, _| c.bytes = 1 << 21);
        expect(&["pipelined_ops"], |_, c, _| c.pipelined = 4);
        expect(&["nccl_cost"], |_, c, _| c.table.set(Pair::new(Algorithm::Tree, Protocol::Simple), 40.0));
        expect(&["nccl_best", "nccl_cost", "synthesised_cost"], |_, c, _| {
            c.table.set(Pair::new(Algorithm::Ring, Protocol::LL), 9.0);
        });
        expect(&["nccl_available"], |_, c, _| c.pairs = PairMask::NONE);
        expect(&["synthesised_cost"], |_, c, _| c.synthesised = Some(30.0));
        expect(&["synthesised_available", "synthesised_cost"], |_, c, _| c.synthesised = None);
        expect(&["last_path"], |_, _, p| p.choice = Some(Choice([1, 3, 2, 1, 1])));
        expect(&["last_pair"], |_, _, p| p.choice = Some(Choice([0, 4, 2, 1, 1])));
        expect(&["last_channels"], |_, _, p| p.choice = Some(Choice([0, 3, 5, 1, 1])));
        expect(&["last_chunk"], |_, _, p| p.choice = Some(Choice([0, 3, 2, 0, 1])));
        expect(&["last_threads"], |_, _, p| p.choice = Some(Choice([0, 3, 2, 1, 2])));
        expect(&["last_launched"], |_, _, p| p.launched = 8);
        expect(&["rhythm"], |_, _, p| p.since_kind = None);
        expect(&["staleness"], |_, _, p| p.since_feedback = Some(40));
        expect(&["last_time"], |_, _, p| p.feedback.as_mut().unwrap().ratio = -0.5);
        expect(&["expected_time"], |_, _, p| p.feedback.as_mut().unwrap().expected = -0.5);
        expect(&["cusum"], |_, _, p| p.feedback.as_mut().unwrap().cusum = -0.5);
        expect(&["reconstruction_error"], |_, _, p| p.feedback.as_mut().unwrap().error = 3.0);
        expect(&["congestion"], |_, _, p| p.feedback.as_mut().unwrap().congestion = 0.9);
        let feedback =
            ["has_feedback", "last_time", "expected_time", "cusum", "reconstruction_error", "congestion"];
        expect(&feedback, |_, _, p| p.feedback = None);
        let missed: Vec<_> = FEATURES.iter().map(|f| f.name).filter(|name| !seen.contains(name)).collect();
        assert!(missed.is_empty(), "no test changes the cause of {missed:?}");
    }

    #[test]
    fn every_number_is_written_finite_and_in_range_whatever_comes() {
        let mut job = JobContext::default();
        (job.topology.ranks, job.topology.nodes) = (u32::MAX, 1);
        (job.llm.params, job.workload.tau, job.scheduler.stage) = (f64::INFINITY, u32::MAX, Some(255));
        (job.topology.tier_max, job.topology.tier_mix) = (Some(200), Some([f32::NAN; TIERS]));
        (job.scheduler.priority, job.workload.compression_rate) = (Some(255), f32::NAN);
        let mut call = call();
        (call.bytes, call.pipelined) = (u64::MAX, u32::MAX);
        call.table.set(Pair::new(Algorithm::Pat, Protocol::Simple), f32::MAX);
        call.table.set(Pair::new(Algorithm::Pat, Protocol::LL), 0.0);
        call.synthesised = Some(f32::INFINITY);
        let feedback = Feedback {
            ratio: f64::NAN,
            expected: -1e300,
            cusum: 1e300,
            error: f64::INFINITY,
            congestion: -3.0,
        };
        let past = PastCall { choice: Some(Choice([255; 5])), feedback: Some(feedback), ..past() };
        let (context, history) = row(&job, &call, &past);
        for feature in FEATURES {
            let slot = slot(feature.name).unwrap();
            let numbers = match feature.part {
                Part::Job => &context[slot],
                Part::Call => &context[JOB_WIDTH..][slot],
                Part::History => &history[slot],
            };
            let [low, high] = feature.range();
            assert!(numbers.iter().all(|x| (low..=high).contains(x)), "{}: {numbers:?}", feature.name);
        }
    }
}
