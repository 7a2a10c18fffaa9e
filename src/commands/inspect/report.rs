//! What `inspect` says about a file.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::policy::Runnable;
use super::table::Summary;
use crate::table::{Column, Table};

/// A file and what it is.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The file.
    pub file: String,
    /// Its size.
    pub bytes: usize,
    /// What it is.
    #[serde(flatten)]
    pub what: What,
}

/// What a file is.
#[derive(Debug)]
pub enum What {
    /// A policy that this build can run.
    Policy(Box<Runnable>),
    /// A policy for another build.
    ForeignPolicy {
        /// Why this one cannot run it.
        why: String,
        /// What it says about itself.
        metadata: BTreeMap<String, String>,
    },
    /// A table of NVIDIA's example tuner.
    Table(Summary),
    /// A file that another command reads.
    Other {
        /// What it is.
        kind: &'static str,
        /// The command.
        command: String,
    },
}

/// The form of [`What`] in a document.
#[derive(Serialize)]
struct Fields<'a> {
    kind: &'a str,
    runnable: bool,
    why: Option<&'a str>,
    try_instead: Option<&'a str>,
    policy: Option<&'a Runnable>,
    metadata: Option<&'a BTreeMap<String, String>>,
    table: Option<&'a Summary>,
}

impl What {
    /// Whether this build can decide by it.
    pub fn is_runnable(&self) -> bool {
        matches!(self, What::Policy(_) | What::Table(_))
    }

    fn fields(&self) -> Fields<'_> {
        let (why, try_instead, policy, metadata, table) = (None, None, None, None, None);
        let runnable = self.is_runnable();
        let fields = Fields { kind: "policy", runnable, why, try_instead, policy, metadata, table };
        match self {
            What::Policy(policy) => Fields { policy: Some(policy), ..fields },
            What::ForeignPolicy { why, metadata } => {
                Fields { why: Some(why), metadata: Some(metadata), ..fields }
            }
            What::Table(table) => Fields { kind: "nccl_csv", table: Some(table), ..fields },
            What::Other { kind, command } => Fields { kind, try_instead: Some(command), ..fields },
        }
    }

    fn lines(&self) -> Vec<(String, String)> {
        match self {
            What::Policy(policy) => policy.lines(),
            What::ForeignPolicy { metadata, .. } => metadata.clone().into_iter().collect(),
            What::Table(table) => table.lines(),
            What::Other { .. } => Vec::new(),
        }
    }

    fn verdict(&self) -> String {
        match self {
            What::Policy(_) => "a policy that this build can run".to_owned(),
            What::ForeignPolicy { why, .. } => format!("a policy that this build cannot run: {why}"),
            What::Table(_) => "a table of NVIDIA's example tuner that this build can run".to_owned(),
            What::Other { kind: "toml", command } => {
                format!("neither a policy nor a cluster; a curriculum is read by {command}")
            }
            What::Other { kind, command } => format!("no policy but a {kind}: {command}"),
        }
    }
}

impl Serialize for What {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields().serialize(serializer)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}: {} bytes", self.file, self.bytes)?;
        let lines = self.what.lines();
        if !lines.is_empty() {
            let mut table = Table::new([Column::left("what"), Column::left("value")]);
            lines.into_iter().for_each(|(name, value)| table.row([name, value]));
            write!(f, "#\n{table}")?;
        }
        writeln!(f, "Summary  {}", self.what.verdict())
    }
}
