//! The lines that let NCCL load the library, to be pasted into a shell or run by `eval`.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::commands::machine;
use crate::words::quoted;

/// NCCL's variables that a job needs; the profiler does nothing until it is told where to write.
const VARIABLES: [&str; 2] = ["NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"];

/// Where the library is, and how NCCL gets it.
#[derive(Debug, Serialize)]
pub struct Exports {
    /// The library.
    pub library: String,
    /// Files that were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<Vec<String>>,
    /// Lines for a shell.
    pub exports: Vec<String>,
}

impl Exports {
    /// The lines for this library.
    pub fn new(library: &Path, installed: Option<Vec<String>>) -> Self {
        let value = quoted(&machine::name(library));
        let exports = VARIABLES.map(|variable| format!("export {variable}={value}")).to_vec();
        Exports { library: machine::name(library), installed, exports }
    }
}

impl fmt::Display for Exports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# library: {}", self.library)?;
        self.installed.iter().flatten().try_for_each(|file| writeln!(f, "# wrote {file}"))?;
        self.exports.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(
            f,
            "# launch-time threads and buffer, NCCL 2.28.7 and newer: the same with NCCL_ENV_PLUGIN"
        )?;
        writeln!(f, "# to check a job: dynamiccl plugin doctor, on all its ranks")
    }
}
