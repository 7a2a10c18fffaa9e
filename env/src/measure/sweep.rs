//! Sweeps over every knob: CSV files with one line per (collective, size, knobs).
//!
//! Threads per block, chunk sizes and compute beside the calls have columns where they were varied; so has how sure a time
//! is, in files that say it.
//!
//! What else is known of a sweep, whoever made it may say in a file beside it.
//!
//! Any number of ranks and any link rate may occur: a reader that knew the ones measured so far
//! would be of no use for the next.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use dynamiccl_spec::units::BadQuantity;
use dynamiccl_spec::{Algorithm, ChunkChoice, Collective, GBps, Pair, Protocol};
use serde::{Deserialize, Deserializer};

use super::Row;
use super::circumstances::Circumstances;
use super::clock::Clock;
use super::error::{Fault, MeasureError};
use super::sheet::Sheet;
use crate::text;

/// The columns of a sweep; others are ignored.
pub(super) const COLUMNS: [&str; 9] =
    ["ranks", "link", "collective", "size_bytes", "algo", "proto", "nchannels", "median_us", "min_us"];

/// What the ranks are connected by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Link {
    /// One host's loopback, unshaped.
    Loopback,
    /// A link of this rate, per rank and direction.
    Rate(GBps),
    /// Whatever the machine has.
    Machine,
}

impl std::str::FromStr for Link {
    type Err = BadQuantity;

    fn from_str(s: &str) -> Result<Self, BadQuantity> {
        match s.to_ascii_lowercase().as_str() {
            "loopback" => Ok(Link::Loopback),
            "none" => Ok(Link::Machine),
            _ => s.parse().map(Link::Rate),
        }
    }
}

/// As sweeps write it: `loopback`, `25gbit`, `500mbit`.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GBps(rate) = match self {
            Link::Loopback => return f.pad("loopback"),
            Link::Machine => return f.pad("none"),
            Link::Rate(rate) => *rate,
        };
        let gbit = rate * 8.0;
        // What a person wrote has few digits; the sixth hides what the division left behind.
        let (value, unit) = if gbit >= 1.0 { (gbit, "gbit") } else { (gbit * 1e3, "mbit") };
        let digits = format!("{value:.6}");
        f.pad(&format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.')))
    }
}

/// What was asked for in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Nothing: NCCL's own choice.
    Default,
    /// These knobs.
    Knobs {
        /// Algorithm and protocol.
        pair: Pair,
        /// Channels asked for; nothing is NCCL's own count.
        channels: Option<u32>,
    },
}

/// One line of a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweepRow {
    /// The collective.
    pub collective: Collective,
    /// Bytes, in nccl-tests' convention.
    pub bytes: u64,
    /// What was asked for.
    pub setting: Setting,
    /// The chunk size that was asked for; NCCL's own where the file has no such column.
    pub chunk: ChunkChoice,
    /// Median over the repeats, in µs.
    pub median_us: f64,
    /// Smallest of the repeats, in µs.
    pub min_us: f64,
    /// Largest of the repeats, in µs.
    pub max_us: f64,
    /// How sure that is; published files do not say.
    pub sure: Option<Sure>,
    /// NCCL's own prediction for this pair, in µs.
    pub nccl_model_us: Option<f64>,
    /// How many times as long compute took beside the calls as alone, where it ran.
    pub slowdown: Option<f64>,
}

/// How sure it is what a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sure {
    /// Repeats.
    pub rounds: u32,
    /// Where its 95 % interval begins, in µs.
    pub low_us: f64,
    /// And where it ends.
    pub high_us: f64,
}

impl SweepRow {
    /// The line as any other measurement; nothing where it asked for a chunk size, of which others know nothing.
    pub fn plain(&self) -> Option<Row> {
        (self.chunk == ChunkChoice::Own).then(|| self.without_chunk())
    }

    /// The same, whatever chunk size it asked for.
    pub(crate) fn without_chunk(&self) -> Row {
        let (pair, channels) = match self.setting {
            Setting::Default => ((None, None), None),
            Setting::Knobs { pair, channels } => ((Some(pair.algorithm), Some(pair.protocol)), channels),
        };
        Row {
            collective: self.collective,
            bytes: self.bytes,
            time_us: self.median_us,
            pair,
            channels,
            in_place: None,
        }
    }
}

/// The lines of one file with the same ranks, link and threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The file.
    pub file: PathBuf,
    /// Ranks.
    pub ranks: u32,
    /// What connects them.
    pub link: Link,
    /// Threads per block; nothing is NCCL's own.
    pub threads: Option<u32>,
    /// What the file beside it says.
    pub about: About,
    /// The lines, in the order of the file.
    pub rows: Vec<SweepRow>,
}

/// What is said of a sweep in `FILE.about.json`; of the published ones, nothing.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct About {
    /// NCCL's release.
    pub nccl: Option<String>,
    /// Whose clock counted.
    pub clock: Clock,
    /// Whether its ranks shared a GPU.
    pub shared: Option<bool>,
    /// Threads per block that its ranks were started with; none for NCCL's own.
    #[serde(deserialize_with = "one_or_many")]
    pub threads: Vec<u32>,
    /// Nodes that its ranks were on.
    pub nodes: Option<u32>,
    /// Ranks on each of them.
    pub ranks_per_node: Option<u32>,
    /// What else was the case.
    #[serde(flatten)]
    pub circumstances: Circumstances,
}

/// A list of counts, or, as earlier releases wrote it, one of them, where 0 is none.
pub fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Counts {
        One(u32),
        Many(Vec<u32>),
    }
    Ok(match Counts::deserialize(deserializer)? {
        Counts::One(0) => Vec::new(),
        Counts::One(one) => vec![one],
        Counts::Many(many) => many,
    })
}

impl About {
    /// Where it is said.
    pub fn path(sweep: &Path) -> PathBuf {
        let mut name = sweep.as_os_str().to_owned();
        name.push(".about.json");
        name.into()
    }

    /// Whether ranks with this link shared a GPU. Where nobody says so the link does: those with a GPU each have no other
    /// than the machine's own.
    pub fn shares_gpu(&self, link: Link) -> bool {
        self.shared.unwrap_or(link != Link::Machine)
    }

    /// Threads of lines that do not say it themselves: `live sweep` left the column out where it had tried one count.
    fn all_threads(&self) -> Option<u32> {
        if let [all] = self.threads[..] { Some(all) } else { None }
    }

    fn of(sweep: &Path) -> Result<Self, MeasureError> {
        let path = Self::path(sweep);
        let text = match text::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(About::default()),
            read => read.map_err(|error| MeasureError::unreadable(&path, &error))?,
        };
        serde_json::from_str(&text).map_err(|error| MeasureError::Bad {
            what: "conditions".to_owned(),
            at: Fault::new(&path, error.line() as u64, error.to_string(), "remove it, or sweep again"),
        })
    }
}

/// Reads one sweep file, or every `.csv` file of a folder in the order of their names.
pub fn read(path: &Path) -> Result<Vec<Sweep>, MeasureError> {
    if !path.is_dir() {
        return read_file(path);
    }
    let unreadable = |e: std::io::Error| MeasureError::unreadable(path, &e);
    let mut files = Vec::new();
    for entry in path.read_dir().map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        let remedy = "give a folder with at least one .csv file of a sweep";
        return Err(MeasureError::NoRows(Fault::new(path, 0, "no .csv file", remedy)));
    }
    let sweeps: Result<Vec<_>, _> = files.iter().map(|file| read_file(file)).collect();
    Ok(sweeps?.concat())
}

fn read_file(file: &Path) -> Result<Vec<Sweep>, MeasureError> {
    let (mut sheet, about) = (Sheet::open(file)?, About::of(file)?);
    sheet.require(&COLUMNS)?;
    let threads_said = sheet.has("nthreads");
    let mut sweeps: Vec<Sweep> = Vec::new();
    while sheet.advance()? {
        let ranks: u32 = sheet.whole("ranks")?;
        let link: Link = sheet.word("link")?;
        let remedy = "a whole number, or nothing for NCCL's own, is expected";
        let threads = if threads_said { sheet.optional("nthreads", remedy)? } else { about.all_threads() };
        let threads = threads.filter(|&threads: &u32| threads > 0);
        let row = row_of(&sheet)?;
        match sweeps.iter_mut().find(|s| s.ranks == ranks && s.link == link && s.threads == threads) {
            Some(sweep) => sweep.rows.push(row),
            None => {
                let (file, about, rows) = (file.to_owned(), about.clone(), vec![row]);
                sweeps.push(Sweep { file, ranks, link, threads, about, rows });
            }
        }
    }
    if sweeps.is_empty() { Err(sheet.no_rows()) } else { Ok(sweeps) }
}

/// Threads that the file beside a sweep says for all of its lines, where no column says them.
pub(super) fn threads_beside(sweep: &Path) -> Result<Option<u32>, MeasureError> {
    Ok(About::of(sweep)?.all_threads().filter(|&threads| threads > 0))
}

/// The row of the current line.
pub(super) fn row_of(sheet: &Sheet) -> Result<SweepRow, MeasureError> {
    let median_us = sheet.positive("median_us")?;
    let min_us = sheet.positive("min_us")?;
    let max_us = if sheet.text("max_us").is_empty() { median_us } else { sheet.positive("max_us")? };
    if !(min_us <= median_us && median_us <= max_us) {
        return Err(sheet.bad("median_us", "it must lie between min_us and max_us"));
    }
    let model: Option<f64> = sheet.optional("nccl_model_us", "a time in µs, or nothing, is expected")?;
    let setting = setting_of(sheet)?;
    let chunk = if sheet.text("chunk").is_empty() { ChunkChoice::Own } else { sheet.word("chunk")? };
    if setting == Setting::Default && chunk != ChunkChoice::Own {
        return Err(sheet.bad("chunk", "name the algorithm and the protocol that were forced with it"));
    }
    Ok(SweepRow {
        collective: sheet.word("collective")?,
        bytes: sheet.whole("size_bytes")?,
        setting,
        chunk,
        median_us,
        min_us,
        max_us,
        sure: sure_of(sheet)?,
        nccl_model_us: model.filter(|time| time.is_finite() && *time > 0.0),
        slowdown: slowdown_of(sheet)?,
    })
}

fn sure_of(sheet: &Sheet) -> Result<Option<Sure>, MeasureError> {
    if sheet.text("rounds").is_empty() {
        return Ok(None);
    }
    let (low_us, high_us) = (sheet.positive("low_us")?, sheet.positive("high_us")?);
    if low_us > high_us {
        return Err(sheet.bad("low_us", "it must not be more than high_us"));
    }
    Ok(Some(Sure { rounds: sheet.whole("rounds")?, low_us, high_us }))
}

fn slowdown_of(sheet: &Sheet) -> Result<Option<f64>, MeasureError> {
    if sheet.text("beside_us").is_empty() {
        return Ok(None);
    }
    Ok(Some(sheet.positive("beside_us")? / sheet.positive("alone_us")?))
}

fn setting_of(sheet: &Sheet) -> Result<Setting, MeasureError> {
    let is_default = |column| matches!(sheet.text(column), "default" | "");
    match (is_default("algo"), is_default("proto")) {
        (true, true) => Ok(Setting::Default),
        (true, false) => Err(sheet.bad("algo", "name the algorithm that was forced with the protocol")),
        (false, true) => Err(sheet.bad("proto", "name the protocol that was forced with the algorithm")),
        (false, false) => {
            let pair = Pair::new(sheet.word::<Algorithm>("algo")?, sheet.word::<Protocol>("proto")?);
            let remedy = "a whole number, or nothing for NCCL's own, is expected";
            let channels: Option<u32> = sheet.optional("nchannels", remedy)?;
            Ok(Setting::Knobs { pair, channels: channels.filter(|&n| n > 0) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_written_as_they_were_read() {
        for word in [
            "loopback",
            "none",
            "25gbit",
            "5gbit",
            "2.5gbit",
            "1gbit",
            "100gbit",
            "500mbit",
            "300mbit",
            "0.064mbit",
        ] {
            assert_eq!(word.parse::<Link>().unwrap().to_string(), word);
        }
        assert_eq!(Link::Rate(GBps(3.125)).to_string(), "25gbit");
        assert_eq!("12.5GB/s".parse::<Link>().unwrap().to_string(), "100gbit");
    }
}
