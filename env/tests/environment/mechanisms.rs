//! What every feature stands for changes a time or the best setting.

use dynamiccl_env::workload::{Layout, Planned};
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::features::{FEATURES, JOB_WIDTH, Part};
use dynamiccl_spec::{
    CclLibrary, Collective, Compression, Environment, FaultTolerance, GpuSharing, Role, Runtime, SyncMode,
    TopologyClass,
};

use crate::scene::{MIB, Scene, Seen, allreduce, repeated, training};

/// Calls after which a change of the job has shown itself.
const CALLS: usize = 60;

/// The numbers of a feature in an observation.
fn numbers(seen: &Seen, name: &str) -> Vec<f32> {
    let slot = slot(name).unwrap();
    let feature = FEATURES.iter().find(|feature| feature.name == name).unwrap();
    match feature.part {
        Part::Job => seen.observation.context[slot].to_vec(),
        Part::Call => seen.observation.context[JOB_WIDTH..][slot].to_vec(),
        Part::History => seen.observation.history[slot].to_vec(),
    }
}

/// Whether two runs differ in a time or in the best setting.
fn differ_in_time(a: &[Seen], b: &[Seen]) -> bool {
    let times = |run: &[Seen]| -> Vec<f64> {
        run.iter().map(|seen| seen.report.ran.map_or(seen.report.measured, |ran| ran.micros)).collect()
    };
    let best = |run: &[Seen]| -> Vec<_> { run.iter().map(|seen| seen.best).collect() };
    times(a) != times(b) || best(a) != best(b)
}

/// Fails unless the two scenes, alike but for the cause of these features, differ in each of them and in a
/// time.
fn changes(features: &[&'static str], a: &Scene, b: &Scene) -> Vec<&'static str> {
    let (a, b) = (a.run(11, CALLS), b.run(11, CALLS));
    for name in features {
        let shown = |run: &[Seen]| -> Vec<_> { run.iter().map(|seen| numbers(seen, name)).collect() };
        assert_ne!(shown(&a), shown(&b), "{name} does not show its cause");
    }
    assert!(differ_in_time(&a, &b), "{features:?}: no time depends on the cause");
    features.to_vec()
}

fn call(change: impl FnOnce(&mut Planned)) -> Scene {
    let mut call = Planned::alone(Collective::AllReduce, MIB, Role::IntraStage);
    change(&mut call);
    repeated("dgx_h100", 2, call)
}

fn dp(ranks: u32) -> Layout {
    Layout { dp: ranks, ..Layout::default() }
}

fn of_machines() -> Vec<&'static str> {
    let on = |cluster, nodes| {
        repeated(cluster, nodes, Planned::alone(Collective::AllReduce, MIB, Role::IntraStage))
    };
    let mut seen = Vec::new();
    seen.extend(changes(&["log2_ranks", "log2_nodes", "nccl_best"], &on("dgx_h100", 2), &on("dgx_h100", 4)));
    seen.extend(changes(&["unfilled_level"], &on("tier2", 4), &on("tier2", 5)));
    seen.extend(changes(&["log2_ranks_per_node"], &on("h100_4gpu", 2), &on("dgx_h100", 2)));
    seen.extend(changes(&["gpu", "intra_generation"], &on("dgx_h100", 1), &on("dgx_a100", 1)));
    seen.extend(changes(&["intra_link"], &on("l40s_8pcie", 1), &on("dgx_a100", 1)));
    seen.extend(changes(&["inter_link"], &on("tcp25g_1gpu", 4), &on("ib100g_1gpu", 4)));
    let tiers = ["communicator_tier_max", "communicator_tier_mix"];
    seen.extend(changes(&tiers, &on("dgx_h100", 4), &on("dgx_h100", 8)));
    seen
}

fn of_settings() -> Vec<&'static str> {
    let mut seen = Vec::new();
    let tcp = || repeated("ib100g_1gpu", 16, Planned::alone(Collective::AllReduce, MIB, Role::Unknown));
    seen.extend(changes(&["topology_class"], &tcp(), &tcp().with(|s| s.class = TopologyClass::Torus)));
    let gated = allreduce().with(|s| s.in_network = Some(true));
    seen.extend(changes(&["in_network_aggregation"], &allreduce(), &gated));
    seen.extend(changes(&["ccl_library"], &allreduce(), &allreduce().with(|s| s.library = CclLibrary::Gloo)));
    for sharing in [GpuSharing::Mps, GpuSharing::Mig, GpuSharing::TimeSlice] {
        seen.extend(changes(&["gpu_sharing"], &allreduce(), &allreduce().with(|s| s.sharing = sharing)));
    }
    let rough = allreduce().with(|s| s.environment = Environment::Federated);
    let straggling = |scene: Scene| scene.amid(|stage| stage.file.dynamics.stragglers = 20.0);
    seen.extend(changes(&["environment"], &straggling(allreduce()), &straggling(rough)));
    let faulty = || allreduce().amid(|stage| stage.file.dynamics.faults = 500.0);
    seen.extend(changes(&["pipeline_template"], &faulty(), &faulty().with(|s| s.template = Some(true))));
    let tolerant = faulty().with(|s| s.fault_tolerance = FaultTolerance::Ftar);
    seen.extend(changes(&["fault_tolerance"], &faulty(), &tolerant));
    let forced = allreduce().with(|s| s.overrides.set("NCCL_PROTO", "Simple").unwrap());
    seen.extend(changes(&["nccl_cost", "nccl_available"], &allreduce(), &forced));
    seen
}

fn of_calls() -> Vec<&'static str> {
    let mut seen = Vec::new();
    let same = || call(|_| {});
    seen.extend(changes(&["collective"], &same(), &call(|c| c.collective = Collective::AllGather)));
    seen.extend(changes(&["log2_bytes", "effective_bytes"], &same(), &call(|c| c.bytes = 4 * MIB)));
    seen.extend(changes(&["pipelined_ops"], &same(), &call(|c| c.pipelined = 8)));
    let overlapped = call(|c| (c.role, c.beside) = (Role::InterStage, 1e6));
    seen.extend(changes(&["pipeline_role"], &same(), &overlapped));
    let loaded = |class| {
        let scene = call(|c| (c.priority, c.window) = (Some(class), 1e6));
        scene.amid(|stage| stage.file.dynamics.load = 3.0)
    };
    seen.extend(changes(&["coflow_priority"], &loaded(0), &loaded(7)));
    let scheduled = allreduce().with(|setting| setting.runtime = Runtime::Msccl);
    let schedule = ["synthesised_available", "synthesised_cost"];
    seen.extend(changes(&schedule, &allreduce(), &scheduled));
    seen
}

fn of_training() -> Vec<&'static str> {
    let mut seen = Vec::new();
    let plain = || training("gpt2_xl", dp(8), "dgx_h100", |_| {});
    let sharded = training("gpt2_xl", Layout { fsdp: true, ..dp(8) }, "dgx_h100", |_| {});
    seen.extend(changes(&["parallelism"], &plain(), &sharded));
    seen.extend(changes(&["log10_params"], &plain(), &training("bert_large", dp(8), "dgx_h100", |_| {})));
    let deep = Layout { dp: 2, tp: 4, pp: 2, ..Layout::default() };
    let flat = Layout { dp: 4, tp: 4, ..Layout::default() };
    let with = |layout| training("llama3_8b", layout, "dgx_h100", |_| {});
    seen.extend(changes(&["is_3d"], &with(deep), &with(flat)));
    let mut last_stage = with(deep);
    let flops = dynamiccl_env::job::flops_per_us(last_stage.job.cluster.gpu.sm);
    if let dynamiccl_env::job::Source::Training { recipe, stage, program, .. } = &mut last_stage.job.source {
        *stage = 1;
        *program = std::sync::Arc::new(dynamiccl_env::workload::iteration(recipe, 1, true, flops).unwrap());
    }
    seen.extend(changes(&["pipeline_stage"], &with(deep), &last_stage));
    let compressed = |method| training("gpt2_xl", dp(8), "dgx_h100", |r| r.compression = method);
    for method in [Compression::Fp16, Compression::Int8, Compression::TopK, Compression::LowRank] {
        seen.extend(changes(&["compression", "compression_rate"], &plain(), &compressed(method)));
    }
    let straggling = |mode| {
        let scene = training("gpt2_xl", dp(8), "dgx_h100", |r| r.sync = mode);
        scene.amid(|stage| stage.file.dynamics.stragglers = 500.0)
    };
    seen.extend(changes(&["sync_mode"], &straggling(SyncMode::Bsp), &straggling(SyncMode::Async)));
    seen
}

#[test]
fn every_cause_of_a_context_changes_a_time() {
    let seen: Vec<_> =
        [of_machines(), of_settings(), of_calls(), of_training()].into_iter().flatten().collect();
    let context = FEATURES.iter().filter(|feature| feature.part != Part::History);
    // Tau has a test of its own: it takes many calls to see how often replicas synchronise.
    let named = |name: &&str| seen.contains(name) || *name == "local_tau";
    let missed: Vec<_> = context.map(|feature| feature.name).filter(|name| !named(name)).collect();
    assert!(missed.is_empty(), "nobody changes the cause of {missed:?}");
}

/// A choice in the first call and what it changes: the feature in the second observation, and a time.
fn choice_changes(name: &str, scene: &Scene, head: usize, index: u8) {
    let run = |chosen: Option<u8>| {
        scene.act(5, 3, |call, _, mut own| {
            if let (0, Some(index)) = (call, chosen) {
                own.choice[head] = index;
            }
            own
        })
    };
    let (own, other) = (run(None), run(Some(index)));
    assert_ne!(numbers(&own[1], name), numbers(&other[1], name), "{name}");
    assert_ne!(own[0].report.ran.unwrap().micros, other[0].report.ran.unwrap().micros, "{name}");
}

#[test]
fn what_was_chosen_is_remembered_and_matters() {
    choice_changes("last_pair", &allreduce(), 1, 5);
    choice_changes("last_channels", &allreduce(), 2, 1);
    choice_changes("last_launched", &allreduce(), 2, 1);
    let large = call(|c| c.bytes = 256 * MIB);
    choice_changes("last_chunk", &large, 3, 1);
    let ring = repeated("dgx_a100", 1, Planned::alone(Collective::AllGather, 64 * MIB, Role::Unknown));
    choice_changes("last_threads", &ring, 4, 1);
    let plain = allreduce().run(5, 3);
    let passed = allreduce().with(|s| s.in_network = Some(true)).run(5, 3);
    assert_ne!(numbers(&plain[1], "last_path"), numbers(&passed[1], "last_path"));
}

/// Many channels leave queues behind that the next call meets.
#[test]
fn own_channels_congest_the_network_for_the_calls_after() {
    let scene = repeated("a100_8_tcp25g", 4, Planned::alone(Collective::AllReduce, 8 * MIB, Role::Unknown));
    let scene = scene.amid(|stage| stage.file.dynamics.congestion = 0.5);
    let with = |index: u8| {
        scene.act(5, 40, |call, _, mut own| {
            own.choice[2] = if call < 39 { index } else { 1 };
            own
        })
    };
    let (few, many) = (with(1), with(9));
    assert!(many[39].report.congestion > few[39].report.congestion);
    assert!(many[39].report.ran.unwrap().micros > few[39].report.ran.unwrap().micros);
    assert!(
        many[39].report.own.unwrap().micros == few[39].report.own.unwrap().micros,
        "NCCL's time is exogenous"
    );
}

#[test]
fn the_rhythm_follows_how_often_a_kind_of_call_comes() {
    let layout = Layout { dp: 4, tp: 2, ..Layout::default() };
    let local = |tau| {
        let scene = training("bert_large", layout, "dgx_h100", |r| (r.sync, r.tau) = (SyncMode::Local, tau));
        scene.run(3, 1200)
    };
    let (often, seldom) = (local(1), local(8));
    let of = |run: &[Seen], name| -> Vec<_> { run.iter().map(|seen| numbers(seen, name)).collect() };
    assert_ne!(of(&often, "rhythm"), of(&seldom, "rhythm"));
    assert_ne!(of(&often, "local_tau"), of(&seldom, "local_tau"));
    let synchronised = |run: &[Seen]| run.iter().filter(|seen| seen.report.role == Role::InterStage).count();
    assert!(synchronised(&often) > 2 * synchronised(&seldom));
    assert!(differ_in_time(&often, &seldom));
}

#[test]
fn feedback_follows_the_hidden_world() {
    let measured = ["last_time", "expected_time", "cusum", "reconstruction_error", "congestion"];
    let scene = allreduce().amid(|stage| stage.file.dynamics.load = 2.0);
    let (one, other) = (scene.run(1, 80), scene.run(2, 80));
    for name in measured {
        let of = |run: &[Seen]| -> Vec<_> { run.iter().map(|seen| numbers(seen, name)).collect() };
        assert_ne!(of(&one), of(&other), "{name}");
        assert!(one.iter().any(|seen| numbers(seen, name) != [0.0]), "{name} is always 0");
    }
    let mut seldom = allreduce();
    seldom.job.feedback_every = Some(4);
    let run = seldom.run(1, 20);
    let arrived = |seen: &&Seen| numbers(seen, "has_feedback") == [1.0];
    assert_eq!(run.iter().filter(arrived).count(), 5);
    assert!(run.iter().any(|seen| numbers(seen, "staleness") != numbers(&run[1], "staleness")));
    let mut never = allreduce();
    never.job.feedback_every = None;
    assert!(never.run(1, 20).iter().all(|seen| numbers(seen, "has_feedback") == [0.0]));
}

#[test]
fn nothing_is_told_where_a_job_says_nothing() {
    let mut silent = allreduce();
    silent.job.shown = dynamiccl_env::job::Shown::NOTHING;
    let (told, untold) = (&allreduce().run(1, 1)[0], &silent.run(1, 1)[0]);
    for name in ["gpu", "topology_class", "gpu_sharing", "environment", "fault_tolerance"] {
        let unknown = numbers(untold, name);
        assert_eq!(unknown[0], 1.0, "{name}");
        assert_ne!(unknown, numbers(told, name), "{name}");
    }
    for name in ["log2_ranks", "log2_nodes", "nccl_cost", "collective"] {
        assert_eq!(numbers(told, name), numbers(untold, name), "{name}");
    }
    assert_eq!(told.report.own.unwrap().micros, untold.report.own.unwrap().micros);
}

/// Ranks of different stages that call together are told the same, or their policies could differ.
#[test]
fn ranks_of_one_communicator_are_told_the_same() {
    use dynamiccl_env::workload::Group;
    let layout = Layout { dp: 2, tp: 2, pp: 4, ..Layout::default() };
    let scene = training("llama3_8b", layout, "dgx_h100", |_| {});
    let told = |group: Group, at: u8| {
        let mut job = scene.job.clone();
        if let dynamiccl_env::job::Source::Training { stage, .. } = &mut job.source {
            *stage = at;
        }
        job.context(&layout.placement(group, 8), Some(group), &job.workload())
    };
    for group in Group::ALL.into_iter().filter(|&group| layout.size(group) > 1) {
        let same = (1..4).all(|stage| told(group, stage) == told(group, 0));
        assert_eq!(same, group.spans_stages(), "{group}");
    }
}

/// A fault stalls every setting alike, whoever asks.
#[test]
fn the_oracle_and_the_call_have_the_same_stall() {
    use dynamiccl_env::gym::{Env, Observation, RandomActor};
    let scene = allreduce().amid(|stage| stage.file.dynamics.faults = 1000.0);
    let mut env = scene.env();
    let mut observation = Observation::new(env.spaces());
    env.reset(Some(1), &mut observation).unwrap();
    for _ in 0..5 {
        let own = env.settings()[0];
        let step = env.step(&RandomActor::new(1).act(&observation), &mut observation).unwrap();
        assert_eq!(step.info.last.unwrap().own.unwrap(), own);
    }
}
