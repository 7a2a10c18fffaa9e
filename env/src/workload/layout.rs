//! Parallel degrees: how many ranks share what.

use std::fmt;

use dynamiccl_spec::Parallelism;

use super::error::WorkloadError;
use super::model::ModelShape;

/// How a model is spread over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Replicas that work on different sequences.
    pub dp: u32,
    /// Ranks that share every layer's matrices.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// Ranks that share a sequence.
    pub cp: u32,
    /// Ranks that share the experts; they are data- and context-parallel ranks too.
    pub ep: u32,
    /// Whether replicas hold shards of the parameters instead of all of them.
    pub fsdp: bool,
    /// Whether activations between tensor-parallel regions are split along the sequence.
    pub sequence_parallel: bool,
}

/// Most stages, because a stage is a byte.
const STAGES: u32 = 256;
/// Most ranks of one job.
const RANKS: u64 = 1 << 20;

impl Default for Layout {
    fn default() -> Self {
        Layout { dp: 1, tp: 1, pp: 1, cp: 1, ep: 1, fsdp: false, sequence_parallel: false }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dp{} tp{} pp{} cp{} ep{}", self.dp, self.tp, self.pp, self.cp, self.ep)?;
        let marks = [(self.fsdp, " fsdp"), (self.sequence_parallel, " sp")];
        marks.iter().filter(|(on, _)| *on).try_for_each(|(_, mark)| f.write_str(mark))
    }
}

impl Layout {
    /// All ranks. Experts take no ranks of their own.
    pub fn ranks(&self) -> u32 {
        self.dp * self.tp * self.pp * self.cp
    }

    /// The one word for it: MoE before 3D before FSDP before TP (and CP) before PP before DP.
    pub fn parallelism(&self) -> Parallelism {
        if self.ep > 1 {
            Parallelism::Moe
        } else if self.tp > 1 && self.pp > 1 && self.dp > 1 {
            Parallelism::ThreeD
        } else if self.fsdp {
            Parallelism::Fsdp
        } else if self.tp > 1 || self.cp > 1 {
            Parallelism::Tp
        } else if self.pp > 1 {
            Parallelism::Pp
        } else {
            Parallelism::Dp
        }
    }

    /// Layers of a stage. Where stages do not divide layers, the embedding and the output count as a
    /// layer each, as in TorchTitan and in Llama 3's own training.
    pub fn layers_of(&self, model: &ModelShape, stage: u32) -> u32 {
        let share = |units: u32| units / self.pp + u32::from(stage < units % self.pp);
        let ends = u32::from(stage == 0) + u32::from(stage + 1 == self.pp);
        let weighted = model.layers + 2;
        if model.layers.is_multiple_of(self.pp) || weighted < 2 * self.pp {
            share(model.layers)
        } else {
            share(weighted) - ends
        }
    }

    /// First layer of a stage.
    pub fn first_layer(&self, model: &ModelShape, stage: u32) -> u32 {
        (0..stage).map(|s| self.layers_of(model, s)).sum()
    }

    /// Whether these degrees fit this model and each other.
    pub fn check(&self, model: &ModelShape) -> Result<(), WorkloadError> {
        let refuse = |what, value: u64, remedy: String| {
            let (layout, value) = (self.to_string(), value.to_string());
            Err(WorkloadError::Layout { layout, what, value, remedy })
        };
        for (what, degree) in
            [("dp", self.dp), ("tp", self.tp), ("pp", self.pp), ("cp", self.cp), ("ep", self.ep)]
        {
            if degree == 0 || u64::from(degree) > RANKS {
                return refuse(what, degree.into(), format!("give 1 to {RANKS}"));
            }
        }
        let product = [self.dp, self.tp, self.pp, self.cp].into_iter().map(u64::from);
        let ranks = product.fold(1u64, u64::saturating_mul);
        if ranks > RANKS {
            return refuse("ranks", ranks, format!("give degrees whose product is at most {RANKS}"));
        }
        let most = model.layers.min(STAGES);
        if self.pp > most {
            let remedy = format!("give at most {most}, {} has {} layers", model.name, model.layers);
            return refuse("pp", self.pp.into(), remedy);
        }
        for (what, degree, divided, of) in [
            ("tp", self.tp, model.heads, "heads"),
            ("tp", self.tp, model.kv_heads, "key-value heads"),
            ("tp", self.tp, model.ffn, "wide feed-forward layer"),
            ("cp", self.cp, model.sequence, "tokens of a sequence"),
            ("ep", self.ep, model.experts, "experts"),
            ("ep", self.ep, self.dp * self.cp, "data- and context-parallel ranks"),
        ] {
            if degree > 1 && (divided == 0 || !divided.is_multiple_of(degree)) {
                let remedy = format!("give a divisor of the {divided} {of} of {}", model.name);
                return refuse(what, degree.into(), remedy);
            }
        }
        if self.sequence_parallel && !(model.sequence / self.cp).is_multiple_of(self.tp) {
            let remedy = "give a divisor of the tokens that a rank has, or no sequence_parallel".to_owned();
            return refuse("tp", self.tp.into(), remedy);
        }
        if self.fsdp && self.dp * self.cp == 1 {
            return refuse("dp", 1, "give at least 2 with fsdp, one rank has nothing to shard".to_owned());
        }
        Ok(())
    }
}
