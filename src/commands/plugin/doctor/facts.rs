//! What is compared between ranks, and what stands out on one.

use serde::{Deserialize, Serialize};

/// What is not known.
pub const UNKNOWN: &str = "unknown";

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The job would fail, or hang.
    Fault,
    /// It would run, but perhaps not as it was meant.
    Warning,
    /// Worth knowing.
    Note,
}

/// Something that stands out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What it is, and what to do.
    pub text: String,
}

impl Finding {
    /// A finding.
    pub fn new(level: Level, text: String) -> Self {
        Finding { level, text }
    }
}

/// What all ranks must have alike: a rank that differs in one of these would hang the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Whether NCCL is told to load the tuner, and could.
    pub tuner: String,
    /// The library's version.
    pub version: String,
    /// The fingerprint of its file, by which builds of one version are told apart.
    pub library: String,
    /// The policy's name and fingerprint.
    pub policy: String,
    /// The deployment file's fingerprint.
    pub context: String,
    /// The hashes that the launcher says they must have, as it says them.
    pub expect: String,
    /// act, observe, off or driven.
    pub mode: String,
    /// Whether sums must come out alike.
    pub deterministic: String,
    /// What NCCL's own variables fix.
    pub fixed: String,
    /// `NCCL_NTHREADS`, as NCCL gets it.
    pub threads: String,
    /// `NCCL_BUFFSIZE`, as NCCL gets it.
    pub buffer: String,
    /// The fingerprint of what the library decides about calls that are the same everywhere.
    pub decisions: String,
    /// NCCL's release.
    pub nccl: String,
}

impl Facts {
    /// The same word for all.
    #[cfg(test)]
    pub fn all(word: &str) -> Self {
        let word = || word.to_owned();
        Facts {
            tuner: word(),
            version: word(),
            library: word(),
            policy: word(),
            context: word(),
            expect: word(),
            mode: word(),
            deterministic: word(),
            fixed: word(),
            threads: word(),
            buffer: word(),
            decisions: word(),
            nccl: word(),
        }
    }

    /// All of them by name.
    pub fn named(&self) -> [(&'static str, &str); 13] {
        [
            ("tuner", &self.tuner),
            ("version", &self.version),
            ("library", &self.library),
            ("policy", &self.policy),
            ("context", &self.context),
            ("expect", &self.expect),
            ("mode", &self.mode),
            ("deterministic", &self.deterministic),
            ("fixed", &self.fixed),
            ("threads", &self.threads),
            ("buffer", &self.buffer),
            ("decisions", &self.decisions),
            ("nccl", &self.nccl),
        ]
    }
}

/// What NCCL's tables are made of. Where ranks differ in it, the tables may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// Models of the GPUs.
    pub gpus: String,
    /// NCCL's other variables.
    pub nccl_variables: String,
}

impl Hints {
    /// All of them by name.
    pub fn named(&self) -> [(&'static str, &str); 2] {
        [("gpus", &self.gpus), ("nccl_variables", &self.nccl_variables)]
    }
}
