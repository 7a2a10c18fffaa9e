//! What is wrong with a table, and on which line.

use dynamiccl_spec::words::UnknownWord;

use super::rule::COLUMNS;
use super::table::LONGEST_LINE;

/// A line that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct CsvError {
    /// Which line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Too few or too many columns.
    #[error("{found} columns, expected 8 to 10: {columns}", columns = COLUMNS.join(","))]
    Columns {
        /// How many there are.
        found: usize,
    },
    /// A word that NCCL does not have.
    #[error("{0}")]
    Word(UnknownWord),
    /// A collective that NCCL asks no tuner about.
    #[error("NCCL asks no tuner about {0}; remove the line")]
    Untuned(&'static str),
    /// A number that is none, or cannot mean anything.
    #[error("{column} is \"{value}\", expected {expected}")]
    Number {
        /// The column.
        column: &'static str,
        /// What stands there.
        value: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// A range that ends before it begins.
    #[error("the range {min}-{max} holds no size; swap min_bytes and max_bytes")]
    EmptyRange {
        /// Its beginning.
        min: u64,
        /// Its end.
        max: u64,
    },
    /// A line that NVIDIA's reader cuts in two.
    #[error(
        "{found} bytes long: NVIDIA's reader cuts lines at {LONGEST_LINE} and takes the rest for a rule; \
             shorten it"
    )]
    TooLong {
        /// How long it is.
        found: usize,
    },
    /// A character that no rule holds.
    #[error("a zero byte: NVIDIA's reader stops there; remove it")]
    ZeroByte,
}
