//! Parallel degrees that fit a machine: how a framework would spread a model over these ranks.

use dynamiccl_spec::Parallelism;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::workload::{Layout, ModelShape};
use crate::world::draw::uniform;

/// Most pipeline stages that are drawn.
const STAGES: u32 = 8;
/// Share of jobs with tensor parallelism that also split sequences over two ranks.
const CONTEXT_PARALLEL: f64 = 0.2;

/// Draws degrees of this kind for `ranks` ranks on nodes of `gpus`; nothing where none fit.
pub(super) fn draw(
    kind: Parallelism,
    model: &ModelShape,
    ranks: u32,
    gpus: u32,
    rng: &mut ChaCha8Rng,
) -> Option<Layout> {
    let mut layout = Layout { dp: ranks, ..Layout::default() };
    match kind {
        Parallelism::Unknown => return None,
        Parallelism::Dp => {}
        Parallelism::Fsdp => layout.fsdp = true,
        Parallelism::Tp => layout.split_tensors(gpus, rng),
        Parallelism::Pp => layout.split_layers(STAGES, rng),
        Parallelism::ThreeD => {
            layout.split_tensors(gpus.min(ranks / 4), rng);
            layout.split_layers((layout.dp / 2).min(STAGES), rng);
        }
        Parallelism::Moe => layout.ep = common(model.experts, ranks),
    }
    (layout.check(model).is_ok() && layout.parallelism() == kind).then_some(layout)
}

impl Layout {
    fn split_tensors(&mut self, most: u32, rng: &mut ChaCha8Rng) {
        self.tp = degree(most, self.dp, rng);
        self.dp /= self.tp;
        self.sequence_parallel = self.tp > 1 && uniform(rng) < 0.5;
        if uniform(rng) < CONTEXT_PARALLEL && self.dp.is_multiple_of(4) {
            (self.cp, self.dp) = (2, self.dp / 2);
        }
    }

    fn split_layers(&mut self, most: u32, rng: &mut ChaCha8Rng) {
        self.pp = degree(most, self.dp, rng);
        self.dp /= self.pp;
    }
}

/// A power of two from 2 to `most` that divides `ranks`, or 1 where there is none.
fn degree(most: u32, ranks: u32, rng: &mut ChaCha8Rng) -> u32 {
    let steps = ranks.trailing_zeros().min(most.max(1).ilog2());
    if steps == 0 { 1 } else { 1 << rng.random_range(1..=steps) }
}

/// The largest power of two that divides both.
fn common(a: u32, b: u32) -> u32 {
    1 << a.trailing_zeros().min(b.trailing_zeros())
}
