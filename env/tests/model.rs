//! What must hold in every world, on any cluster, for any legal call.

use std::sync::LazyLock;

use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::model::{Call, ConstantsFile, Fabric};
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_spec::{ChannelChoice, ChunkChoice, Collective, Knobs, Pair, ThreadChoice, TopologyClass};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const MOST_RANKS: u32 = 100_000;
/// Room for the last bits of sums in another order.
const ROUNDING: f64 = 1e-9;

/// A communicator of a cluster that nobody built.
#[derive(Debug, Clone)]
struct Case {
    cluster: Cluster,
    nodes: u32,
    sharp: bool,
}

fn factor() -> impl Strategy<Value = f64> {
    (-2.0f64..2.0).prop_map(|exponent| 10f64.powf(exponent))
}

fn case() -> impl Strategy<Value = Case> {
    let names: Vec<&'static str> = Cluster::names().collect();
    let links = (factor(), factor(), 0.0f64..50_000.0, 0.0f64..1000.0, 0.05f64..1.0);
    let class = select(TopologyClass::ALL.to_vec());
    (select(names), links, 1u32..=512, 1u32..=MOST_RANKS, (any::<bool>(), class)).prop_map(
        |(name, (intra, inter, propagation, detour, share), gpus, nodes, (sharp, class))| {
            let mut cluster = Cluster::load(name).expect("a built-in cluster");
            cluster.intra.bandwidth *= intra;
            cluster.gpus_per_node = gpus;
            if let Some(link) = cluster.inter.as_mut() {
                link.bandwidth *= inter;
                link.propagation = propagation;
                link.class = class;
            }
            for level in &mut cluster.tiers {
                level.hop_latency = detour;
                level.bandwidth_share = share;
            }
            let most = MOST_RANKS / gpus;
            let nodes = match (&cluster.graphs.single, &cluster.graphs.multi) {
                (Some(_), None) => 1,
                (None, _) => nodes.clamp(2, most.max(2)),
                _ => nodes.clamp(1, most.max(1)),
            };
            cluster.gpus_per_node = if nodes == 1 { gpus.max(2) } else { gpus };
            Case { cluster, nodes, sharp }
        },
    )
}

fn knobs() -> impl Strategy<Value = Knobs> {
    let channels = select(ChannelChoice::all().collect::<Vec<_>>());
    let threads = select(ThreadChoice::all().collect::<Vec<_>>());
    let pair = option::of(select(Pair::all().collect::<Vec<_>>()));
    (pair, channels, select(ChunkChoice::ALL.to_vec()), threads)
        .prop_map(|(pair, channels, chunk, threads)| Knobs { pair, channels, chunk, threads, ..Knobs::OWN })
}

fn bytes() -> impl Strategy<Value = u64> {
    (0u32..=40, any::<u64>())
        .prop_map(|(octave, noise)| ((1u64 << octave) + noise % (1u64 << octave)).min(1 << 40))
}

fn collective() -> impl Strategy<Value = Collective> {
    select(Collective::TUNED.to_vec())
}

fn world(seed: Option<u64>) -> World {
    static CONSTANTS: LazyLock<ConstantsFile> = LazyLock::new(ConstantsFile::full);
    seed.map_or_else(|| World::nominal(&CONSTANTS), |seed| World::draw(&CONSTANTS, seed))
}

impl Case {
    fn simulator(&self, world: &World) -> Simulator {
        let options = CommOptions { sharp: self.sharp, ..CommOptions::default() };
        Simulator::new(&self.cluster, self.nodes, &options, world).expect("graphs for this node count")
    }

    fn fabric(&self, world: &World) -> Fabric {
        let heads = self.simulator(world).communicator().nvls_heads();
        Fabric::new(&self.cluster, self.nodes, self.cluster.gpus_per_node, heads, world.constants())
    }
}

/// The call that knobs become, where their pair is available.
fn call(simulator: &Simulator, collective: Collective, bytes: u64, knobs: &Knobs) -> Option<Call> {
    let table = simulator.communicator().cost_table(collective, bytes, 1);
    let realised = simulator.communicator().realise(collective, bytes, &table, knobs)?;
    Some(Call::of(collective, bytes, &realised))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_time_is_a_positive_number(
        case in case(), collective in collective(), bytes in bytes(), knobs in knobs(), seed in option::of(any::<u64>()),
    ) {
        let world = world(seed);
        let simulator = case.simulator(&world);
        let table = simulator.communicator().cost_table(collective, bytes, 1);
        if let Some(realised) = simulator.communicator().realise(collective, bytes, &table, &knobs) {
            let micros = simulator.micros(collective, bytes, &realised);
            prop_assert!(micros.is_finite() && micros > 0.0, "{micros} for {realised:?}");
            if let Some(mut weather) = world.weather(&case.cluster, case.nodes) {
                let conditions = weather.advance(1e9);
                let fabric = simulator.fabric().under(&conditions);
                let call = Call::of(collective, bytes, &realised);
                let micros = simulator.micros_of(&fabric, &call) + conditions.stall;
                let felt = weather.luck().apply(micros, simulator.modes(bytes, &realised));
                prop_assert!(felt.is_finite() && felt > 0.0, "{felt} under {conditions:?}");
            }
        }
    }

    #[test]
    fn more_bytes_never_take_less_time_in_the_nominal_world(
        case in case(), collective in collective(), bytes in bytes(), more in 1.0f64..64.0, knobs in knobs(),
    ) {
        let world = world(None);
        if let Some(call) = call(&case.simulator(&world), collective, bytes, &knobs) {
            let fabric = case.fabric(&world);
            let larger = Call { bytes: (bytes as f64 * more) as u64 + 1, ..call };
            let (before, after) = (fabric.time(&call), fabric.time(&larger));
            prop_assert!(after >= before * (1.0 - ROUNDING), "{before} then {after} for {call:?} and {} B", larger.bytes);
        }
    }

    #[test]
    fn a_better_link_is_never_slower_in_any_world(
        case in case(), collective in collective(), bytes in bytes(), knobs in knobs(), seed in option::of(any::<u64>()),
        wider in prop::array::uniform2(1.0f64..10.0), sooner in prop::array::uniform3(1.0f64..10.0),
    ) {
        let world = world(seed);
        let simulator = case.simulator(&world);
        let table = simulator.communicator().cost_table(collective, bytes, 1);
        if let Some(realised) = simulator.communicator().realise(collective, bytes, &table, &knobs) {
            let mut better = case.clone();
            better.cluster.intra.bandwidth *= wider[0];
            better.cluster.calibration.intra_latency /= sooner[0];
            better.cluster.calibration.inter_latency /= sooner[1];
            if let Some(link) = better.cluster.inter.as_mut() {
                link.bandwidth *= wider[1];
                link.propagation /= sooner[2];
            }
            let before = simulator.micros(collective, bytes, &realised);
            let after = better.simulator(&world).micros(collective, bytes, &realised);
            prop_assert!(after <= before * (1.0 + ROUNDING), "{before} then {after} for {realised:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_best_knobs_are_never_slower_than_nccls(
        case in case(), collective in collective(), bytes in bytes(), seed in option::of(any::<u64>()),
    ) {
        let simulator = case.simulator(&world(seed));
        if let Some(own) = simulator.own(collective, bytes) {
            let best = simulator.best(collective, bytes).expect("NCCL's own is a setting");
            prop_assert!(best.micros <= own.micros);
            let fastest = simulator.settings(collective, bytes).iter().map(|s| s.micros).fold(own.micros, f64::min);
            prop_assert_eq!(best.micros, fastest);
        }
    }

    #[test]
    fn the_same_seed_is_the_same_world_to_the_bit(
        case in case(), collective in collective(), bytes in bytes(), seed in any::<u64>(),
    ) {
        let micros = |seed| -> Vec<u64> {
            let simulator = case.simulator(&world(Some(seed)));
            simulator.settings(collective, bytes).iter().map(|s| s.micros.to_bits()).collect()
        };
        let first = micros(seed);
        prop_assert_eq!(&first, &micros(seed));
        if !first.is_empty() {
            prop_assert_ne!(&first, &micros(seed.wrapping_add(1)));
        }
    }
}

#[test]
fn aliases_are_listed_once_with_the_largest_request() {
    let cluster = Cluster::load("tcp25g_1gpu").unwrap();
    let simulator = Simulator::new(&cluster, 4, &CommOptions::default(), &world(None)).unwrap();
    let settings = simulator.settings(Collective::AllReduce, 1 << 20);
    let launches: std::collections::BTreeSet<_> = settings
        .iter()
        .map(|s| (s.realised.pair, s.realised.channels, s.realised.threads, s.realised.chunk_bytes))
        .collect();
    assert_eq!(launches.len(), settings.len());
    let most = settings.iter().filter_map(|s| s.knobs.channels.requested()).max();
    assert_eq!(most, Some(64), "two channels is all there is, so the largest request stands for them");
}

#[test]
fn a_better_machine_is_better_in_numbers() {
    let micros = |name: &str, bytes| {
        let cluster = Cluster::load(name).unwrap();
        let nodes = if cluster.graphs.single.is_some() { 1 } else { 4 };
        let simulator = Simulator::new(&cluster, nodes, &CommOptions::default(), &world(None)).unwrap();
        simulator.own(Collective::AllReduce, bytes).unwrap().micros
    };
    for bytes in [1 << 10, 1 << 20, 1 << 30] {
        let tiers = ["dgx_h100", "ib400g_1gpu", "tcp25g_1gpu"].map(|name| micros(name, bytes));
        assert!(tiers.is_sorted(), "{tiers:?} at {bytes} B");
    }
    let ratio = micros("tcp10g_1gpu", 1 << 30) / micros("dgx_h100", 1 << 30);
    assert!(ratio > 100.0, "{ratio}");
}

/// Whatever the technology: with what the CPU adds for each channel, which no hop goes without.
#[test]
fn a_hop_takes_what_the_file_says_and_the_cpus_part_at_least() {
    let world = World::nominal(&ConstantsFile::full());
    for name in Cluster::names() {
        let cluster = Cluster::load(name).unwrap();
        let moved = (2..=4).filter_map(|tier| cluster.clone().moved_to(tier).ok());
        for cluster in moved.chain([cluster.clone()]) {
            let Some((inter, hop)) = cluster.inter.as_ref().and_then(|inter| Some((inter, inter.hop?)))
            else {
                continue;
            };
            let Ok(simulator) = Simulator::new(&cluster, 2, &CommOptions::default(), &world) else {
                continue;
            };
            let Fabric { inter: taken, .. } = simulator.fabric();
            for (protocol, hop) in hop.into_iter().enumerate() {
                let stated = hop * cluster.calibration.inter_latency + inter.propagation;
                let serial = taken.serial[protocol];
                let taken = taken.alpha[protocol] + serial;
                let least = stated.max(serial + inter.propagation);
                assert!((taken - least).abs() < 1e-6, "{}: {taken}, not {least}", cluster.name);
            }
        }
    }
}
