//! What communicators answer, under every mode and from several threads, without NCCL.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::Duration;

use dynamiccl_policies::policy::PolicyTuner;
use dynamiccl_policies::probe;
use dynamiccl_policies::random::Random;
use dynamiccl_spec::features::PastCall;
use dynamiccl_spec::math::exp2;
use dynamiccl_spec::{Algorithm, Collective, CostTable, Head, Pair, Protocol, Query};

use super::answer::Answer;
use super::call::{Call, RawTable};
use super::communicator::Communicator;
use super::decider::Decider;
use super::opening::{Opened, Opening};
use crate::deployment::Deployment;
use crate::logger::Logger;

/// A communicator of 16 ranks on 2 nodes begins as the variables say.
fn open(set: &[(&str, &str)]) -> Opened {
    open_through(6, set)
}

/// The same through this version of the interface.
fn open_through(interface: u32, set: &[(&str, &str)]) -> Opened {
    let opening =
        Opening { interface, ranks: 16, nodes: 2, id: None, domains: None, logger: Logger::NOWHERE };
    opening.open(|name| set.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned()))
}

/// One that decides by a wild policy, or as the variables say.
fn communicator(set: &[(&str, &str)]) -> Communicator {
    let Opened::Tuned(mut communicator) = open(set) else { panic!("not tuned: {set:?}") };
    if communicator.decider.is_pure() {
        communicator.decider = Decider::new(Some(std::sync::Arc::new(probe::policy(3))));
    }
    *communicator
}

fn table(random: &mut Random) -> RawTable {
    let mut known = CostTable::default();
    for pair in Pair::all().filter(|pair| pair.exists_for(Collective::AllReduce)) {
        known.set(pair, exp2(4.0 + 4.0 * random.uniform()) as f32);
    }
    RawTable { known, beyond: f32::INFINITY }
}

fn calls(seed: u64, count: usize) -> Vec<Call> {
    let mut random = Random::new(seed);
    let call = |random: &mut Random| Call {
        collective: Collective::TUNED[random.below(5)],
        bytes: exp2(34.0 * random.uniform()) as u64,
        pipelined: 1 + random.below(3) as u32,
        table: table(random),
    };
    (0..count).map(|_| call(&mut random)).collect()
}

fn acted(answers: &[Answer]) -> usize {
    answers.iter().filter(|answer| answer.entry().is_some()).count()
}

#[test]
fn advice_on_schedules_changes_no_answer() {
    let (mut plain, mut advised) = (communicator(&[]), communicator(&[]));
    let entry = |bytes: u64, micros: f32| {
        format!(
            "[[schedule]]\ncollective = \"allreduce\"\nranks = 16\nnodes = 2\nbytes = {bytes}\nmicros = {micros:?}\n"
        )
    };
    let stated = entry(1, 5.0) + &entry(1 << 40, 1e6);
    advised.schedules = Deployment::read(stated.as_bytes()).unwrap().schedules(16, 2);
    let (mut said, mut policy) = (0, 0);
    // Not every wild policy takes a schedule.
    for (seed, call) in (1..9).flat_map(|seed| calls(seed, 300).into_iter().map(move |call| (seed, call))) {
        if policy != seed {
            let made = std::sync::Arc::new(probe::policy(seed));
            (plain.decider, advised.decider) =
                (Decider::new(Some(std::sync::Arc::clone(&made))), Decider::new(Some(made)));
            policy = seed;
        }
        assert_eq!(advised.work_out(&call), plain.work_out(&call));
        let Some((narrowed, gated)) = advised.narrow(&call) else { continue };
        let (past, encoder, known) = (PastCall::default(), &advised.encoder, &narrowed.known);
        let query =
            Query { communicator: 0, ranks: 16, nodes: 2, encoder, call: known, gated: &gated, past: &past };
        assert_eq!(plain.advised(&query), None);
        let advice = advised.advised(&query);
        assert!(advice.is_none() || (call.collective == Collective::AllReduce && call.pipelined == 1));
        said += usize::from(advice.is_some());
    }
    assert!(said > 10, "{said}");
}

/// A job makes communicators hours after it began, when its launcher's file may be another, or gone.
#[test]
fn a_deployment_file_counts_once_for_all_communicators_that_live_together() {
    let file = std::env::temp_dir().join(format!("dynamiccl-kept-{}.toml", std::process::id()));
    let write = |gpu: &str| std::fs::write(&file, format!("[cluster]\ngpu = \"{gpu}\"\n")).unwrap();
    let set = [("DYNAMICCL_CONTEXT", file.to_str().unwrap())];
    write("hopper");
    let hash = Deployment::open(&file).unwrap().hash().unwrap();
    let expected =
        format!("{:016x},{hash:016x}", dynamiccl_policies::frozen::Frozen::shipped().unwrap().hash());
    let expecting = [set[0], ("DYNAMICCL_EXPECT", &expected)];
    let first = communicator(&set);
    write("volta");
    let second = communicator(&expecting);
    std::fs::remove_file(&file).unwrap();
    let third = communicator(&expecting);
    assert_eq!(
        [&second, &third].map(|one| one.encoder.clone()),
        [&first, &first].map(|one| one.encoder.clone())
    );
    drop((first, second, third));
    assert!(matches!(open(&set), Opened::Refused), "the last one has taken it along");
    write("volta");
    assert!(matches!(open(&expecting), Opened::Refused), "another file, which the launcher did not mean");
    std::fs::remove_file(&file).unwrap();
}

/// A gain that counts on a chunk nobody asks for is none.
#[test]
fn no_chunk_is_chosen_where_nccl_asks_for_none() {
    let chunks = |interface: u32| {
        let Opened::Tuned(communicator) = open_through(interface, &[]) else { panic!("not tuned") };
        let asked = calls(1, 500).iter().filter_map(|call| communicator.narrow(call)).collect::<Vec<_>>();
        asked.iter().filter(|(_, gated)| gated.mask.count(Head::Chunk) > 1).count()
    };
    assert_eq!([3, 4, 5].map(chunks), [0; 3]);
    assert!([6, 7].map(chunks).iter().all(|count| *count > 400));
}

#[test]
fn what_is_kept_is_what_would_be_decided_again() {
    let warm = communicator(&[]);
    let calls = calls(1, 3000);
    let first: Vec<Answer> = calls.iter().map(|call| warm.answer(call)).collect();
    assert!(acted(&first) > 1000, "{}", acted(&first));
    let fresh = communicator(&[]);
    for (call, answer) in calls.iter().zip(&first).rev() {
        assert_eq!((fresh.answer(call), warm.answer(call)), (*answer, *answer));
    }
}

#[test]
fn a_call_that_was_answered_waits_for_nobody() {
    let communicator = communicator(&[]);
    let calls = calls(1, 2);
    let known = communicator.answer(&calls[0]);
    let Decider::Policy(_, lock) = &communicator.decider else { panic!("a policy") };
    let held = lock.lock().unwrap();
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        scope.spawn({
            let send = send.clone();
            let (communicator, call) = (&communicator, &calls[0]);
            move || send.send(communicator.answer(call))
        });
        assert_eq!(receive.recv_timeout(Duration::from_secs(20)), Ok(known));
        // A new one does wait, so this would notice.
        scope.spawn({
            let (communicator, call) = (&communicator, &calls[1]);
            move || send.send(communicator.answer(call))
        });
        assert!(receive.recv_timeout(Duration::from_millis(50)).is_err());
        drop(held);
        assert!(receive.recv_timeout(Duration::from_secs(20)).is_ok());
    });
}

#[test]
fn observing_decides_and_changes_nothing() {
    let communicator = communicator(&[("DYNAMICCL_MODE", "observe")]);
    for call in calls(1, 500) {
        assert_eq!(communicator.answer(&call), Answer::OWN);
    }
}

#[test]
fn nothing_adds_in_another_order_where_sums_must_come_out_the_same() {
    let switches = [Algorithm::Nvls, Algorithm::NvlsTree, Algorithm::CollnetDirect, Algorithm::CollnetChain];
    let chosen = |set| {
        let communicator = communicator(set);
        let calls = calls(1, 2000).into_iter().filter(|call| call.collective.reduces());
        let mut chosen = 0;
        for call in calls {
            let pair = communicator.answer(&call).entry().map(|(pair, _)| Pair::from_index(pair).unwrap());
            let own = call.table.known.best().unwrap().0;
            chosen += usize::from(switches.contains(&pair.unwrap_or(own).algorithm));
        }
        chosen
    };
    assert!(chosen(&[]) > 50);
    assert_eq!(chosen(&[("DYNAMICCL_DETERMINISTIC", "1")]), 0);
}

#[test]
fn what_the_user_has_ruled_out_is_never_chosen() {
    let chosen = |set| {
        let communicator = communicator(set);
        let answers = calls(1, 20_000).into_iter().map(|call| communicator.answer(&call));
        let pairs =
            answers.filter_map(|answer| answer.entry()).map(|(pair, _)| Pair::from_index(pair).unwrap());
        pairs.filter(|pair| pair.protocol == Protocol::LL).count()
    };
    assert!(chosen(&[]) > 50);
    assert_eq!(chosen(&[("NCCL_PROTO", "^LL")]), 0);
    let narrow = communicator(&[("NCCL_MAX_NCHANNELS", "4")]);
    assert!(calls(1, 500).iter().all(|call| narrow.answer(call).channels().is_none()));
}

#[test]
fn where_nccl_takes_what_we_do_not_know_we_have_no_say() {
    let communicator = communicator(&[]);
    let mut known = 0;
    for mut call in calls(1, 500) {
        known += usize::from(communicator.answer(&call).entry().is_some());
        call.table.beyond = 1.0;
        assert_eq!(communicator.answer(&call), Answer::OWN);
    }
    assert!(known > 100);
}

#[test]
fn rings_that_were_priced_out_are_never_chosen() {
    // A policy would hardly choose one anyway; the walk would.
    let communicator = communicator(&[("DYNAMICCL_POLICY", "walk")]);
    let mut chosen = [0, 0];
    for mut call in calls(1, 1000) {
        for rings in &mut chosen {
            let pair = communicator.answer(&call).entry().map(|(pair, _)| Pair::from_index(pair).unwrap());
            *rings += usize::from(pair.is_some_and(|pair| pair.algorithm == Algorithm::Ring));
            call.table.known.0[Algorithm::Ring.id()].iter_mut().for_each(|us| *us *= 1024.0);
        }
    }
    assert!(chosen[0] > 50 && chosen[1] == 0, "{chosen:?}");
}

#[test]
fn the_walk_reaches_every_legal_setting_and_changes_at_every_call() {
    let communicator = communicator(&[("DYNAMICCL_POLICY", "walk")]);
    let call = Call { collective: Collective::AllReduce, bytes: 1 << 24, ..calls(1, 1)[0] };
    let available = call.table.known.mask().len();
    let answers: Vec<Answer> = (0..available * 10 * 5).map(|_| communicator.answer(&call)).collect();
    assert!(answers.windows(2).all(|two| two[0] != two[1]));
    let distinct: BTreeSet<u64> = answers.iter().map(|answer| answer.bits()).collect();
    // Where the network adds, channels stay NCCL's, so their ten counts are one.
    let unchecked = 3;
    let settings = (available - unchecked) * 10 * 5 + unchecked * 5;
    assert_eq!(distinct.len(), settings);
}

#[test]
fn odd_calls_are_answered_too() {
    let communicator = communicator(&[]);
    let usual = calls(1, 1)[0];
    for bytes in [0, 1, u64::MAX, u64::MAX / 2] {
        for pipelined in [0, u32::MAX] {
            let answer = communicator.answer(&Call { bytes, pipelined, ..usual });
            assert!(answer.entry().is_none_or(|(_, micros)| micros > 0.0 && micros.is_finite()));
        }
    }
    for odd in [-1.0, -1024.0, f32::NAN, f32::INFINITY, 0.0, f32::from_bits(1), f32::MAX] {
        let table = RawTable { known: CostTable([[odd; 3]; 7]), beyond: f32::INFINITY };
        let answer = communicator.answer(&Call { table, ..usual });
        assert!(answer.entry().is_none_or(|(_, micros)| micros > 0.0 && micros < odd), "{odd}: {answer:?}");
    }
}

/// The plugin adds nothing to what a policy decides.
#[test]
fn a_decision_is_the_policys() {
    let communicator = communicator(&[]);
    let mut tuner = PolicyTuner::new(std::sync::Arc::new(probe::policy(3)), None);
    let mut same = 0;
    for call in calls(2, 500) {
        let (narrowed, gated) = communicator.narrow(&call).unwrap();
        let past = Default::default();
        let query = dynamiccl_spec::Query {
            communicator: 9,
            ranks: 16,
            nodes: 2,
            encoder: &communicator.encoder,
            call: &narrowed.known,
            gated: &gated,
            past: &past,
        };
        let knobs = tuner.answer(&query).knobs;
        let answer = communicator.answer(&call);
        if let Some((pair, _)) = answer.entry() {
            assert_eq!((knobs.pair.unwrap().index(), knobs.chunk), (pair, answer.chunk()));
            same += 1;
        }
    }
    assert!(same > 100);
}
