//! What replicas exchange: buckets, compressed or not, every iteration or some.

use dynamiccl_env::workload::{Group, Layout, ModelShape, Planned, Program, Recipe, iteration};
use dynamiccl_spec::Collective::{AllGather, AllReduce, SendRecv};
use dynamiccl_spec::{Collective, Compression, SyncMode};

use crate::{A100, program, small, volumes};

fn job(name: &str, dp: u32) -> Recipe {
    Recipe::new(ModelShape::preset(name).unwrap(), Layout { dp, ..Layout::default() })
}

/// Gradients only, without the loss.
fn gradients(program: &Program) -> Vec<Planned> {
    program.calls.iter().filter(|call| call.group == Group::Data && call.bytes > 8).copied().collect()
}

fn bytes(calls: &[Planned]) -> u64 {
    calls.iter().map(|call| call.bytes).sum()
}

#[test]
fn gradients_are_the_parameters_whatever_the_buckets() {
    for bucket_bytes in [0, 1 << 20, 25 << 20, 1 << 30, u64::MAX] {
        for overlap in [true, false] {
            for gradient_bytes in [2, 4] {
                let recipe = Recipe { bucket_bytes, overlap, gradient_bytes, ..job("gpt2_xl", 8) };
                let calls = gradients(&program(&recipe, 0));
                assert_eq!(bytes(&calls), recipe.model.params() * u64::from(gradient_bytes));
            }
        }
    }
}

#[test]
fn single_tensors_are_many_and_small_fused_ones_few_and_large() {
    let count = |bucket_bytes| {
        let calls = gradients(&program(
            &Recipe { bucket_bytes, first_bucket_bytes: bucket_bytes, ..job("gpt2_xl", 8) },
            0,
        ));
        let mut sizes: Vec<u64> = calls.iter().map(|call| call.bytes).collect();
        sizes.sort_unstable();
        (sizes.len(), sizes[sizes.len() / 2])
    };
    let [wfbp, ddp, fused] = [count(0), count(25 << 20), count(1 << 30)];
    assert!(wfbp.0 > 500 && ddp.0 > 50 && fused.0 < 10, "{wfbp:?} {ddp:?} {fused:?}");
    assert!(wfbp.1 < ddp.1 && ddp.1 < fused.1, "{wfbp:?} {ddp:?} {fused:?}");
}

#[test]
fn buckets_hold_whole_tensors_and_start_small() {
    let recipe = job("bert_large", 8);
    let calls = gradients(&program(&recipe, 0));
    let widest = 30_522 * 1024 * 4;
    assert!(calls[0].bytes < calls[1].bytes);
    let (last, full) = calls.split_last().unwrap();
    assert!(full[1..].iter().all(|call| call.bytes >= 25 << 20), "closed only once full");
    assert!(full.iter().all(|call| call.bytes < (25 << 20) + widest));
    // The embedding comes last, because the backward pass reaches it last.
    assert!(last.bytes >= widest || full.last().unwrap().bytes >= widest);
}

#[test]
fn late_layers_go_first_and_early_ones_with_more_right() {
    let calls = gradients(&program(&job("gpt2_xl", 8), 0));
    assert!(calls.windows(2).all(|pair| pair[0].priority <= pair[1].priority));
    assert_eq!((calls[0].priority, calls.last().unwrap().priority), (Some(1), Some(4)));
}

#[test]
fn backward_compute_hides_buckets_but_for_the_last() {
    let program = program(&job("gpt2_xl", 8), 0);
    let calls = gradients(&program);
    assert!(calls.iter().all(|call| !call.blocking));
    for pair in calls.windows(2) {
        assert_eq!(pair[0].beside, pair[1].window);
    }
    assert!(calls.iter().filter(|call| call.beside > 0.0).count() > calls.len() / 2);
    let exposed = crate::program(&Recipe { overlap: false, ..job("gpt2_xl", 8) }, 0);
    assert!(exposed.calls.iter().all(|call| call.blocking && call.beside == 0.0));
    assert!((exposed.compute() / program.compute() - 1.0).abs() < 1e-12);
}

#[test]
fn gradients_travel_in_the_last_micro_batch_only() {
    let recipe = Recipe { micro_batches: 4, ..job("gpt2_xl", 8) };
    let calls = gradients(&program(&recipe, 0));
    assert!(calls.iter().all(|call| call.micro_batch == Some(3)));
    assert_eq!(bytes(&calls), recipe.model.params() * 4);
}

#[test]
fn compression_changes_bytes_and_calls() {
    let plain = program(&job("gpt2_xl", 8), 0);
    let whole = bytes(&gradients(&plain)) as f64;
    let with = |compression| {
        let program = program(&Recipe { compression, ..job("gpt2_xl", 8) }, 0);
        assert!(compression == Compression::None || program.compute() > plain.compute());
        gradients(&program)
    };
    for (compression, collective, rate) in [
        (Compression::Fp16, AllReduce, 2.0),
        (Compression::Int8, AllReduce, 4.0),
        (Compression::Sign, AllReduce, 32.0),
        // NCCL counts the parts of all 8 ranks.
        (Compression::TopK, AllGather, 1000.0 / 8.0),
        (Compression::RandomK, AllGather, 100.0 / 8.0),
        (Compression::Combined, AllGather, 117.0 / 8.0),
    ] {
        let calls = with(compression);
        assert!(calls.iter().all(|call| call.collective == collective), "{compression}");
        let seen = whole / bytes(&calls) as f64;
        assert!((seen / rate - 1.0).abs() < 0.02, "{compression}: {seen} beside {rate}");
    }
    let low = with(Compression::LowRank);
    assert_eq!(low.len(), 2 * with(Compression::None).len());
    assert!(whole / bytes(&low) as f64 > 100.0);
}

#[test]
fn local_sgd_synchronises_every_tau_iterations() {
    let mut recipe = Recipe { sync: SyncMode::Local, tau: 4, ..job("gpt2_xl", 8) };
    let synchronised: Vec<u64> = (0..12)
        .map(|i| bytes(&gradients(&iteration(&recipe, 0, recipe.synchronises(i % 4), A100).unwrap())))
        .collect();
    let whole = recipe.model.params() * 4;
    let expected: Vec<u64> = (0..12u32).map(|i| if i % 4 == 3 { whole } else { 0 }).collect();
    assert_eq!(synchronised, expected);
    let quiet = iteration(&recipe, 0, false, A100).unwrap();
    assert!(quiet.calls.is_empty(), "nobody waits for anybody: {:?}", quiet.calls);
    recipe.sync = SyncMode::Bsp;
    assert!((0..12).all(|i| recipe.synchronises(i)));
}

#[test]
fn gossip_talks_to_two_neighbours() {
    let recipe = Recipe { sync: SyncMode::Decentralised, ..job("gpt2_xl", 8) };
    let calls = gradients(&program(&recipe, 0));
    assert!(calls.iter().all(|call| call.collective == SendRecv && call.pipelined == 2));
    assert_eq!(bytes(&calls), 2 * recipe.model.params() * 4);
    let pair = gradients(&program(&Recipe { layout: Layout { dp: 2, ..recipe.layout }, ..recipe }, 0));
    assert!(pair.iter().all(|call| call.pipelined == 1), "of two ranks each has one neighbour");
}

#[test]
fn asynchrony_changes_who_waits_and_not_what_is_sent() {
    let bsp = program(&job("gpt2_xl", 8), 0);
    for sync in [SyncMode::Async, SyncMode::Stale, SyncMode::Hybrid] {
        assert_eq!(program(&Recipe { sync, ..job("gpt2_xl", 8) }, 0), bsp);
    }
}

#[test]
fn shards_refuse_what_needs_whole_parameters() {
    let layout = Layout { dp: 2, fsdp: true, ..Layout::default() };
    let recipe = Recipe::new(small(), layout);
    let local = Recipe { sync: SyncMode::Local, ..recipe.clone() };
    assert!(local.check().unwrap_err().to_string().contains("sync = local: it averages whole parameters"));
    let sparse = Recipe { compression: Compression::TopK, ..recipe.clone() };
    assert!(sparse.check().unwrap_err().to_string().contains("compression = top_k"));
    let half = Recipe { compression: Compression::Fp16, ..recipe };
    let data = volumes(&program(&half, 0), Group::Data);
    assert_eq!(data[&Collective::ReduceScatter].1, small().params() * 2);
}
