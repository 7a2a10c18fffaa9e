//! Networks that change, as a tuner of NCCL's knobs meets them: rings only over photonic rails, traffic between
//! datacentres in its feedback.

use dynamiccl_env::workload::Planned;
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::{Algorithm, Collective, Head, Pair, Role};

use crate::scene::{MIB, Scene, repeated};

fn on(cluster: &str, nodes: u32, bytes: u64) -> Scene {
    repeated(cluster, nodes, Planned::alone(Collective::AllReduce, bytes, Role::IntraStage))
}

/// The algorithms that a policy may choose from.
fn offered(scene: &Scene) -> Vec<Algorithm> {
    let bits = scene.run(1, 1)[0].observation.mask[Head::Pair as usize];
    let mut all: Vec<Algorithm> =
        Pair::all().filter(|pair| bits & (1 << pair.index()) != 0).map(|pair| pair.algorithm).collect();
    all.dedup();
    all
}

#[test]
fn a_communicator_over_photonic_rails_has_rings_only() {
    assert_eq!(offered(&on("photonic_a100", 4, MIB)), [Algorithm::Ring]);
    assert!(offered(&on("a100_4gpu", 4, MIB)).contains(&Algorithm::Tree));
    assert!(offered(&on("photonic_a100", 1, MIB)).contains(&Algorithm::Tree), "NVLink has no circuits");
    let by_nccl = on("photonic_a100", 4, 4096).run(1, 1)[0].report.own.unwrap();
    assert_eq!(by_nccl.realised.pair.algorithm, Algorithm::Ring);
}

/// What calls take in the mean, and what a policy is told of each before the next; logarithms.
fn taken_and_told(cluster: &str, wan: Option<f64>) -> [Vec<f64>; 2] {
    let calm = on(cluster, 2, 64 * MIB).amid(|stage| stage.file.dynamics.jitter = 0.0);
    let run = calm.amid(|stage| stage.file.dynamics.wan = wan).run(5, 400);
    let at = slot("last_time").unwrap().start;
    let taken = run.iter().map(|seen| seen.report.own.unwrap().micros.ln()).collect();
    let told = run.iter().skip(1).map(|seen| f64::from(seen.observation.history[at])).collect();
    [taken, told]
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let count = a.len().min(b.len());
    let (a, b) = (&a[..count], &b[..count]);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / count as f64;
    let both = |a: &[f64], b: &[f64]| {
        let (first, second) = (mean(a), mean(b));
        a.iter().zip(b).map(|(a, b)| (a - first) * (b - second)).sum::<f64>()
    };
    both(a, b) / (both(a, a) * both(b, b)).sqrt()
}

#[test]
fn feedback_across_datacentres_follows_what_the_wan_leaves() {
    let [calm, _] = taken_and_told("tier4", None);
    assert!(calm.iter().all(|taken| taken == &calm[0]), "nothing else changes");
    for (rho, alike) in [(0.0, -0.15..0.15), (0.95, 0.85..1.0)] {
        let [taken, told] = taken_and_told("tier4", Some(rho));
        let neighbours = correlation(&taken, &taken[1..]);
        assert!(alike.contains(&neighbours), "{rho}: {neighbours}");
        let seen = correlation(&taken, &told);
        assert!(seen > 0.7, "{rho}: {seen}");
    }
}

#[test]
fn inside_a_datacentre_nothing_of_it_is_felt() {
    assert_eq!(taken_and_told("tier3", Some(0.95)), taken_and_told("tier3", None));
}
