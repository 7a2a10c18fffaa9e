//! The shape of a transformer, and the tensors that follow from it.
//!
//! Parameters are counted from the tensors that one rank holds, so that volumes of gradients, of
//! shards and of the whole model can never disagree. Nothing here knows how a model is spread.

use super::error::WorkloadError;

/// What a transformer is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelShape {
    /// Its name.
    pub name: String,
    /// Transformer layers.
    pub layers: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Width of the feed-forward layer; of one expert where there are several.
    pub ffn: u32,
    /// Attention heads.
    pub heads: u32,
    /// Heads of keys and values; fewer than `heads` with grouped-query attention.
    pub kv_heads: u32,
    /// Words.
    pub vocab: u32,
    /// Tokens of one sequence.
    pub sequence: u32,
    /// Experts of each layer; 0 for a dense model.
    pub experts: u32,
    /// Experts that each token visits; 0 for a dense model.
    pub experts_per_token: u32,
    /// Whether the feed-forward layer has a gate, and so a third matrix (SwiGLU).
    pub gated: bool,
    /// Whether the output layer is the embedding again.
    pub tied: bool,
    /// Whether linear layers and norms have biases.
    pub biased: bool,
    /// Learned positions; 0 where positions are computed (rotary).
    pub positions: u32,
}

/// A part of the model between two points at which a rank may communicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Words to vectors.
    Embedding,
    /// One layer's attention.
    Attention,
    /// One layer's feed-forward network, or its experts.
    Mlp,
    /// Last norm; the output layer is extra.
    Norm,
    /// Vectors to words.
    Output,
}

/// Elements of the tensors that one rank holds of a part, in the order of the forward pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tensors {
    /// Held by every data-parallel replica.
    pub dense: Vec<u64>,
    /// Held by the replicas that have the same experts.
    pub expert: Vec<u64>,
}

/// Largest value of each field, so that volumes fit into 64 bits.
const BOUNDS: [(&str, u32); 7] = [
    ("layers", 1 << 12),
    ("hidden", 1 << 18),
    ("ffn", 1 << 20),
    ("heads", 1 << 12),
    ("vocab", 1 << 24),
    ("sequence", 1 << 24),
    ("experts", 1 << 10),
];

impl ModelShape {
    /// Number of parameters.
    pub fn params(&self) -> u64 {
        let of = |part| self.tensors(part, 1, 1).elements();
        let layer = of(Part::Attention) + of(Part::Mlp);
        let output = if self.tied { 0 } else { of(Part::Output) };
        of(Part::Embedding) + u64::from(self.layers) * layer + of(Part::Norm) + output
    }

    /// Width of all keys together, and of all values.
    pub fn kv_width(&self) -> u64 {
        u64::from(self.hidden) / u64::from(self.heads) * u64::from(self.kv_heads)
    }

    /// What one of `tp` tensor-parallel ranks with `1/ep` of the experts holds of a part.
    pub(super) fn tensors(&self, part: Part, tp: u32, ep: u32) -> Tensors {
        let (hidden, ffn, tp) = (u64::from(self.hidden), u64::from(self.ffn), u64::from(tp));
        // Rows of the vocabulary are padded until every rank has the same number.
        let words = u64::from(self.vocab).div_ceil(tp) * hidden;
        let norm = || if self.biased { vec![hidden, hidden] } else { vec![hidden] };
        let (mut dense, mut expert) = (Vec::new(), Vec::new());
        match part {
            Part::Embedding => {
                dense.push(words);
                dense.extend((self.positions > 0).then(|| u64::from(self.positions) * hidden));
            }
            Part::Attention => {
                dense.extend(norm());
                let kv = self.kv_width() / tp;
                for width in [hidden / tp, kv, kv] {
                    dense.push(hidden * width);
                    dense.extend(self.biased.then_some(width));
                }
                dense.push(hidden * hidden / tp);
                dense.extend(self.biased.then_some(hidden));
            }
            Part::Mlp => {
                dense.extend(norm());
                let mut network = vec![hidden * ffn / tp; if self.gated { 3 } else { 2 }];
                network.extend(self.biased.then_some(ffn / tp));
                network.extend(self.biased.then_some(hidden));
                if self.experts == 0 {
                    dense.extend(network);
                } else {
                    dense.push(hidden * u64::from(self.experts));
                    expert = network.repeat((self.experts / ep) as usize);
                }
            }
            Part::Norm => dense.extend(norm()),
            Part::Output => dense.push(words),
        }
        Tensors { dense, expert }
    }

    /// Floating-point operations of a part's forward pass for `tokens` tokens in sequences of full
    /// length, over all tensor-parallel ranks.
    pub(super) fn forward_flops(&self, part: Part, tokens: f64) -> f64 {
        let matrices = |elements: u64| 2.0 * elements as f64 * tokens;
        let tensors = self.tensors(part, 1, 1);
        let dense: u64 = tensors.dense.iter().sum();
        match part {
            // Looking up and normalising are no matrix products.
            Part::Embedding | Part::Norm => 0.0,
            // Scores and their sum: two products, of which a causal mask leaves half.
            Part::Attention => {
                matrices(dense) + 2.0 * tokens * f64::from(self.sequence) * f64::from(self.hidden)
            }
            Part::Mlp => {
                let experts: u64 = tensors.expert.iter().sum();
                let visited = f64::from(self.experts_per_token) / f64::from(self.experts.max(1));
                matrices(dense) + matrices(experts) * visited
            }
            Part::Output => matrices(dense),
        }
    }

    /// Whether such a model can exist.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let refuse = |what, value: u32, remedy: String| {
            let (model, value) = (self.name.clone(), value.to_string());
            Err(WorkloadError::Model { model, what, value, remedy })
        };
        let values =
            [self.layers, self.hidden, self.ffn, self.heads, self.vocab, self.sequence, self.experts];
        for ((what, most), value) in BOUNDS.into_iter().zip(values) {
            let least = u32::from(what != "experts");
            if !(least..=most).contains(&value) {
                return refuse(what, value, format!("give {least} to {most}"));
            }
        }
        if self.positions > BOUNDS[5].1 {
            return refuse("positions", self.positions, format!("give 0 to {}", BOUNDS[5].1));
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return refuse("hidden", self.hidden, format!("give a multiple of the {} heads", self.heads));
        }
        if self.kv_heads == 0 || !self.heads.is_multiple_of(self.kv_heads) {
            return refuse("kv_heads", self.kv_heads, format!("give a divisor of the {} heads", self.heads));
        }
        let visits = if self.experts == 0 { 0..=0 } else { 1..=self.experts.min(64) };
        if !visits.contains(&self.experts_per_token) {
            let remedy = format!("give {} to {}", visits.start(), visits.end());
            return refuse("experts_per_token", self.experts_per_token, remedy);
        }
        Ok(())
    }
}

impl Tensors {
    /// All elements.
    pub(super) fn elements(&self) -> u64 {
        self.dense.iter().chain(&self.expert).sum()
    }
}
