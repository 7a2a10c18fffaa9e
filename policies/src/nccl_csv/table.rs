//! A whole table: its rules in order, and the lines between them.

use std::fmt;
use std::str::FromStr;

use super::error::{CsvError, Fault};
use super::rule::{COLUMNS, Rule};

/// Bytes of the longest line that NVIDIA's reader holds.
pub const LONGEST_LINE: usize = 254;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Its lines, in order.
    pub lines: Vec<Line>,
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A comment, an empty line, or the names of the columns, as it stands there.
    Remark(String),
    /// A rule.
    Rule(Rule),
}

impl Table {
    /// Reads a table.
    pub fn parse(text: &str) -> Result<Table, CsvError> {
        // Some editors begin a text with a mark of its encoding.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text
            .lines()
            .enumerate()
            .map(|(at, text)| line(text).map_err(|fault| CsvError { line: at + 1, fault }));
        Ok(Table { lines: lines.collect::<Result<_, _>>()? })
    }

    /// The rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.lines.iter().filter_map(|line| match line {
            Line::Rule(rule) => Some(rule),
            Line::Remark(_) => None,
        })
    }
}

fn line(text: &str) -> Result<Line, Fault> {
    if text.len() > LONGEST_LINE {
        return Err(Fault::TooLong { found: text.len() });
    }
    if text.contains('\0') {
        return Err(Fault::ZeroByte);
    }
    let content = text.trim();
    let names = content.split(',').next() == Some(COLUMNS[0]);
    if content.is_empty() || content.starts_with('#') || names {
        // A carriage return alone would not survive: a text's lines end with or without one.
        return Ok(Line::Remark(text.trim_end_matches('\r').to_owned()));
    }
    content.parse().map(Line::Rule)
}

impl FromStr for Table {
    type Err = CsvError;

    fn from_str(text: &str) -> Result<Self, CsvError> {
        Table::parse(text)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            match line {
                Line::Remark(text) => writeln!(f, "{text}")?,
                Line::Rule(rule) => writeln!(f, "{rule}")?,
            }
        }
        Ok(())
    }
}
