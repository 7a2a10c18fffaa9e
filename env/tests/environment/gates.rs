//! Every gate at work in the environment, counted in the info.

use dynamiccl_env::gym::{Action, Env, EnvError, Observation};
use dynamiccl_env::workload::Planned;
use dynamiccl_spec::{Algorithm, CclLibrary, Collective, Gate, Head, Path, Role};

use crate::scene::{MIB, Scene, allreduce, repeated};

fn counted(scene: &Scene, gate: Gate) -> u64 {
    scene.run(3, 10).last().unwrap().info.gates.of(gate)
}

#[test]
fn in_network_aggregation_passes_through() {
    let scene = allreduce().with(|s| s.in_network = Some(true));
    let seen = &scene.run(3, 1)[0];
    assert_eq!(seen.report.ran.unwrap().knobs.path, Path::InNetwork);
    assert!(!seen.observation.decides);
    assert_eq!(seen.report.terms.time, -1.0);
    assert_eq!(counted(&scene, Gate::InNetwork), 10);
    assert_eq!(counted(&allreduce(), Gate::InNetwork), 0);
}

#[test]
fn a_foreign_library_keeps_its_default() {
    let scene = allreduce().with(|s| s.library = CclLibrary::Mpi);
    let seen = &scene.run(3, 1)[0];
    assert!(!seen.observation.decides);
    assert_eq!(seen.report.ran, seen.report.own);
    assert_eq!(counted(&scene, Gate::ForeignLibrary), 10);
    assert_eq!(counted(&allreduce(), Gate::ForeignLibrary), 0);
}

#[test]
fn an_unavailable_pair_is_masked_and_refused() {
    let scene = allreduce();
    let mut env = scene.env();
    let mut observation = Observation::new(env.spaces());
    env.reset(Some(1), &mut observation).unwrap();
    let pat = dynamiccl_spec::Pair::new(Algorithm::Pat, dynamiccl_spec::Protocol::Simple).index();
    assert_eq!(observation.mask[Head::Pair as usize] & (1 << pat), 0);
    let refused = env.step(&Action { choice: [0, pat as u8, 0, 0, 0], exploratory: false }, &mut observation);
    let Err(EnvError::Illegal { head, choice, legal }) = refused else { panic!("{refused:?}") };
    assert_eq!((head.as_str(), choice.as_str()), ("pair", "pat/simple"));
    assert!(legal.contains("ring/ll"), "{legal}");
    assert_eq!(counted(&scene, Gate::Unavailable), 10);
}

#[test]
fn deterministic_jobs_do_not_reduce_inside_switches() {
    let one_node = || repeated("dgx_h100", 1, Planned::alone(Collective::AllReduce, 64 * MIB, Role::Unknown));
    let ran = |scene: &Scene| scene.run(3, 1)[0].report.ran.unwrap().realised.pair.algorithm;
    assert_eq!(ran(&one_node()), Algorithm::Nvls);
    let strict = one_node().with(|s| s.deterministic = true);
    assert_ne!(ran(&strict), Algorithm::Nvls);
    assert_eq!(counted(&strict, Gate::Deterministic), 10);
    assert_eq!(counted(&one_node(), Gate::Deterministic), 0);
}

#[test]
fn what_the_user_has_fixed_stands() {
    let fixed = allreduce().with(|s| s.overrides.set("NCCL_ALGO", "Tree").unwrap());
    let seen = &fixed.run(3, 1)[0];
    assert_eq!(seen.report.ran.unwrap().realised.pair.algorithm, Algorithm::Tree);
    let threads = allreduce().with(|s| s.overrides.set("NCCL_NTHREADS", "256").unwrap());
    assert_eq!(threads.run(3, 1)[0].observation.mask[Head::Threads as usize], 1);
    assert!(counted(&fixed, Gate::UserOverride) >= 10 && counted(&threads, Gate::UserOverride) >= 10);
    assert_eq!(counted(&allreduce(), Gate::UserOverride), 0);
}

#[test]
fn threads_are_chosen_once() {
    let seen = allreduce().run(3, 3);
    let free = |at: usize| seen[at].observation.mask[Head::Threads as usize].count_ones();
    assert_eq!((free(0), free(1), free(2)), (5, 1, 1));
}

#[test]
fn calls_that_nccl_does_not_tune_run_by_themselves() {
    for collective in [Collective::SendRecv, Collective::AllToAll, Collective::AllToAllV] {
        let seen = &repeated("dgx_h100", 2, Planned::alone(collective, MIB, Role::Unknown)).run(3, 2)[1];
        assert!(!seen.observation.decides && seen.report.measured > 0.0);
        assert_eq!((seen.report.own, seen.report.terms.sum()), (None, 0.0));
    }
}
