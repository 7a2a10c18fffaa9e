//! A file that can decide: a frozen policy, or a table in the form of NVIDIA's example tuner.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dynamiccl_agent::WideTuner;
use dynamiccl_policies::frozen::{self, Frozen, SHIPPED};
use dynamiccl_policies::nccl_csv::{Table, TableTuner};
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_spec::Tuner;

use super::machine;

/// What a file holds that can decide.
#[derive(Debug, Clone)]
pub enum PolicyFile {
    /// A frozen policy.
    Frozen(Arc<Policy>),
    /// A table.
    Table(TableTuner),
}

impl PolicyFile {
    /// Reads the file; "shipped" is the policy that comes with the program.
    pub fn open(file: &Path) -> Result<Self> {
        if is_shipped(file) {
            return PolicyFile::shipped();
        }
        let place = || machine::name(file);
        let bytes = frozen::read_bytes(file).with_context(|| format!("{}: cannot be read", place()))?;
        if looks_frozen(file, &bytes) {
            let frozen = Frozen::read(&bytes).and_then(Frozen::tuner).with_context(place)?;
            return Ok(PolicyFile::Frozen(Arc::new(frozen.policy())));
        }
        let text = str::from_utf8(&bytes)
            .with_context(|| format!("{}: neither a policy (.safetensors) nor a table of text", place()))?;
        let table = table(file, text)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        Ok(PolicyFile::Table(TableTuner::new(stem, &table)))
    }

    /// The one that comes with the program.
    pub fn shipped() -> Result<Self> {
        Ok(PolicyFile::Frozen(Arc::new(shipped()?.policy())))
    }

    /// Reads the file, or takes the one that comes with the program where none is named.
    pub fn open_or_shipped(file: Option<&Path>) -> Result<Self> {
        file.map_or_else(PolicyFile::shipped, PolicyFile::open)
    }

    /// What tells a policy from every other; none for a table.
    pub fn hash(&self) -> Option<u64> {
        match self {
            PolicyFile::Frozen(policy) => Some(policy.hash()),
            PolicyFile::Table(_) => None,
        }
    }

    /// A tuner that goes by it and is told nothing of what calls take.
    pub fn tuner(&self) -> Box<dyn Tuner> {
        self.with(|policy| PolicyTuner::new(policy, None))
    }

    /// One that takes in what it is told, with notes of what calls have taken beside or without.
    pub fn told(&self, notes: bool) -> Box<dyn Tuner> {
        self.with(|policy| {
            let tuner = PolicyTuner::new(policy, Some(PolicyTuner::REFRESH));
            if notes { tuner } else { tuner.without_notes() }
        })
    }

    fn with(&self, make: impl FnOnce(Arc<Policy>) -> PolicyTuner) -> Box<dyn Tuner> {
        match self {
            PolicyFile::Frozen(policy) => Box::new(WideTuner(make(Arc::clone(policy)))),
            PolicyFile::Table(table) => Box::new(table.clone()),
        }
    }
}

/// Whether a policy is named by the word for the one that comes with the program.
pub fn is_shipped(file: &Path) -> bool {
    file == Path::new(SHIPPED)
}

/// The table of a file; one without a rule is none.
pub fn table(file: &Path, text: &str) -> Result<Table> {
    let table = Table::parse(text).with_context(|| machine::name(file))?;
    let empty = table.rules().next().is_none();
    ensure!(!empty, "{}: no rule in it, so no table; give a policy or a table", machine::name(file));
    Ok(table)
}

/// What the file of a policy is called where none was named.
pub fn name_or_shipped(file: Option<&Path>) -> String {
    file.map_or_else(|| SHIPPED.to_owned(), machine::name)
}

/// The policy that comes with the program.
pub fn shipped() -> Result<Frozen> {
    Frozen::shipped().context("the policy that comes with the program is not for this build")
}

/// Whether it is meant to be a frozen policy: safetensors begin with the length of a header, and the header
/// with a brace.
pub fn looks_frozen(file: &Path, bytes: &[u8]) -> bool {
    file.extension().is_some_and(|e| e == "safetensors") || bytes.get(6..9) == Some(b"\0\0{")
}
