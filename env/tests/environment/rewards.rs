//! Every term of the reward at work, and what the shipped weights trade.

use std::sync::Arc;

use dynamiccl_env::curriculum::{Curriculum, Stage};
use dynamiccl_env::gym::Action;
use dynamiccl_env::model::{ConstantsFile, compute_stretch};
use dynamiccl_env::reward::{Outcome, Terms, demand};
use dynamiccl_env::workload::{Layout, Planned};
use dynamiccl_spec::{Collective, Role, SyncMode};

use crate::scene::{MIB, Scene, Seen, allreduce, repeated, repeated_on, training};

fn terms(seen: &[Seen], at: usize) -> Terms {
    seen[at].report.terms
}

fn one_channel(call: usize, own: Action) -> Action {
    let mut action = own;
    action.choice[2] = u8::from(call % 2 == 1);
    action
}

#[test]
fn the_sum_of_the_terms_is_the_reward() {
    let seen = allreduce().run(1, 5);
    for call in &seen {
        let sum: f64 = call.report.terms.all().iter().sum();
        assert_eq!(sum, call.reward);
    }
    assert_eq!(terms(&seen, 0).time, -1.0, "NCCL's own choice takes its own time");
}

#[test]
fn time_follows_the_chosen_setting() {
    let slow = allreduce().act(1, 3, |call, _, own| one_channel(call, own));
    let ran = slow[1].report;
    let ratio = ran.ran.unwrap().micros / ran.own.unwrap().micros;
    assert_ne!(ratio, 1.0);
    assert_eq!(ran.terms.time, -ratio.min(10.0));
}

#[test]
fn switching_costs_and_staying_does_not() {
    let switching = allreduce().act(1, 4, |call, _, own| one_channel(call, own));
    let staying = allreduce().run(1, 4);
    assert_eq!([0, 1, 2, 3].map(|at| terms(&switching, at).switch < 0.0), [false, true, true, true]);
    assert!((0..4).all(|at| terms(&staying, at).switch == 0.0));
}

#[test]
fn own_congestion_costs() {
    let scene = repeated("a100_8_tcp25g", 4, Planned::alone(Collective::AllReduce, 8 * MIB, Role::Unknown));
    let scene = scene.amid(|stage| stage.file.dynamics.congestion = 0.2);
    let many = scene.act(1, 30, |_, _, mut own| {
        own.choice[2] = 9;
        own
    });
    assert!(terms(&many, 29).congestion < terms(&many, 0).congestion);
}

#[test]
fn a_probe_costs() {
    let probes = allreduce().act(1, 2, |_, _, own| Action { exploratory: true, ..own });
    assert!(terms(&probes, 1).probe < 0.0);
    assert_eq!(terms(&allreduce().run(1, 2), 1).probe, 0.0);
}

#[test]
fn slow_convergence_costs_more_as_training_goes_on() {
    let scene = training("bert_large", Layout { dp: 8, ..Layout::default() }, "dgx_h100", |_| {});
    let seen = scene.run(1, 900);
    let (first, last) = (terms(&seen, 0).convergence, seen.last().unwrap().report.terms.convergence);
    assert!(last < first && first < 0.0, "{first} {last}");
    let local = training("bert_large", Layout { dp: 8, ..Layout::default() }, "dgx_h100", |r| {
        (r.sync, r.tau) = (SyncMode::Local, 8);
    });
    assert_ne!(local.run(1, 900).last().unwrap().report.terms.convergence, last);
}

#[test]
fn channels_cost_what_compute_beside_them_loses() {
    let beside = |micros| {
        let mut call = Planned::alone(Collective::AllReduce, 64 * MIB, Role::InterStage);
        call.beside = micros;
        repeated("dgx_a100", 1, call)
    };
    assert_eq!(terms(&beside(0.0).run(1, 1), 0).sm, 0.0);
    let with = |index: u8| {
        beside(1e6).act(1, 1, |_, _, mut own| {
            own.choice[2] = index;
            own
        })
    };
    let (few, many) = (with(1), with(9));
    let lost = |seen: &[Seen]| seen[0].report.compute_lost / seen[0].report.ran.unwrap().micros;
    assert!(lost(&few) < lost(&many) && lost(&few) > 0.0);
    assert!(terms(&many, 0).sm < 0.0);
}

#[test]
fn demanding_settings_cost_on_distant_links_only() {
    let on = |cluster, nodes| {
        repeated(cluster, nodes, Planned::alone(Collective::AllReduce, 64 * MIB, Role::Unknown))
    };
    assert_eq!(terms(&on("dgx_h100", 1).run(1, 1), 0).tier, 0.0);
    assert!(terms(&on("tier4", 4).run(1, 1), 0).tier < 0.0);
}

#[test]
fn a_fault_costs() {
    let faulty = allreduce().amid(|stage| stage.file.dynamics.faults = 1000.0).run(1, 3);
    assert!(faulty[1].report.fault && terms(&faulty, 1).fault < 0.0);
    assert_eq!(terms(&allreduce().run(1, 3), 1).fault, 0.0);
}

/// The share of cells in which the setting with the best reward is within 1 % of the fastest, over the
/// machines of a stage, calls that stand by themselves and calls beside compute.
fn agreement(stage: &Stage) -> (usize, usize) {
    let compute = ConstantsFile::full().nominal().around.compute;
    let (mut agree, mut cells) = (0, 0);
    for (machines, cluster) in stage.file.clusters.iter().zip(&stage.clusters) {
        let nodes = machines.nodes[0];
        let sizes = (10..=30).step_by(4).map(|octave| 1u64 << octave);
        for (bytes, collective) in
            sizes.flat_map(|bytes| Collective::TUNED.map(|collective| (bytes, collective)))
        {
            for beside in [0.0, 1e9] {
                let mut call = Planned::alone(collective, bytes, Role::Unknown);
                call.beside = beside;
                let mut env =
                    Scene { stage: stage.clone(), ..repeated_on(Arc::clone(cluster), nodes, call) }.env();
                let mut observation =
                    dynamiccl_env::gym::Observation::new(dynamiccl_env::gym::Env::spaces(&env));
                dynamiccl_env::gym::Env::reset(&mut env, Some(7), &mut observation).unwrap();
                let settings = env.settings();
                let own = settings[0];
                let reward = |setting: &dynamiccl_env::sim::Setting| {
                    let realised = &setting.realised;
                    let stretch = compute_stretch(&compute, realised.channels, cluster.gpu.sms) - 1.0;
                    let outcome = Outcome {
                        micros: setting.micros,
                        reference: own.micros,
                        switched: setting.realised != own.realised,
                        congestion: 0.0,
                        exploratory: false,
                        loss_change: 0.01,
                        compute_lost: if beside > 0.0 { setting.micros * stretch } else { 0.0 },
                        demand: demand(
                            realised.pair.protocol,
                            setting.knobs.chunk,
                            realised.channels,
                            cluster.tier(nodes),
                        ),
                        fault: false,
                    };
                    Terms::new(&stage.file.reward, &outcome).sum()
                };
                let fastest = settings.iter().map(|setting| setting.micros).fold(f64::INFINITY, f64::min);
                let preferred = settings.iter().max_by(|a, b| reward(a).total_cmp(&reward(b))).unwrap();
                cells += 1;
                agree += usize::from(preferred.micros <= 1.01 * fastest);
            }
        }
    }
    (agree, cells)
}

/// The measure can fail: with SMs at their full price, fewer channels win over faster ones.
#[test]
fn dearer_sms_would_cost_time() {
    let mut stage = (*Curriculum::load("stage1").unwrap().stages[0]).clone();
    stage.file.reward.sm = 1.0;
    let (agree, cells) = agreement(&stage);
    println!("sm = 1: {agree} of {cells}");
    assert!((agree as f64) < 0.95 * cells as f64, "{agree} of {cells}");
}

#[test]
fn the_best_reward_is_the_fastest_setting_in_95_of_100_cells() {
    for name in ["stage1", "stage2", "stage3"] {
        let curriculum = Curriculum::load(name).unwrap();
        let (agree, cells) = agreement(&curriculum.stages[0]);
        println!("{name}: {agree} of {cells}");
        assert!(agree as f64 >= 0.95 * cells as f64, "{name}: {agree} of {cells}");
    }
}
