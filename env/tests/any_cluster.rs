//! Whatever a cluster looks like, NCCL's decision answers: no panic, no NaN, nothing out of bounds.

use dynamiccl_env::cluster::{Cluster, CpuArch, CpuVendor};
use dynamiccl_env::nccl::graph::{Graph, Graphs, PathType};
use dynamiccl_env::nccl::{CommSpec, Communicator, Realised, Version, chunk_ceiling};
use dynamiccl_spec::table::UNAVAILABLE;
use dynamiccl_spec::{
    ChannelChoice, ChunkChoice, Collective, CostTable, Knobs, Overrides, Pair, ThreadChoice,
};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Mostly sensible, sometimes what only a broken file or machine would give.
fn rate() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => 0.01f32..2000.0,
        1 => Just(0.0f32),
        1 => select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 1e-38, 1e38]),
    ]
}

fn graph() -> impl Strategy<Value = Graph> {
    let channels = prop_oneof![8 => 0u32..=64, 1 => any::<u32>()];
    let declared = prop_oneof![4 => Just(0.0f32), 4 => 0.0f32..200.0, 1 => rate()];
    let kind = (select(PathType::ALL.to_vec()), select(PathType::ALL.to_vec()), 0u32..8, any::<bool>());
    (channels, rate(), rate(), kind, declared).prop_map(
        |(channels, bw_intra, bw_inter, kind, latency_inter)| {
            let (type_intra, type_inter, pattern, same_channels) = kind;
            Graph {
                channels,
                bw_intra,
                bw_inter,
                type_intra,
                type_inter,
                pattern,
                same_channels,
                latency_inter,
            }
        },
    )
}

fn graphs() -> impl Strategy<Value = Graphs> {
    (graph(), graph(), option::of(graph()), option::of(graph()), option::of(graph())).prop_map(
        |(ring, tree, nvls, collnet_chain, collnet_direct)| Graphs {
            ring,
            tree,
            nvls,
            collnet_chain,
            collnet_direct,
        },
    )
}

fn overrides() -> impl Strategy<Value = Overrides> {
    let count = || option::weighted(0.2, 0u32..2000);
    (count(), count(), count(), count(), count(), option::weighted(0.2, any::<bool>()), count()).prop_map(
        |(threads, ll128_threads, min_channels, max_channels, nvls_channels, pat, net_overhead_ns)| {
            Overrides {
                threads,
                ll128_threads,
                min_channels,
                max_channels,
                min_ctas: min_channels,
                max_ctas: max_channels,
                nvls_channels,
                pat,
                net_overhead_ns,
                ..Overrides::default()
            }
        },
    )
}

/// 1 to 100,000 ranks, and sometimes any number at all.
fn size() -> impl Strategy<Value = (u32, u32)> {
    prop_oneof![
        8 => (1u32..=256).prop_flat_map(|per_node| (1..=100_000 / per_node, Just(per_node))),
        1 => (any::<u32>(), any::<u32>()),
    ]
}

fn comm_spec() -> impl Strategy<Value = CommSpec> {
    let machine = (
        select(vec![50u32, 60, 70, 80, 89, 90, 100, 120]),
        select(vec![CpuVendor::Intel, CpuVendor::Amd, CpuVendor::Mixed, CpuVendor::Other]),
        select(vec![CpuArch::X86, CpuArch::Arm, CpuArch::Power]),
        any::<bool>(),
        rate(),
    );
    (size(), machine, graphs(), any::<bool>(), select(Version::ALL.to_vec()), overrides()).prop_map(
        |(
            (nodes, ranks_per_node),
            (sm, cpu, arch, nvswitch, nic_gbps),
            graphs,
            collnet,
            version,
            overrides,
        )| {
            CommSpec {
                nodes,
                ranks_per_node,
                sm,
                cpu,
                arch,
                nvswitch,
                nic_gbps,
                graphs,
                collnet,
                version,
                overrides,
            }
        },
    )
}

/// 1 B to 1 TiB evenly over powers of two, and the corners of what is promised.
fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0u32..=40).prop_flat_map(|power| 1u64 << power..=2u64 << power),
        1 => select(vec![0u64, 1, 1 << 61, (1 << 62) - 1, 1 << 62]),
    ]
}

fn pipe_ops() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1u32..100, 1 => select(vec![0, u32::MAX])]
}

fn collective() -> impl Strategy<Value = Collective> {
    select(Collective::ALL.to_vec())
}

fn knobs() -> impl Strategy<Value = Knobs> {
    let channels = select(ChannelChoice::all().collect::<Vec<_>>());
    let threads = select(ThreadChoice::all().collect::<Vec<_>>());
    (channels, select(ChunkChoice::ALL.to_vec()), threads).prop_map(|(channels, chunk, threads)| Knobs {
        channels,
        chunk,
        threads,
        ..Knobs::OWN
    })
}

fn check_table(table: &CostTable) -> Result<(), TestCaseError> {
    for &cost in table.0.as_flattened() {
        prop_assert!(cost == UNAVAILABLE || (cost.is_finite() && cost >= 0.0), "{cost}");
    }
    Ok(())
}

/// NCCL rounds the traffic per channel down, so the remainder may take one channel more than asked for.
fn at_most(max_channels: u32) -> u32 {
    max_channels + 1
}

fn check_realised(collective: Collective, done: &Realised) -> Result<(), TestCaseError> {
    prop_assert!((1..=64).contains(&done.channels), "{done:?}");
    prop_assert!(done.channels <= at_most(done.max_channels), "{done:?}");
    let unit = done.pair.protocol.grain();
    prop_assert!(done.chunk_bytes >= unit && done.chunk_bytes.is_multiple_of(unit), "{done:?}");
    // NCCL's own chunk may be above the ceiling for plugins, but never above twice it (Blackwell's NVLS).
    prop_assert!(done.chunk_bytes <= 2 * chunk_ceiling(collective, done.pair), "{done:?}");
    prop_assert!((96..=640).contains(&done.threads) && done.threads.is_multiple_of(32), "{done:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_communicator_answers_any_call(
        spec in comm_spec(),
        collective in collective(),
        bytes in bytes(),
        pipe_ops in pipe_ops(),
        knobs in knobs(),
    ) {
        let communicator = Communicator::new(&spec);
        prop_assert!((1..=64).contains(&communicator.channels()));
        prop_assert!(Pair::all().all(|pair| communicator.channel_limit(pair) <= 64));

        let table = communicator.cost_table(collective, bytes, pipe_ops);
        check_table(&table)?;
        if Collective::TUNED.contains(&collective) {
            for pair in Pair::all() {
                let realised = communicator.realise(collective, bytes, &table, &Knobs { pair: Some(pair), ..knobs });
                prop_assert_eq!(realised.is_some(), table.get(pair).is_some());
                if let Some(done) = realised {
                    prop_assert_eq!(done.pair, pair);
                    check_realised(collective, &done)?;
                }
            }
        } else {
            prop_assert!(table.mask().is_empty());
        }
        prop_assert_eq!(
            communicator.realise(collective, bytes, &table, &knobs).is_some(),
            communicator.decide(collective, bytes, pipe_ops).is_some()
        );
    }

    #[test]
    fn nccls_own_knobs_realise_as_its_decision(
        spec in comm_spec(),
        collective in collective(),
        bytes in bytes(),
    ) {
        let communicator = Communicator::new(&spec);
        let table = communicator.cost_table(collective, bytes, 1);
        if let Some(decision) = communicator.decide_from(&table, bytes) {
            let done = communicator.realise(collective, bytes, &table, &Knobs::OWN).unwrap();
            let launch = communicator.launch(collective, decision.pair, bytes, decision.channels, ChunkChoice::Own);
            prop_assert_eq!((done.pair, done.max_channels), (decision.pair, decision.channels));
            prop_assert_eq!((done.channels, done.threads), (launch.channels, decision.threads));
            prop_assert_eq!(done.chunk_bytes, launch.chunk_bytes);
            prop_assert!(launch.share.iter().any(|&bytes| bytes > 0), "{launch:?}");
            if !collective.is_sharded() && launch.channels == 1 {
                prop_assert_eq!(launch.share[0], bytes.max(1));
            }
        }
    }

    #[test]
    fn no_byte_is_lost_between_channels(
        name in select(Cluster::names().collect::<Vec<_>>()),
        nodes in 1u32..200,
        collective in select(Collective::TUNED.to_vec()),
        bytes in bytes(),
        channels in 1u32..100,
    ) {
        let Ok(communicator) = Cluster::load(name).unwrap().communicator(nodes, &Default::default()) else {
            return Ok(());
        };
        let parts = if collective.is_sharded() { u64::from(communicator.ranks()) } else { 1 };
        let whole = (bytes / parts).max(1) * parts;
        for (pair, _) in communicator.cost_table(collective, bytes, 1).available() {
            let launch = communicator.launch(collective, pair, bytes, channels, ChunkChoice::Own);
            let middle = launch.share[1] * u64::from(launch.channels.saturating_sub(2));
            prop_assert_eq!(launch.share[0] + middle + launch.share[2], whole, "{} {:?}", pair, launch);
            prop_assert!(launch.channels <= communicator.channel_limit(pair).min(at_most(channels)));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(
        name in select(Cluster::names().collect::<Vec<_>>()),
        cut in any::<prop::sample::Index>(),
        junk in "[\\PC\\n]{0,8}",
    ) {
        let mut text = Cluster::load(name).unwrap().to_toml().unwrap();
        let at = cut.index(text.len());
        if text.is_char_boundary(at) {
            text.insert_str(at, &junk);
            if let Err(error) = Cluster::from_toml("mine.toml", &text) {
                prop_assert!(error.to_string().starts_with("mine.toml: "));
            }
        }
    }
}
