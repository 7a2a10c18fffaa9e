//! NCCL's own dumps as XML: opening them, and saying where they are wrong.
//!
//! NCCL writes two kinds, topologies and graphs, and people mix them up; so the errors name the
//! variable that makes NCCL write the one that was asked for.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use roxmltree::{Document, Node, ParsingOptions};
use thiserror::Error;

/// Bytes that a dump may have; an NVL72's graphs take less than one MiB.
const MAX_BYTES: u64 = 64 << 20;
/// Elements that a dump may have.
const MAX_NODES: u32 = 1 << 20;

/// A dump of NCCL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DumpError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {value}; {remedy}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        value: String,
        /// What to do.
        remedy: String,
    },
    /// The file is not XML, or breaks off.
    #[error("{}:{line}: is not XML: {value}; {remedy}", .file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u32,
        /// What the parser said.
        value: String,
        /// What to do.
        remedy: String,
    },
    /// The file is XML but not the dump that was asked for.
    #[error("{}:{line}: <{value}> is not what a {wanted} dump starts with; {remedy}", .file.display())]
    OtherDump {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u32,
        /// The element that was found.
        value: String,
        /// What was asked for.
        wanted: &'static str,
        /// What to do.
        remedy: String,
    },
    /// An element lacks something, or something in it makes no sense.
    #[error("{}:{line}: {what} \"{value}\": {remedy}", .file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u32,
        /// The element or attribute.
        what: String,
        /// What was read.
        value: String,
        /// What to do.
        remedy: String,
    },
}

/// The text of a dump, and what it should be.
pub(super) struct Dump {
    file: PathBuf,
    text: String,
    wanted: &'static str,
    variable: &'static str,
}

impl Dump {
    /// Reads a file; `wanted` and `variable` name the dump and what makes NCCL write it.
    pub(super) fn read(file: &Path, wanted: &'static str, variable: &'static str) -> Result<Dump, DumpError> {
        let unreadable = |value: String, remedy: &str| DumpError::Read {
            file: file.to_owned(),
            value,
            remedy: remedy.to_owned(),
        };
        let input = File::open(file).map_err(|e| unreadable(e.to_string(), "check the path"))?;
        let mut bytes = Vec::new();
        let read = input.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|e| unreadable(e.to_string(), "name a readable file"))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(unreadable(format!("more than {MAX_BYTES} bytes"), "name a dump that NCCL wrote"));
        }
        Ok(Dump {
            file: file.to_owned(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            wanted,
            variable,
        })
    }

    /// Parses the text; the root must be `root`.
    pub(super) fn document(&self, root: &str) -> Result<Document<'_>, DumpError> {
        let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&self.text, options).map_err(|e| DumpError::Syntax {
            file: self.file.clone(),
            line: e.pos().row,
            value: one_line(&e.to_string()),
            remedy: self.again(),
        })?;
        let element = document.root_element();
        if element.tag_name().name() == root {
            return Ok(document);
        }
        Err(DumpError::OtherDump {
            file: self.file.clone(),
            line: line_of(element),
            value: one_line(element.tag_name().name()),
            wanted: self.wanted,
            remedy: self.again(),
        })
    }

    /// An attribute, if it is there.
    pub(super) fn optional<T: FromStr>(&self, node: Node, name: &str) -> Result<Option<T>, DumpError> {
        match node.attribute(name).map(str::trim) {
            None | Some("") => Ok(None),
            Some(text) => {
                text.parse().map(Some).map_err(|_| self.bad(node, name, "NCCL writes a number here"))
            }
        }
    }

    /// An attribute that must be there.
    pub(super) fn required<T: FromStr>(&self, node: Node, name: &str) -> Result<T, DumpError> {
        let missing = || self.bad(node, name, "the attribute is missing");
        self.optional(node, name)?.ok_or_else(missing)
    }

    /// A finite number, zero or more, that must be there.
    pub(super) fn quantity(&self, node: Node, name: &str) -> Result<f32, DumpError> {
        let value: f32 = self.required(node, name)?;
        let fits = value.is_finite() && (0.0..1e6).contains(&value);
        if fits { Ok(value) } else { Err(self.bad(node, name, "a number from zero up is expected")) }
    }

    /// The error for an attribute.
    pub(super) fn bad(&self, node: Node, name: &str, remedy: impl Display) -> DumpError {
        DumpError::Value {
            file: self.file.clone(),
            line: line_of(node),
            what: format!("{name} of <{}>", one_line(node.tag_name().name())),
            value: one_line(node.attribute(name).unwrap_or("")),
            remedy: format!("{remedy}; {}", self.again()),
        }
    }

    fn again(&self) -> String {
        format!("let NCCL write a {} dump with {}=FILE", self.wanted, self.variable)
    }
}

fn line_of(node: Node) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

/// At most 80 characters, none of them a control character.
fn one_line(text: &str) -> String {
    text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
