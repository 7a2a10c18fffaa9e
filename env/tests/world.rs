//! Worlds are as large, as smooth and as noisy as what they were measured from.

use std::sync::Arc;

use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::model::{Call, Conditions, ConstantsFile};
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::{Field, World};
use dynamiccl_spec::{Algorithm, Collective, Pair, Protocol};

const RING: Pair = Pair::new(Algorithm::Ring, Protocol::Simple);
const TREE: Pair = Pair::new(Algorithm::Tree, Protocol::Simple);
const WORLDS: u64 = 400;

fn fields(cluster: &str, nodes: u32) -> Vec<Arc<Field>> {
    let cluster = Cluster::load(cluster).unwrap();
    let constants = ConstantsFile::full();
    (0..WORLDS).map(|seed| World::draw(&constants, seed).field(&cluster, nodes).unwrap()).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn log_of(field: &Field, pair: Pair, channels: u32, bytes: u64) -> f64 {
    field.factor(Collective::AllReduce, pair, channels, bytes).ln()
}

/// Correlation over worlds of two settings' logs.
fn alike(fields: &[Arc<Field>], a: (Pair, u32, u64), b: (Pair, u32, u64)) -> f64 {
    let logs = |s: (Pair, u32, u64)| fields.iter().map(|f| log_of(f, s.0, s.1, s.2)).collect::<Vec<_>>();
    correlation(&logs(a), &logs(b))
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (ma, mb) = (mean(a.iter().copied()), mean(b.iter().copied()));
    let covariance = mean(a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)));
    let variance = |values: &[f64], m: f64| mean(values.iter().map(|x| (x - m).powi(2)));
    covariance / (variance(a, ma) * variance(b, mb)).sqrt()
}

#[test]
fn a_field_is_as_large_as_the_measured_residuals() {
    let nominal = ConstantsFile::full().nominal().residual;
    for (cluster, nodes, residual) in
        [("dgx_h100", 1, nominal.node), ("dgx_h100", 4, nominal.rdma), ("tcp25g_1gpu", 4, nominal.socket)]
    {
        let fields = fields(cluster, nodes);
        let logs: Vec<f64> = fields.iter().map(|f| log_of(f, RING, 4, 1 << 16)).collect();
        let centre = mean(logs.iter().copied());
        let deviation = mean(logs.iter().map(|x| (x - centre).powi(2))).sqrt();
        let expected = (residual.spread.powi(2) + residual.cliff_rate * residual.cliff.powi(2) / 4.0).sqrt();
        assert!(deviation > 0.6 * expected && deviation < 2.0 * expected, "{deviation} beside {expected}");
        // Two-mode settings are slower than their fast mode, so the mean lies a little above 1.
        assert!(centre > -0.05 && centre < 0.15, "{centre}");
    }
}

#[test]
fn a_field_is_smooth_in_size_and_channels_and_differs_by_pair() {
    let fields = fields("tcp25g_1gpu", 4);
    let here = (RING, 4, 1u64 << 16);
    let near = alike(&fields, here, (RING, 4, 1 << 17));
    let far = alike(&fields, here, (RING, 4, 1 << 26));
    let other_pair = alike(&fields, here, (TREE, 4, 1 << 16));
    let more_channels = alike(&fields, here, (RING, 8, 1 << 16));
    assert!(near > 0.4 && near > far + 0.2, "{near} {far}");
    assert!(more_channels > other_pair + 0.1, "{more_channels} {other_pair}");
    assert!(other_pair.abs() < 0.25, "{other_pair}");
}

#[test]
fn some_settings_have_two_modes_whose_mean_is_the_true_time() {
    let mut found = 0;
    for field in fields("tcp25g_1gpu", 4) {
        for octave in 10..24 {
            if let Some(modes) = field.modes(RING, 2, 1 << octave) {
                found += 1;
                let mean = modes.slow_share * modes.slow + (1.0 - modes.slow_share) * modes.fast;
                assert!((mean - 1.0).abs() < 1e-12 && modes.slow > 1.2 * modes.fast, "{modes:?}");
            }
        }
    }
    let share = f64::from(found) / (WORLDS as f64 * 14.0);
    let expected = ConstantsFile::full().nominal().residual.socket.bimodal_rate;
    assert!(share > 0.3 * expected && share < 2.0 * expected, "{share} beside {expected}");
}

#[test]
fn weather_is_noisier_on_sockets_than_inside_a_node() {
    let constants = ConstantsFile::full();
    let spread = |cluster: &str, nodes| {
        let cluster = Cluster::load(cluster).unwrap();
        let jitter: Vec<f64> = (0..200)
            .flat_map(|seed| {
                let mut weather = World::draw(&constants, seed).weather(&cluster, nodes).unwrap();
                (0..50).map(move |_| weather.luck().jitter).collect::<Vec<_>>()
            })
            .collect();
        let centre = mean(jitter.iter().copied());
        assert!((centre - 1.0).abs() < 0.02, "jitter moves no mean: {centre}");
        mean(jitter.iter().map(|j| (j - centre).powi(2))).sqrt()
    };
    let (node, socket) = (spread("dgx_h100", 1), spread("tcp25g_1gpu", 4));
    assert!(node < 0.08 && socket > 2.0 * node, "{node} {socket}");
}

/// However much longer than others' traffic lasts the time between is.
#[test]
fn one_moment_does_not_foretell_another_long_after() {
    let constants = ConstantsFile::full();
    let cluster = Cluster::load("aws_p5").unwrap();
    let (mut changed, mut steps) = (0, 0);
    for seed in 0..50 {
        let mut weather = World::draw(&constants, seed).weather(&cluster, 4).unwrap();
        let mut before = weather.advance(1e9).load > 0.0;
        for _ in 0..40 {
            let loaded = weather.advance(1e9).load > 0.0;
            changed += i32::from(loaded != before);
            (before, steps) = (loaded, steps + 1);
        }
    }
    let share = f64::from(changed) / f64::from(steps);
    assert!((0.4..0.6).contains(&share), "{share}");
}

#[test]
fn conditions_come_and_go_and_slow_a_call_down() {
    let constants = ConstantsFile::full();
    let cluster = Cluster::load("aws_p5").unwrap();
    let (mut loaded, mut slow, mut faults, mut steps) = (0, 0, 0, 0);
    for seed in 0..200 {
        let world = World::draw(&constants, seed);
        let simulator = Simulator::new(&cluster, 4, &CommOptions::default(), &world).unwrap();
        let mut weather = world.weather(&cluster, 4).unwrap();
        let own = simulator.own(Collective::AllReduce, 1 << 30).unwrap();
        let call = Call::of(Collective::AllReduce, 1 << 30, &own.realised);
        for _ in 0..50 {
            let conditions = weather.advance(60e6);
            steps += 1;
            loaded += i32::from(conditions.load > 0.0);
            slow += i32::from(conditions.speed < 1.0);
            faults += i32::from(conditions.stall > 0.0);
            let worse = Conditions { latency: conditions.latency.max(1.0), stall: 0.0, ..conditions };
            let micros = simulator.micros_of(&simulator.fabric().under(&worse), &call);
            assert!(micros >= own.micros * (1.0 - 1e-12), "{conditions:?}");
        }
    }
    assert!(loaded > steps / 5 && loaded < steps * 4 / 5, "{loaded} of {steps}");
    assert!(slow > 0 && slow < steps / 4, "{slow} of {steps}");
    assert!(faults < steps / 100, "{faults} of {steps}");
}

#[test]
fn communicators_share_a_field_whatever_the_order_they_ask_in() {
    let constants = ConstantsFile::full();
    let (box8, ring) = (Cluster::load("dgx_h100").unwrap(), Cluster::load("tcp25g_1gpu").unwrap());
    let (one, other) = (World::draw(&constants, 5), World::draw(&constants, 5));
    let first = [one.field(&box8, 1), one.field(&box8, 4), one.field(&ring, 4)];
    let mut second = [other.field(&ring, 4), other.field(&box8, 4), other.field(&box8, 1)];
    second.reverse();
    assert_eq!(first, second);
    for (a, b) in first.iter().flatten().zip(second.iter().flatten()) {
        let bits = |field: &Field, pair, channels| log_of(field, pair, channels, 1 << 20).to_bits();
        let forwards = [bits(a, RING, 4), bits(a, TREE, 4), bits(a, RING, 64)];
        let mut backwards = [bits(b, RING, 64), bits(b, TREE, 4), bits(b, RING, 4)];
        backwards.reverse();
        assert_eq!(forwards, backwards);
    }
    assert!(Arc::ptr_eq(first[1].as_ref().unwrap(), &one.field(&box8, 2).unwrap()));
    assert_ne!(first[0], first[1]);
}

/// A job has communicators of both kinds, and no machine tells by its NVLink what its network is like.
#[test]
fn what_is_hidden_inside_nodes_says_nothing_of_what_is_hidden_between_them() {
    for pair in [RING, TREE] {
        let logs = |nodes| -> Vec<f64> {
            fields("dgx_a100", nodes).iter().map(|field| log_of(field, pair, 8, 1 << 20)).collect()
        };
        let found = correlation(&logs(1), &logs(2));
        assert!(found.abs() < 0.2, "{pair}: {found}");
    }
    let (constants, cluster) = (ConstantsFile::full(), Cluster::load("dgx_a100").unwrap());
    let jitters = |nodes| -> Vec<f64> {
        let world = |seed| World::draw(&constants, seed).weather(&cluster, nodes).unwrap().luck().jitter;
        (0..WORLDS).map(|seed| world(seed).ln()).collect()
    };
    let found = correlation(&jitters(1), &jitters(2));
    assert!(found.abs() < 0.2, "{found}");
}

#[test]
fn the_nominal_world_has_neither_field_nor_weather() {
    let world = World::nominal(&ConstantsFile::full());
    let cluster = Cluster::load("dgx_a100").unwrap();
    assert!(
        world.field(&cluster, 2).is_none() && world.weather(&cluster, 2).is_none() && world.seed().is_none()
    );
}
