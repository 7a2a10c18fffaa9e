//! What jobs call, beside what papers report and what one can count by hand.

mod any_layout;
mod by_hand;
mod photonic_rails;
mod replicas;
mod timeline;
mod windows;

use std::collections::BTreeMap;

use dynamiccl_env::workload::{Group, ModelShape, Program, Recipe, iteration};
use dynamiccl_spec::Collective;

/// What an A100 sustains in a µs: 45 % of 312 TFLOP/s.
const A100: f64 = 1.4e8;

/// A model so small that its volumes can be counted by hand. With 16 tokens of 8 × 2 bytes an
/// activation is 256 bytes; attention has 8 + 4·64, the feed-forward network 8 + 2·256 parameters.
fn small() -> ModelShape {
    ModelShape {
        name: "small".to_owned(),
        layers: 4,
        hidden: 8,
        ffn: 32,
        heads: 4,
        kv_heads: 4,
        vocab: 100,
        sequence: 16,
        experts: 0,
        experts_per_token: 0,
        gated: false,
        tied: false,
        biased: false,
        positions: 0,
    }
}

fn program(recipe: &Recipe, stage: u8) -> Program {
    iteration(recipe, stage, true, A100).unwrap()
}

/// Number and bytes of the calls of each kind in a group.
fn volumes(program: &Program, group: Group) -> BTreeMap<Collective, (usize, u64)> {
    let mut volumes = BTreeMap::new();
    for call in program.calls.iter().filter(|call| call.group == group) {
        let entry = volumes.entry(call.collective).or_insert((0, 0));
        *entry = (entry.0 + 1, entry.1 + call.bytes);
    }
    volumes
}
