//! A policy that this build can run, as `inspect` shows it.

use dynamiccl_policies::frozen::{FORMAT, Frozen, Training};
use dynamiccl_spec::Gate;
use dynamiccl_spec::features::{VERSION, hash};
use serde::Serialize;

/// A policy that this build can run.
#[derive(Debug, Serialize)]
pub struct Runnable {
    name: String,
    hash: String,
    format: &'static str,
    features: &'static str,
    encoder: String,
    parameters: usize,
    shape: Widths,
    margin: f32,
    gates: Vec<Gate>,
    nccl: Vec<String>,
    training: Provenance,
    results: Vec<Score>,
}

#[derive(Debug, Serialize)]
struct Widths {
    embedding: usize,
    memory: usize,
    expert: usize,
    resource: usize,
}

#[derive(Debug, Serialize)]
struct Provenance {
    curriculum: String,
    seeds: Vec<u64>,
    steps: u64,
    version: String,
    command: String,
    created: String,
    parent: Option<String>,
}

#[derive(Debug, Serialize)]
struct Score {
    what: String,
    value: f64,
}

impl Runnable {
    /// What there is to say about a policy.
    pub fn new(frozen: &Frozen) -> Self {
        let Frozen { weights, about } = frozen;
        let shape = weights.shape();
        let score = |(what, value): &(String, f64)| Score { what: what.clone(), value: *value };
        Runnable {
            name: about.name.clone(),
            hash: format!("{:016x}", frozen.hash()),
            format: FORMAT,
            features: VERSION,
            encoder: format!("{:016x}", hash()),
            parameters: weights.tensors().map(|(_, _, numbers)| numbers.len()).sum(),
            shape: Widths {
                embedding: shape.embedding,
                memory: shape.memory,
                expert: shape.expert,
                resource: shape.resource,
            },
            margin: about.margin,
            gates: about.gates.iter().collect(),
            nccl: about.nccl.clone(),
            training: Provenance::new(&about.training),
            results: about.results.iter().map(score).collect(),
        }
    }

    /// The same as names and values; what nobody has said is left out.
    pub fn lines(&self) -> Vec<(String, String)> {
        let Widths { embedding, memory, expert, resource } = self.shape;
        let shape = format!("embedding {embedding}, memory {memory}, expert {expert}, resource {resource}");
        let Provenance { curriculum, seeds, steps, version, command, created, parent } = &self.training;
        let lines = [
            ("name", self.name.clone()),
            ("hash", self.hash.clone()),
            ("format", self.format.to_owned()),
            ("features", format!("{} ({})", self.features, self.encoder)),
            ("shape", shape),
            ("parameters", self.parameters.to_string()),
            ("margin", self.margin.to_string()),
            ("gates", joined(&self.gates)),
            ("nccl", joined(&self.nccl)),
            ("curriculum", curriculum.clone()),
            ("seeds", joined(seeds)),
            ("steps", steps.to_string()),
            ("version", version.clone()),
            ("command", command.clone()),
            ("created", created.clone()),
            ("parent", parent.clone().unwrap_or_default()),
        ];
        let scores = self.results.iter().map(|Score { what, value }| (what.clone(), value.to_string()));
        let lines = lines.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(scores);
        lines.filter(|(_, value)| !value.is_empty()).collect()
    }
}

impl Provenance {
    fn new(training: &Training) -> Self {
        let Training { curriculum, seeds, steps, version, command, created, parent } = training.clone();
        let parent = parent.map(|hash| format!("{hash:016x}"));
        Provenance { curriculum, seeds, steps, version, command, created, parent }
    }
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
