//! Models that people train, by name.
//!
//! Shapes are those of the published configurations; `docs/workloads.md` names the sources.

use dynamiccl_spec::words;

use super::error::WorkloadError;
use super::model::ModelShape;

/// A preset: name, layers, hidden, ffn, heads, key-value heads, vocabulary, sequence, experts, experts
/// per token, family.
type Row = (&'static str, u32, u32, u32, u32, u32, u32, u32, u32, u32, Family);

#[derive(Debug, Clone, Copy)]
enum Family {
    /// Learned positions, biases, tied output, no gate.
    Gpt,
    /// Rotary positions, gate, no biases, an output layer of its own.
    Llama,
}

const PRESETS: [Row; 7] = [
    ("bert_large", 24, 1024, 4096, 16, 16, 30_522, 512, 0, 0, Family::Gpt),
    ("gpt2_xl", 48, 1600, 6400, 25, 25, 50_257, 1024, 0, 0, Family::Gpt),
    ("llama3_8b", 32, 4096, 14_336, 32, 8, 128_256, 8192, 0, 0, Family::Llama),
    ("mixtral_8x7b", 32, 4096, 14_336, 32, 8, 32_000, 4096, 8, 2, Family::Llama),
    ("llama3_70b", 80, 8192, 28_672, 64, 8, 128_256, 8192, 0, 0, Family::Llama),
    ("gpt3_175b", 96, 12_288, 49_152, 96, 96, 50_257, 2048, 0, 0, Family::Gpt),
    ("llama3_405b", 126, 16_384, 53_248, 128, 8, 128_256, 8192, 0, 0, Family::Llama),
];

/// All presets, smallest first.
pub fn presets() -> Vec<ModelShape> {
    PRESETS.iter().map(shape).collect()
}

impl ModelShape {
    /// The preset with this name.
    pub fn preset(name: &str) -> Result<ModelShape, WorkloadError> {
        let known: Vec<(&str, usize)> = PRESETS.iter().enumerate().map(|(i, row)| (row.0, i)).collect();
        let at = words::look_up("model", name, &known).map_err(WorkloadError::UnknownModel)?;
        Ok(shape(&PRESETS[at]))
    }
}

fn shape(row: &Row) -> ModelShape {
    let &(name, layers, hidden, ffn, heads, kv_heads, vocab, sequence, experts, per_token, family) = row;
    let gpt = matches!(family, Family::Gpt);
    ModelShape {
        name: name.to_owned(),
        layers,
        hidden,
        ffn,
        heads,
        kv_heads,
        vocab,
        sequence,
        experts,
        experts_per_token: per_token,
        gated: !gpt,
        tied: gpt,
        biased: gpt,
        positions: if gpt { sequence } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_published_number_of_parameters() {
        for (name, published) in [
            ("bert_large", 335e6),
            ("gpt2_xl", 1.5576e9),
            ("llama3_8b", 8.03e9),
            ("mixtral_8x7b", 46.7e9),
            ("llama3_70b", 70.55e9),
            ("gpt3_175b", 175e9),
            ("llama3_405b", 405e9),
        ] {
            let params = ModelShape::preset(name).unwrap().params() as f64;
            assert!((params / published - 1.0).abs() < 0.01, "{name}: {params}");
        }
    }

    #[test]
    fn presets_can_exist_and_typos_are_answered() {
        for shape in presets() {
            assert_eq!(shape.check(), Ok(()));
        }
        let error = ModelShape::preset("llama3_8").unwrap_err().to_string();
        assert!(error.starts_with("unknown model \"llama3_8\"; did you mean \"llama3_8b\"?"), "{error}");
    }
}
