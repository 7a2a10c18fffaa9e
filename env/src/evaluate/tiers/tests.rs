//! That NCCL cannot tell the machines apart, and that what is best on them can still differ.

use dynamiccl_spec::features::Hidden;
use dynamiccl_spec::{Collective, Knobs};

use super::*;
use crate::asking::Asking;
use crate::cluster::{ClusterError, CommOptions};
use crate::evaluate::tests::wants;
use crate::evaluate::{Entrant, Evaluation};
use crate::headroom::sizes;
use crate::job::Shown;
use crate::model::ConstantsFile;

#[test]
fn nccl_predicts_and_runs_the_same_at_every_tier() {
    let machines = EqualTables::machines().unwrap();
    assert_eq!(machines.iter().map(|m| m.tier).collect::<Vec<_>>(), [2, 3, 4, 2, 3, 4]);
    for set in machines.chunks(3) {
        let asking = |shown| {
            set.iter().map(move |m| Asking::new(&m.cluster, m.nodes, &CommOptions::default(), shown).unwrap())
        };
        let told: Vec<_> = asking(Shown::ALL).collect();
        for collective in Collective::TUNED {
            for bytes in sizes() {
                let calls: Vec<_> = told.iter().map(|asking| asking.call(collective, bytes, 1)).collect();
                assert!(calls.iter().all(|call| call.call == calls[0].call), "{collective} {bytes}");
            }
        }
        // Only the tier tells them apart: without it they are one machine.
        let encoder = |asking: &Asking| {
            let call = asking.call(Collective::AllReduce, 1, 1);
            asking.query(&call).encoder.clone()
        };
        let hidden = Hidden::of(["communicator_tier_max", "communicator_tier_mix"]).unwrap();
        assert!(!encoder(&told[0]).same(&encoder(&told[1])));
        assert!(encoder(&told[0]).without(&hidden).same(&encoder(&told[1]).without(&hidden)));
    }
}

#[test]
fn who_knows_the_tier_follows_it_and_who_does_not_cannot() {
    let constants = ConstantsFile::full();
    let evaluation =
        Evaluation { seed: 1, seeds: 1, worlds: 2, threads: 2, constants: &constants, schedules: None };
    let sizes = [1 << 16, 1 << 18];
    let compared = |entrant: Entrant| {
        evaluation.equal_tables(&sizes, &[entrant], || Ok::<_, ClusterError>(())).unwrap().1
    };
    let bayes = compared(Entrant::bayes());
    assert!(bayes.oracle_differs > 0, "{bayes:?}");
    assert_eq!((bayes.pairs, bayes.differs), (6 * 10, bayes.oracle_differs));
    assert_eq!(bayes.held_differs, bayes.oracle_differs, "fixed knobs need no feedback");
    assert!(bayes.contrasts.iter().all(|c| c.chosen == c.best && c.swap > SWAP && c.tiers[0] < c.tiers[1]));
    assert!(
        bayes.contrasts.iter().all(|c| c.shared > 0.0 && c.shared <= c.swap),
        "the best of one is shared, too"
    );
    assert!(bayes.must_differ <= bayes.oracle_differs && bayes.differs_there == bayes.must_differ);
    let ours = compared(wants("nccl", Knobs::OWN));
    assert_eq!((ours.differs, ours.by_world.differs, ours.by_world.differs_there), (0, 0, 0));
}

/// In worlds in which no knobs are right at both tiers, who knows every true time differs more often than who knows only the tier.
#[test]
fn who_knows_the_world_follows_it_closer_than_who_knows_the_tier() {
    let constants = ConstantsFile::full();
    let evaluation =
        Evaluation { seed: 1, seeds: 1, worlds: 4, threads: 2, constants: &constants, schedules: None };
    let compared = |entrant: Entrant| {
        let done = evaluation.equal_tables(&[1 << 16, 1 << 18], &[entrant], || Ok::<_, ClusterError>(()));
        done.unwrap().1.by_world
    };
    let (oracle, bayes) = (compared(Entrant::oracle()), compared(Entrant::bayes()));
    assert_eq!(oracle.pairs, 4 * 6 * 10);
    assert!(oracle.must_differ > 0 && oracle.must_differ < oracle.oracle_differs, "{oracle:?}");
    assert_eq!((bayes.must_differ, bayes.oracle_differs), (oracle.must_differ, oracle.oracle_differs));
    assert!(oracle.differs_there > bayes.differs_there && bayes.differs_there > 0, "{oracle:?} {bayes:?}");
}
