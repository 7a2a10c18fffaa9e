//! Everything that can be wrong with a workload, each with the value and the remedy.

use dynamiccl_spec::words::UnknownWord;
use thiserror::Error;

/// Why a workload cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// No preset has this name.
    #[error("{0}")]
    UnknownModel(UnknownWord),
    /// A shape that no model has.
    #[error("model {model}: {what} = {value}: {remedy}")]
    Model {
        /// The model.
        model: String,
        /// The field.
        what: &'static str,
        /// What was given.
        value: String,
        /// What to give instead.
        remedy: String,
    },
    /// Degrees that do not fit the model or each other.
    #[error("layout {layout}: {what} = {value}: {remedy}")]
    Layout {
        /// The degrees, as printed.
        layout: String,
        /// The degree.
        what: &'static str,
        /// What was given.
        value: String,
        /// What to give instead.
        remedy: String,
    },
    /// A training setting that cannot be.
    #[error("recipe of {model}: {what} = {value}: {remedy}")]
    Recipe {
        /// The model.
        model: String,
        /// The field.
        what: &'static str,
        /// What was given.
        value: String,
        /// What to give instead.
        remedy: String,
    },
}
