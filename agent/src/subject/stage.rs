//! What a run keeps of a stage: its file and a fingerprint of all that the file only names.

use std::fmt;

use dynamiccl_spec::fnv::Fnv;
use serde::{Deserialize, Serialize};
use toml::Table;

/// A stage as it was when the run began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSettings {
    /// Its name.
    pub name: String,
    /// The fingerprint of all that its jobs are drawn from, clusters and constants included.
    pub fingerprint: String,
    /// Its file.
    pub stage: Table,
}

impl StageSettings {
    /// A stage with this file; the fingerprint is that of all that it is.
    pub fn new(name: &str, whole: &impl fmt::Debug, file: &impl Serialize) -> Self {
        let mut hash = Fnv::new();
        hash.text(&format!("{whole:?}"));
        StageSettings {
            name: name.to_owned(),
            fingerprint: format!("{:016x}", hash.value()),
            stage: Table::try_from(file).expect("a file is a table of plain values"),
        }
    }
}
