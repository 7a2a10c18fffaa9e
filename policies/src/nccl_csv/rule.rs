//! One line of a table: which calls it is for, and what they get.

use std::fmt;
use std::str::FromStr;

use dynamiccl_spec::ids::{Collective, Pair};

use super::error::Fault;

/// NVIDIA's names of the columns; the last two may be left out.
pub const COLUMNS: [&str; 10] = [
    "collective_type",
    "min_bytes",
    "max_bytes",
    "algorithm",
    "protocol",
    "channels",
    "nNodes",
    "nRanks",
    "numPipeOps",
    "regBuff",
];

/// Columns that every rule has.
const REQUIRED: usize = 8;

/// The most channels that NCCL has.
const MOST_CHANNELS: i64 = 64;

/// What stands for any value.
const ANY: &str = "-1";

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The collective that it is for.
    pub collective: Collective,
    /// The smallest size that it is for, in bytes.
    pub min_bytes: u64,
    /// The largest; [`Rule::OPEN`] where there is none.
    pub max_bytes: u64,
    /// What such calls get.
    pub pair: Pair,
    /// How many channels they get.
    pub channels: Channels,
    /// The nodes of the communicators that it is for; none is any.
    pub nodes: Option<u32>,
    /// Their ranks; none is any.
    pub ranks: Option<u32>,
    /// Operations in the launch; none is any.
    pub pipelined: Option<u32>,
    /// Whether buffers are registered; none is either.
    pub registered: Option<bool>,
    /// How many columns it is written with, 8 to 10.
    columns: usize,
}

/// How many channels a rule gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// Its author meant NCCL's own count, written -1. NVIDIA's plugin makes one channel of it.
    Meant,
    /// NCCL's own count, written 0: what NCCL itself takes for "no opinion".
    Own,
    /// So many.
    Exactly(u8),
}

impl Rule {
    /// The end of a range that has none: the largest number that NVIDIA's reader holds. Its own examples
    /// end at 4294967295 and match nothing from 4 GiB on.
    pub const OPEN: u64 = u64::MAX;

    /// A rule for any number of operations and any buffers.
    pub fn new(collective: Collective, bytes: [u64; 2], pair: Pair, channels: Channels) -> Self {
        let [min_bytes, max_bytes] = bytes;
        Rule {
            collective,
            min_bytes,
            max_bytes,
            pair,
            channels,
            nodes: None,
            ranks: None,
            pipelined: None,
            registered: None,
            columns: REQUIRED,
        }
    }

    /// The same for communicators of this size only.
    pub fn on(self, nodes: u32, ranks: u32) -> Self {
        Rule { nodes: Some(nodes), ranks: Some(ranks), ..self }
    }
}

impl FromStr for Rule {
    type Err = Fault;

    fn from_str(line: &str) -> Result<Self, Fault> {
        // NVIDIA's reader skips empty columns, and so the columns after them mean something else.
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if !(REQUIRED..=COLUMNS.len()).contains(&fields.len()) {
            return Err(Fault::Columns { found: fields.len() });
        }
        let optional = |column: usize| fields.get(column).copied().unwrap_or(ANY);
        let bytes = [size(1, fields[1])?, if fields[2] == ANY { Rule::OPEN } else { size(2, fields[2])? }];
        if bytes[0] > bytes[1] {
            return Err(Fault::EmptyRange { min: bytes[0], max: bytes[1] });
        }
        let pair = Pair::new(word(fields[3])?, word(fields[4])?);
        let rule = Rule::new(collective(fields[0])?, bytes, pair, channels(fields[5])?);
        let registered = match optional(9) {
            ANY => None,
            "0" => Some(false),
            "1" => Some(true),
            other => return Err(number(9, other, "0, 1 or -1 for either")),
        };
        let (nodes, ranks) = (count(6, fields[6])?, count(7, fields[7])?);
        let pipelined = count(8, optional(8))?;
        Ok(Rule { nodes, ranks, pipelined, registered, columns: fields.len(), ..rule })
    }
}

fn collective(text: &str) -> Result<Collective, Fault> {
    let collective: Collective = word(text)?;
    if collective.is_tuned() { Ok(collective) } else { Err(Fault::Untuned(collective.name())) }
}

fn word<T: FromStr<Err = dynamiccl_spec::words::UnknownWord> + fmt::Display>(text: &str) -> Result<T, Fault> {
    let found: T = text.parse().map_err(Fault::Word)?;
    if found.to_string() == text {
        return Ok(found);
    }
    // NVIDIA's reader knows one spelling, and takes every other for allreduce, ring or simple.
    let known = vec![found.to_string()];
    Err(Fault::Word(dynamiccl_spec::words::UnknownWord { kind: "word", value: text.to_owned(), known }))
}

fn size(column: usize, text: &str) -> Result<u64, Fault> {
    let expected = match column {
        1 => "a whole number of bytes from 0 on",
        _ => "a whole number of bytes, 18446744073709551615 for no end",
    };
    digits(text).ok_or_else(|| number(column, text, expected))
}

fn count(column: usize, text: &str) -> Result<Option<u32>, Fault> {
    if text == ANY {
        return Ok(None);
    }
    let found = digits(text).filter(|&n| (1..=i32::MAX as u64).contains(&n));
    found
        .map(|n| Some(n as u32))
        .ok_or_else(|| number(column, text, "a whole number from 1 on, or -1 for any"))
}

fn channels(text: &str) -> Result<Channels, Fault> {
    match text.parse::<i64>() {
        Ok(-1) => Ok(Channels::Meant),
        Ok(0) => Ok(Channels::Own),
        Ok(n @ 1..=MOST_CHANNELS) => Ok(Channels::Exactly(n as u8)),
        _ => Err(number(5, text, "1 to 64, or 0 for NCCL's own count")),
    }
}

/// A number without sign: the C functions behind NVIDIA's reader would make something of a sign too.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn number(column: usize, value: &str, expected: &'static str) -> Fault {
    Fault::Number { column: COLUMNS[column], value: value.to_owned(), expected }
}

impl fmt::Display for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Channels::Meant => f.write_str(ANY),
            Channels::Own => f.write_str("0"),
            Channels::Exactly(n) => write!(f, "{n}"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { collective, min_bytes, max_bytes, pair, channels, .. } = self;
        let any = |n: Option<u32>| n.map_or(ANY.to_owned(), |n| n.to_string());
        write!(f, "{collective},{min_bytes},{max_bytes},{},{},{channels}", pair.algorithm, pair.protocol)?;
        write!(f, ",{},{}", any(self.nodes), any(self.ranks))?;
        if self.columns > REQUIRED {
            write!(f, ",{}", any(self.pipelined))?;
        }
        if self.columns > REQUIRED + 1 {
            write!(f, ",{}", any(self.registered.map(u32::from)))?;
        }
        Ok(())
    }
}
