//! The result of `eval`, as it is printed.

use dynamiccl_env::evaluate::Report;
use serde::Serialize;

/// The document of `eval`.
#[derive(Debug, Serialize)]
pub struct Document {
    /// What was found.
    #[serde(flatten)]
    pub report: Report,
}
