//! What lies around a call changes its time through a mechanism of its own, and nothing else does.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::model::{Call, Conditions, Constants, ConstantsFile, Fabric, Surroundings};
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_spec::{Algorithm, CclLibrary, Collective, GpuSharing, TopologyClass};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const SIZES: [u64; 5] = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 30];
/// Room for the last bits of sums in another order.
const ROUNDING: f64 = 1e-9;

static NOMINAL: LazyLock<Constants> = LazyLock::new(|| ConstantsFile::full().nominal());

fn wired(name: &str, class: TopologyClass) -> Cluster {
    let mut cluster = Cluster::load(name).unwrap();
    cluster.inter.as_mut().expect("a network").class = class;
    cluster
}

fn simulator(cluster: &Cluster, nodes: u32, ranks_per_node: Option<u32>) -> Simulator {
    let options = CommOptions { ranks_per_node, ..CommOptions::default() };
    Simulator::new(cluster, nodes, &options, &World::nominal(&ConstantsFile::full())).unwrap()
}

/// Every setting of a few calls.
fn calls(simulator: &Simulator) -> Vec<Call> {
    let mut calls = Vec::new();
    for collective in Collective::TUNED {
        for bytes in SIZES {
            let settings = simulator.settings(collective, bytes);
            calls.extend(settings.iter().map(|s| Call::of(collective, bytes, &s.realised)));
        }
    }
    calls
}

fn times(fabric: &Fabric, calls: &[Call]) -> Vec<f64> {
    calls.iter().map(|call| fabric.time(call)).collect()
}

fn bits(times: Vec<f64>) -> Vec<u64> {
    times.into_iter().map(f64::to_bits).collect()
}

fn amid(simulator: &Simulator, surroundings: Surroundings) -> Fabric {
    simulator.fabric().amid(&surroundings, &NOMINAL.around)
}

/// The fastest call of one size.
fn best(fabric: &Fabric, calls: &[Call], collective: Collective, bytes: u64) -> Call {
    let same = calls.iter().filter(|c| c.collective == collective && c.bytes == bytes);
    *same.min_by(|a, b| fabric.time(a).total_cmp(&fabric.time(b))).expect("a setting")
}

#[test]
fn a_fat_tree_an_unknown_class_and_nothing_around_change_no_bit() {
    for (name, nodes) in
        [("dgx_h100", 1), ("dgx_h100", 4), ("aws_p4d", 8), ("tcp25g_1gpu", 4), ("h200_shared", 4)]
    {
        let plain = simulator(&Cluster::load(name).unwrap(), nodes, None);
        let calls = calls(&plain);
        let expected = bits(times(plain.fabric(), &calls));
        for class in [TopologyClass::FatTree, TopologyClass::Unknown] {
            assert_eq!(expected, bits(times(simulator(&wired(name, class), nodes, None).fabric(), &calls)));
        }
        assert_eq!(expected, bits(times(&amid(&plain, Surroundings::ALONE), &calls)), "{name}");
        let unsaid = Surroundings {
            sharing: GpuSharing::Unknown,
            library: CclLibrary::Unknown,
            ..Surroundings::ALONE
        };
        assert_eq!(expected, bits(times(&amid(&plain, unsaid), &calls)), "{name}");
        let alone: Vec<f64> = calls.iter().map(|call| plain.micros_of(plain.fabric(), call)).collect();
        assert_eq!(expected, bits(alone), "{name}");
    }
}

#[test]
fn every_class_prefers_what_its_wiring_is_good_at() {
    let fat = simulator(&wired("dgx_a100", TopologyClass::FatTree), 16, None);
    let calls = calls(&fat);
    let mut switched = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for &class in TopologyClass::ALL {
        let other = simulator(&wired("dgx_a100", class), 16, None);
        for bytes in SIZES {
            let pick = |s: &Simulator| best(s.fabric(), &calls, Collective::AllReduce, bytes).pair.algorithm;
            if pick(&other) != pick(&fat) {
                switched.insert(class);
            }
        }
        seen.insert(bits(times(other.fabric(), &calls)));
    }
    assert_eq!(
        seen.len(),
        TopologyClass::ALL.len() - 1,
        "every class but the unknown one has times of its own"
    );
    assert!(
        switched.contains(&TopologyClass::Torus) && switched.contains(&TopologyClass::SipOcs),
        "{switched:?}"
    );
    let ratio = |class, algorithm: Algorithm| {
        let other = simulator(&wired("dgx_a100", class), 16, None);
        let call = calls
            .iter()
            .find(|c| {
                c.pair.algorithm == algorithm && c.bytes == 1 << 20 && c.collective == Collective::AllReduce
            })
            .unwrap();
        other.fabric().time(call) / fat.fabric().time(call)
    };
    assert!(
        ratio(TopologyClass::Torus, Algorithm::Ring) < 1.0
            && ratio(TopologyClass::Torus, Algorithm::Tree) > 1.0
    );
    assert!(
        ratio(TopologyClass::BCube, Algorithm::Ring) > 1.0
            && ratio(TopologyClass::BCube, Algorithm::Tree) == 1.0
    );
    assert!(ratio(TopologyClass::TopoOpt, Algorithm::Tree) < ratio(TopologyClass::SipOcs, Algorithm::Tree));
    let alltoall = |class| {
        simulator(&wired("dgx_a100", class), 16, None).fabric().transfer(Collective::AllToAll, 1 << 30)
    };
    assert!(alltoall(TopologyClass::Torus) > 1.5 * alltoall(TopologyClass::FatTree));
}

#[test]
fn trees_on_a_torus_get_longer_with_its_side() {
    let detour = |nodes, class| simulator(&wired("dgx_a100", class), nodes, None).fabric().tree_detour;
    let edge = |nodes: u32| {
        let further = detour(nodes, TopologyClass::Torus) - detour(nodes, TopologyClass::FatTree);
        further / f64::from(nodes.ilog2())
    };
    assert!((edge(256) / edge(16) - 4.0).abs() < 1e-9, "{} {}", edge(256), edge(16));
}

#[test]
fn time_slicing_is_as_slow_as_it_was_measured() {
    let shared = simulator(&Cluster::load("h200_shared").unwrap(), 2, None);
    let own = shared.own(Collective::AllReduce, 1024).unwrap();
    let call = Call::of(Collective::AllReduce, 1024, &own.realised);
    let sliced = amid(&shared, Surroundings { sharing: GpuSharing::TimeSlice, ..Surroundings::ALONE });
    // 47 µs under MPS, 4,500 µs without.
    let (before, after) = (shared.fabric().time(&call), sliced.time(&call));
    assert!(before > 30.0 && before < 70.0, "{before}");
    assert!(after > 3500.0 && after < 5500.0, "{after}");
    let eight = simulator(&Cluster::load("h200_shared").unwrap(), 8, None);
    let of = |algorithm: Algorithm| {
        let all = calls(&eight);
        let call = *all
            .iter()
            .find(|c| c.pair.algorithm == algorithm && c.collective == Collective::AllReduce)
            .unwrap();
        amid(&eight, Surroundings { sharing: GpuSharing::TimeSlice, ..Surroundings::ALONE }).time(&call)
    };
    assert!(of(Algorithm::Ring) > 1.5 * of(Algorithm::Tree), "fourteen steps wait more often than six");
}

#[test]
fn sharing_slows_channels_in_its_own_way() {
    let node = simulator(&Cluster::load("dgx_h100").unwrap(), 1, None);
    let calls = calls(&node);
    let plain = times(node.fabric(), &calls);
    let mut seen = BTreeSet::from([bits(plain.clone())]);
    for sharing in [GpuSharing::Mps, GpuSharing::Mig, GpuSharing::TimeSlice] {
        let slower = times(&amid(&node, Surroundings { sharing, ..Surroundings::ALONE }), &calls);
        for ((after, before), call) in slower.iter().zip(&plain).zip(&calls) {
            // Sums of other parts may round differently.
            assert!(
                *after >= before * (1.0 - 1e-12),
                "{sharing}: {call:?} takes {after} µs instead of {before}"
            );
        }
        assert!(seen.insert(bits(slower)), "{sharing}");
    }
}

#[test]
fn siblings_divide_only_what_they_share() {
    let at = |name: &str, ranks_per_node, siblings| {
        let simulator = simulator(&Cluster::load(name).unwrap(), 4, Some(ranks_per_node));
        amid(&simulator, Surroundings { siblings, ..Surroundings::ALONE })
    };
    // Eight groups of one GPU each, each with a NIC of its own.
    assert_eq!(at("dgx_h100", 1, 8).inter_bandwidth, at("dgx_h100", 1, 1).inter_bandwidth);
    assert!(at("dgx_h100", 8, 1).inter_bandwidth > 7.9 * at("dgx_h100", 1, 1).inter_bandwidth);
    // Eight groups on one NIC.
    let (alone, crowded) = (at("a100_8_tcp100g", 1, 1), at("a100_8_tcp100g", 1, 8));
    assert!((alone.inter_bandwidth / crowded.inter_bandwidth - 8.0).abs() < 1e-9);
    assert!(crowded.host_bandwidth < alone.host_bandwidth && crowded.lanes == 1.0);
    assert_eq!(at("dgx_h100", 4, 8).lanes, 1.0);
    assert_eq!(at("dgx_h100", 4, 2).lanes, 4.0);
}

#[test]
fn a_priority_decides_how_much_of_a_load_is_seen() {
    let network = simulator(&Cluster::load("aws_p5").unwrap(), 4, None);
    let own = network.own(Collective::AllReduce, 1 << 30).unwrap();
    let call = Call::of(Collective::AllReduce, 1 << 30, &own.realised);
    let busy = Conditions { load: 0.6, ..Conditions::CALM };
    let at = |priority, conditions: &Conditions| {
        amid(&network, Surroundings { priority, ..Surroundings::ALONE }).under(conditions).time(&call)
    };
    let classes: Vec<f64> = (0..8).map(|class| at(Some(class), &busy)).collect();
    assert!(classes.windows(2).all(|two| two[1] < two[0]), "{classes:?}");
    let (plain, calm) = (at(None, &busy), at(None, &Conditions::CALM));
    assert!(
        classes[0] > plain && classes[7] < plain && classes[7] < 1.2 * calm,
        "{classes:?} {plain} {calm}"
    );
    assert_eq!(at(Some(0), &Conditions::CALM), calm);
    let worst = Conditions { load: 0.9, ..Conditions::CALM };
    assert!(at(Some(0), &worst).is_finite() && at(Some(0), &worst) > at(None, &worst));
}

#[test]
fn settings_that_are_best_alone_are_not_beside_compute() {
    let node = simulator(&Cluster::load("dgx_h100").unwrap(), 1, None);
    let calls = calls(&node);
    let busy = amid(&node, Surroundings { beside_compute: true, ..Surroundings::ALONE });
    let mut changed = 0;
    for collective in Collective::TUNED {
        for bytes in SIZES {
            let (alone, beside) =
                (best(node.fabric(), &calls, collective, bytes), best(&busy, &calls, collective, bytes));
            changed += u32::from(busy.time(&alone) > 1.01 * busy.time(&beside));
        }
    }
    assert!(changed > 0);
}

#[test]
fn libraries_are_ordered_as_known() {
    for nodes in [1, 4] {
        let network = simulator(&Cluster::load("dgx_h100").unwrap(), nodes, None);
        let own = network.own(Collective::AllReduce, 1 << 28).unwrap();
        let call = Call::of(Collective::AllReduce, 1 << 28, &own.realised);
        let at = |library| amid(&network, Surroundings { library, ..Surroundings::ALONE }).time(&call);
        let nccl = at(CclLibrary::Nccl);
        assert!(
            at(CclLibrary::Gloo) > at(CclLibrary::Mpi)
                && at(CclLibrary::Mpi) > nccl
                && at(CclLibrary::Other) > nccl
        );
        assert_eq!(at(CclLibrary::Msccl), nccl);
        assert!(at(CclLibrary::Taccl) < nccl && at(CclLibrary::Sccl) < nccl);
    }
}

#[test]
fn calls_of_one_group_share_their_launch() {
    for (name, nodes) in [("dgx_h100", 1), ("dgx_h100", 4), ("tcp25g_1gpu", 4)] {
        let simulator = simulator(&Cluster::load(name).unwrap(), nodes, None);
        let fabric = simulator.fabric();
        for call in calls(&simulator) {
            let at = |pipelined| fabric.time(&Call { pipelined, ..call });
            let [one, two, many] = [1, 2, 1000].map(at);
            assert!(one > two && two > many && many > 0.0, "{one} {two} {many} for {call:?}");
            let (half, nearly) = (one - two, one - many);
            assert!((nearly / half - 2.0 * 0.999).abs() < 1e-6, "{half} {nearly} for {call:?}");
        }
    }
}

#[test]
fn switches_that_aggregate_help_where_the_network_is_slow() {
    let slow = simulator(&Cluster::load("a100_8_tcp100g").unwrap(), 8, None);
    let own = |bytes| slow.own(Collective::AllReduce, bytes).unwrap().micros;
    assert!(slow.fabric().in_network(1 << 28).unwrap() < own(1 << 28));
    assert_eq!(simulator(&Cluster::load("dgx_h100").unwrap(), 1, None).fabric().in_network(1 << 20), None);
    // A pool that does not cover the round trip holds a fast network back.
    let fast = simulator(&Cluster::load("dgx_h100").unwrap(), 8, None);
    let mut roomy = *fast.fabric();
    roomy.aggregation.pool *= 10.0;
    assert!(fast.fabric().in_network(1 << 32) > roomy.in_network(1 << 32));
}

#[test]
fn a_part_of_a_node_has_the_graphs_of_a_part() {
    let cluster = Cluster::load("dgx_h100").unwrap();
    let communicator = |nodes, ranks| {
        cluster
            .communicator(nodes, &CommOptions { ranks_per_node: Some(ranks), ..CommOptions::default() })
            .unwrap()
    };
    assert_eq!([1, 2, 4, 8].map(|ranks| communicator(4, ranks).channels()), [4, 8, 16, 16]);
    assert_eq!([2, 4, 8].map(|ranks| communicator(1, ranks).nvls_heads()), [2, 4, 8]);
    // Where there is no such part, the next larger one or the whole node stands in.
    assert_eq!(communicator(4, 3).channels(), communicator(4, 4).channels());
    assert_eq!(communicator(1, 6).nvls_heads(), 8);
}

fn surroundings() -> impl Strategy<Value = Surroundings> {
    let who = (select(GpuSharing::ALL.to_vec()), select(CclLibrary::ALL.to_vec()));
    (who, 0u32..100, option::of(any::<u8>()), any::<bool>()).prop_map(
        |((sharing, library), siblings, priority, beside_compute)| Surroundings {
            sharing,
            library,
            siblings,
            priority,
            beside_compute,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_bandwidth_is_never_slower_whatever_is_around(
        name in select(vec!["dgx_h100", "aws_p4d", "a100_8_tcp25g", "l40s_8pcie", "tcp10g_1gpu"]),
        class in select(TopologyClass::ALL.to_vec()), around in surroundings(), seed in any::<u64>(),
        nodes in 2u32..3000, wider in prop::array::uniform2(1.0f64..10.0), bytes in 0u64..1 << 34, load in 0.0f64..0.9,
    ) {
        let world = World::draw(&ConstantsFile::full(), seed);
        let cluster = wired(name, class);
        let mut better = cluster.clone();
        better.intra.bandwidth *= wider[0];
        better.inter.as_mut().expect("a network").bandwidth *= wider[1];
        let conditions = Conditions { load, ..Conditions::CALM };
        let make = |cluster: &Cluster| {
            let simulator = Simulator::new(cluster, nodes, &CommOptions::default(), &world).unwrap();
            let fabric = simulator.fabric().amid(&around, &world.constants().around).under(&conditions);
            (simulator, fabric)
        };
        let ((simulator, before), (_, after)) = (make(&cluster), make(&better));
        for collective in Collective::TUNED {
            for setting in simulator.settings(collective, bytes.max(1)).iter().take(20) {
                let call = Call { pipelined: 3, ..Call::of(collective, bytes.max(1), &setting.realised) };
                let (slow, fast) = (before.time(&call), after.time(&call));
                prop_assert!(slow.is_finite() && fast > 0.0 && fast <= slow * (1.0 + ROUNDING), "{} {} {:?}", slow, fast, call);
            }
        }
        for collective in [Collective::SendRecv, Collective::AllToAll, Collective::AllToAllV] {
            let (slow, fast) = (before.transfer(collective, bytes), after.transfer(collective, bytes));
            prop_assert!(slow.is_finite() && fast > 0.0 && fast <= slow * (1.0 + ROUNDING), "{} {} {}", slow, fast, collective);
            prop_assert!(before.transfer(collective, bytes + bytes / 3 + 1) >= slow * (1.0 - ROUNDING));
        }
        let (slow, fast) = (before.in_network(bytes).unwrap(), after.in_network(bytes).unwrap());
        prop_assert!(slow.is_finite() && fast > 0.0 && fast <= slow * (1.0 + ROUNDING));
        prop_assert!(before.in_network(bytes + bytes / 3 + 1).unwrap() >= slow);
        prop_assert!(before.transfer(Collective::AllToAllV, bytes) >= before.transfer(Collective::AllToAll, bytes));
    }
}
