//! Volumes of every parallelism on a model that is small enough to count (table 2 of "Photonic Rails in
//! ML Datacenters"), and how they compare on models of real size.

use dynamiccl_env::workload::{Group, Layout, ModelShape, Recipe, WorkloadError, iteration};
use dynamiccl_spec::Collective::{AllGather, AllReduce, AllToAll, AllToAllV, ReduceScatter, SendRecv};
use dynamiccl_spec::{Parallelism, Role};

use crate::{A100, program, small, volumes};

#[test]
fn tensor_parallelism_reduces_twice_per_layer_and_pass() {
    let recipe = Recipe::new(small(), Layout { tp: 2, ..Layout::default() });
    let tensor = volumes(&program(&recipe, 0), Group::Tensor);
    // 4 layers × 2 × 2 passes, the embedding and the output: 18 activations. Beside them three numbers
    // per token for the loss, and the gradient norm.
    assert_eq!(tensor.into_iter().collect::<Vec<_>>(), [(AllReduce, (22, 18 * 256 + 3 * 64 + 4))]);
}

#[test]
fn sequence_parallelism_gathers_and_scatters_instead() {
    let layout = Layout { tp: 2, sequence_parallel: true, ..Layout::default() };
    let tensor = volumes(&program(&Recipe::new(small(), layout), 0), Group::Tensor);
    assert_eq!(tensor[&AllGather], (18, 18 * 256));
    assert_eq!(tensor[&ReduceScatter], (18, 18 * 256));
    assert_eq!(tensor[&AllReduce], (4, 3 * 64 + 4));
}

#[test]
fn context_parallelism_gathers_keys_and_values() {
    let recipe = Recipe::new(small(), Layout { cp: 2, ..Layout::default() });
    let program = program(&recipe, 0);
    let context = volumes(&program, Group::Context);
    // Keys and values of the whole sequence: 2 × 16 tokens × 8 × 2 bytes, per layer.
    assert_eq!(context[&AllGather], (4, 4 * 512));
    assert_eq!(context[&ReduceScatter], (4, 4 * 512));
    assert!(volumes(&program, Group::Data).contains_key(&AllReduce), "context ranks share parameters");
}

#[test]
fn expert_parallelism_exchanges_twice_per_layer_and_pass() {
    let model = ModelShape { experts: 4, experts_per_token: 2, ..small() };
    let mut recipe = Recipe::new(model, Layout { dp: 4, ep: 2, ..Layout::default() });
    let balanced = program(&recipe, 0);
    assert_eq!(volumes(&balanced, Group::Expert)[&AllToAll], (16, 16 * 512));
    // Two of four experts per rank, each with 512 parameters, in 4 layers.
    assert_eq!(volumes(&balanced, Group::ExpertData)[&AllReduce].1, 4 * 2 * 512 * 4);
    recipe.imbalance = 1.5;
    let unbalanced = program(&recipe, 0);
    assert_eq!(volumes(&unbalanced, Group::Expert)[&AllToAllV], (16, 16 * 768));
    assert!(unbalanced.compute() > balanced.compute(), "the busiest rank is the one that counts");
    assert_eq!(recipe.layout.parallelism(), Parallelism::Moe);
}

#[test]
fn a_pipeline_sends_once_per_micro_batch_and_way() {
    let layout = Layout { pp: 2, tp: 2, ..Layout::default() };
    for (sequence_parallel, bytes) in [(false, 256), (true, 128)] {
        let layout = Layout { sequence_parallel, ..layout };
        let recipe = Recipe { micro_batches: 3, ..Recipe::new(small(), layout) };
        for stage in [0, 1] {
            let program = program(&recipe, stage);
            let of = |role| program.calls.iter().filter(move |call| call.role == role);
            for role in [Role::ActivationSend, Role::ActivationRecv] {
                assert_eq!(of(role).count(), 3);
                assert!(of(role).all(|call| call.bytes == bytes && call.peer == Some(1 - stage)));
            }
        }
    }
}

#[test]
fn a_stage_warms_up_holds_and_cools_down() {
    let recipe = Recipe { micro_batches: 4, ..Recipe::new(small(), Layout { pp: 4, ..Layout::default() }) };
    let order = |stage| -> String {
        let program = program(&recipe, stage);
        let way = |call: &dynamiccl_env::workload::Planned| {
            let forward = call.peer > Some(call.stage);
            let batch = call.micro_batch.unwrap();
            match (call.role, forward) {
                (Role::ActivationSend, true) => format!("F{batch}"),
                (Role::ActivationSend, false) => format!("B{batch}"),
                _ => String::new(),
            }
        };
        program.calls.iter().filter(|call| call.is_transfer()).map(way).collect()
    };
    assert_eq!(order(0), "F0F1F2F3");
    assert_eq!(order(1), "F0F1F2B0F3B1B2B3");
    assert_eq!(order(2), "F0F1B0F2B1F3B2B3");
    assert_eq!(order(3), "B0B1B2B3");
}

#[test]
fn shards_are_gathered_per_layer_and_reduced_once() {
    let layout = Layout { dp: 2, fsdp: true, ..Layout::default() };
    let params = small().params();
    let dropped = Recipe::new(small(), layout);
    let data = volumes(&program(&dropped, 0), Group::Data);
    // The embedding, 4 layers, norm and output; in both passes.
    assert_eq!(data[&AllGather], (12, 2 * params * 2));
    assert_eq!(data[&ReduceScatter], (6, params * 4));
    let kept = Recipe { reshard: false, micro_batches: 3, ..dropped.clone() };
    let data = volumes(&program(&kept, 0), Group::Data);
    assert_eq!((data[&AllGather].0, data[&ReduceScatter].0), (6, 6));
    let per_batch = Recipe { micro_batches: 3, ..dropped };
    let data = volumes(&program(&per_batch, 0), Group::Data);
    assert_eq!((data[&AllGather].0, data[&ReduceScatter].0), (36, 18));
}

#[test]
fn a_shared_embedding_joins_first_and_last_stage() {
    let model = ModelShape { tied: true, ..small() };
    let recipe = Recipe::new(model, Layout { pp: 4, ..Layout::default() });
    let embedding = |stage| volumes(&program(&recipe, stage), Group::Embedding);
    assert_eq!(embedding(0)[&AllReduce], (1, 100 * 8 * 4));
    assert_eq!(embedding(0), embedding(3));
    assert!(embedding(1).is_empty());
}

#[test]
fn slicing_layers_moves_far_less_than_splitting_them() {
    // 2.2 × 10⁹ parameters, spread over 8 ranks.
    let model = ModelShape {
        name: "2.2b".to_owned(),
        layers: 48,
        hidden: 1920,
        ffn: 7680,
        heads: 16,
        kv_heads: 16,
        vocab: 32_000,
        sequence: 1024,
        ..small()
    };
    assert!((model.params() as f64 / 2.2e9 - 1.0).abs() < 0.05, "{}", model.params());
    let tensor = Recipe::new(model.clone(), Layout { tp: 8, ..Layout::default() });
    let split = volumes(&program(&tensor, 0), Group::Tensor)[&AllReduce].1 as f64;
    let split = 8.0 * split * AllReduce.bus_factor(8);
    let sliced = Recipe { micro_batches: 1, ..Recipe::new(model, Layout { pp: 8, ..Layout::default() }) };
    // Each transfer has two ends.
    let sent: u64 = (0..8).map(|s| volumes(&program(&sliced, s), Group::Pipeline)[&SendRecv].1).sum();
    let ratio = split / (sent as f64 / 2.0);
    assert!(ratio > 100.0 && ratio < 1000.0, "{ratio}");
}

#[test]
fn sizes_of_a_3d_job_are_bimodal() {
    let model = ModelShape::preset("gpt3_175b").unwrap();
    let layout = Layout { dp: 8, tp: 8, pp: 8, ..Layout::default() };
    assert_eq!(layout.parallelism(), Parallelism::ThreeD);
    let recipe = Recipe { bucket_bytes: 1 << 30, first_bucket_bytes: 1 << 30, ..Recipe::new(model, layout) };
    let program = program(&recipe, 3);
    // 2048 tokens × 12288 × 2 bytes are 48 MiB; gradients fill buckets of 1 GiB but for one left-over.
    let count =
        |sizes: std::ops::Range<u64>| program.calls.iter().filter(|call| sizes.contains(&call.bytes)).count();
    let [small, between, large] = [count(0..49 << 20), count(49 << 20..1 << 30), count(1 << 30..u64::MAX)];
    assert!(small > 50 * large && large > 5 && between <= 1, "{small}, {between}, {large}");
}

#[test]
fn compute_is_that_of_the_model() {
    let recipe = Recipe { micro_batches: 2, ..Recipe::new(small(), Layout::default()) };
    let program = program(&recipe, 0);
    assert!(program.calls.is_empty(), "one rank talks to nobody");
    // 6 operations per parameter and token, the attention's scores extra; neither embedding nor norm.
    let matrices = 4.0 * (4.0 * 64.0 + 8.0 + 2.0 * 256.0 + 8.0) + 800.0;
    let scores = 4.0 * 16.0 * 8.0;
    let passes = 2.0 * 3.0 * 2.0 * 16.0 * (matrices + scores);
    let step = 5.0 * 700.0 * small().params() as f64;
    assert!((program.compute() * A100 / (passes + step) - 1.0).abs() < 1e-12);
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    let says = |layout: Layout| {
        let recipe = Recipe::new(small(), layout);
        iteration(&recipe, 0, true, A100).unwrap_err().to_string()
    };
    assert_eq!(
        says(Layout { tp: 3, ..Layout::default() }),
        "layout dp1 tp3 pp1 cp1 ep1: tp = 3: give a divisor of the 4 heads of small"
    );
    assert!(says(Layout { pp: 5, ..Layout::default() }).contains("give at most 4, small has 4 layers"));
    assert!(says(Layout { dp: 0, ..Layout::default() }).contains("dp = 0"));
    assert!(says(Layout { dp: 2, ep: 2, ..Layout::default() }).contains("experts"));
    assert!(says(Layout { fsdp: true, ..Layout::default() }).contains("nothing to shard"));
    assert!(says(Layout { dp: 1 << 20, tp: 4, ..Layout::default() }).contains("product"));
    let plain = Recipe::new(small(), Layout::default());
    assert!(matches!(iteration(&plain, 1, true, A100), Err(WorkloadError::Recipe { what: "stage", .. })));
    for flops in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(iteration(&plain, 0, true, flops).is_err(), "{flops}");
    }
}
