//! Whatever is legal yields a program that can run.

use std::collections::BTreeMap;

use dynamiccl_env::workload::{Group, Layout, ModelShape, Planned, Program, Recipe, iteration};
use dynamiccl_spec::{Compression, Role, SyncMode};
use proptest::prelude::*;

use crate::timeline::{merge, timeline};
use crate::{A100, small};

/// What goes from one stage to another, in order: bytes and micro-batch.
type Transfers = BTreeMap<(u8, u8), Vec<(u64, Option<u32>)>>;

fn any_recipe() -> impl Strategy<Value = Recipe> {
    let degrees = (1u32..5, 0u32..3, 1u32..6, 0u32..2, 0u32..3, any::<[bool; 6]>());
    let batches = (1u32..7, 1u32..3, 1u32..4, 0usize..3, 1.0..3.0f64);
    let words = (0..SyncMode::ALL.len(), 0..Compression::ALL.len(), 3u32..8);
    let legal = |recipe: &Recipe| recipe.check().is_ok();
    (degrees, batches, words)
        .prop_map(|((dp, tp, pp, cp, ep, flags), (micro_batches, size, tau, bucket, imbalance), words)| {
            let [fsdp, sequence_parallel, overlap, reshard, moe, tied] = flags;
            let (experts, experts_per_token) = if moe { (4, 2) } else { (0, 0) };
            let ep = if moe { 1 << ep } else { 1 };
            let model = ModelShape { experts, experts_per_token, tied, layers: words.2, ..small() };
            let layout = Layout { dp, tp: 1 << tp, pp, cp: 1 << cp, ep, fsdp, sequence_parallel };
            Recipe {
                micro_batches,
                micro_batch_size: size,
                sync: SyncMode::ALL[words.0],
                tau,
                compression: Compression::ALL[words.1],
                bucket_bytes: [0, 4096, 25 << 20][bucket],
                overlap,
                reshard,
                imbalance: if bucket == 0 { 1.0 } else { imbalance },
                ..Recipe::new(model, layout)
            }
        })
        .prop_filter("legal", legal)
}

fn programs(recipe: &Recipe, synchronises: bool) -> Vec<Program> {
    let stages = 0..recipe.layout.pp as u8;
    stages.map(|stage| iteration(recipe, stage, synchronises, A100).unwrap()).collect()
}

fn duration(call: &Planned) -> f64 {
    5.0 + call.bytes as f64 / 25e3
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_call_makes_sense(recipe in any_recipe(), synchronises in any::<bool>()) {
        for (stage, program) in programs(&recipe, synchronises).iter().enumerate() {
            prop_assert!(program.tail.is_finite() && program.tail >= 0.0);
            for (at, call) in program.calls.iter().enumerate() {
                prop_assert!(call.window.is_finite() && call.window >= 0.0);
                prop_assert!(call.beside.is_finite() && call.beside >= 0.0);
                prop_assert!(call.bytes > 0 && call.priority.is_some_and(|class| class <= 7) && call.pipelined >= 1);
                prop_assert!(!call.blocking || call.beside == 0.0);
                prop_assert!(call.needs.is_none_or(|needed| (needed as usize) < at));
                prop_assert!(recipe.layout.size(call.group) > 1);
                prop_assert_eq!(usize::from(call.stage), stage);
            }
        }
    }

    #[test]
    fn every_send_meets_its_receive(recipe in any_recipe()) {
        let (mut sent, mut received) = (Transfers::new(), Transfers::new());
        for call in programs(&recipe, true).iter().flat_map(|program| &program.calls) {
            let Some(peer) = call.peer else { continue };
            let what = (call.bytes, call.micro_batch);
            match call.role {
                Role::ActivationSend => sent.entry((call.stage, peer)).or_default().push(what),
                _ => received.entry((peer, call.stage)).or_default().push(what),
            }
        }
        prop_assert_eq!(sent, received);
    }

    #[test]
    fn nobody_waits_for_ever(recipe in any_recipe(), synchronises in any::<bool>()) {
        let programs = programs(&recipe, synchronises);
        let merged = merge(&programs, duration);
        prop_assert!(merged.is_ok(), "{:?}", merged);
        let merged = merged.unwrap();
        prop_assert_eq!(merged.events.len(), programs.iter().map(|p| p.calls.len()).sum::<usize>());
        let mut busy: BTreeMap<(u8, Group), f64> = BTreeMap::new();
        for event in &merged.events {
            prop_assert!(event.start >= 0.0 && event.end >= event.start && event.end <= merged.length);
            if event.planned.is_transfer() || event.planned.group.spans_stages() {
                continue;
            }
            let free = busy.insert((event.stage, event.planned.group), event.end).unwrap_or(0.0);
            prop_assert!(event.start >= free, "a communicator carries one call at a time");
        }
        for program in &programs {
            prop_assert!(merged.length >= program.compute() * (1.0 - 1e-9));
        }
    }

    #[test]
    fn one_stage_is_never_slower_than_its_calls_in_a_row(recipe in any_recipe()) {
        let recipe = Recipe { layout: Layout { pp: 1, ..recipe.layout }, ..recipe };
        let program = &programs(&recipe, true)[0];
        let merged = timeline(&recipe, A100, duration);
        let in_a_row = program.compute() + program.calls.iter().map(duration).sum::<f64>();
        prop_assert!(merged.length <= in_a_row * (1.0 + 1e-9));
        let blocking: f64 = program.calls.iter().filter(|call| call.blocking).map(duration).sum();
        prop_assert!(merged.length >= (program.compute() + blocking) * (1.0 - 1e-9));
    }

    #[test]
    fn groups_partition_the_ranks(recipe in any_recipe()) {
        let layout = recipe.layout;
        for group in Group::ALL.into_iter().filter(|group| *group != Group::Embedding) {
            let mut seen = vec![0; layout.ranks() as usize];
            for rank in 0..layout.ranks() {
                let members = layout.members(group, rank);
                prop_assert_eq!(members.len() as u32, layout.size(group));
                prop_assert!(members.contains(&rank));
                if members[0] == rank {
                    members.iter().for_each(|&member| seen[member as usize] += 1);
                }
            }
            prop_assert!(seen.iter().all(|&times| times == 1), "{} of {}", group, layout);
        }
        let layers: u32 = (0..layout.pp).map(|stage| layout.layers_of(&recipe.model, stage)).sum();
        prop_assert_eq!(layers, recipe.model.layers);
        prop_assert!((0..layout.pp).all(|stage| layout.layers_of(&recipe.model, stage) > 0));
    }
}

#[test]
fn programs_that_do_not_fit_are_told_apart() {
    let recipe = Recipe::new(small(), Layout { pp: 2, ..Layout::default() });
    let mut programs = programs(&recipe, true);
    let receive = programs[1].calls.iter().position(|call| call.role == Role::ActivationRecv).unwrap();
    programs[1].calls.remove(receive);
    let error = merge(&programs, duration).unwrap_err();
    assert!(error.contains("stage 0 waits for ever at its call"), "{error}");
}
