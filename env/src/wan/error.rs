//! What can be wrong with a WAN that somebody describes.

use std::fmt::Display;

use thiserror::Error;

/// Why a WAN cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WanError {
    /// A value that makes no sense.
    #[error("{value} {what}: {remedy}")]
    Value {
        /// What it is.
        what: String,
        /// What was given.
        value: String,
        /// What would be right.
        remedy: String,
    },
    /// More than can be looked at one by one.
    #[error("{states} rings and routes are too many to know them all: {remedy}")]
    TooLarge {
        /// How many there are.
        states: String,
        /// What would be right.
        remedy: String,
    },
}

impl WanError {
    pub(super) fn value(what: &str, value: impl Display, remedy: &str) -> Self {
        WanError::Value { what: what.to_owned(), value: value.to_string(), remedy: remedy.to_owned() }
    }
}
