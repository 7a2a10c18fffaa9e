//! A sweep's file: the columns of the published sweeps, and more where more was asked for. It can be gone on with, and is always whole: it gets its next
//! cell at once or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dynamiccl_env::measure::{Clock, sweep as reader};
use dynamiccl_env::whole;
use dynamiccl_spec::{Order, Protocol, variables};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cell::{Cell, Tries};
use crate::crew::LiveError;
use crate::measure::{CellTimes, Measured};

/// The first line of a sweep: what published ones have, how many rounds there were, and the 95 % interval of
/// the median; with fewer than six rounds all that was seen.
const HEADER: &str = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nccl_model_us,\
                      rounds,low_us,high_us";

/// Columns that only those get who ask for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns {
    /// `nthreads`, for somebody has named them.
    pub threads: bool,
    /// `chunk`, for there are several.
    pub chunks: bool,
    /// `beside_us` and `alone_us`: compute beside the calls, and alone.
    pub beside: bool,
}

impl Columns {
    fn header(self) -> String {
        let more =
            [(self.threads, ",nthreads"), (self.chunks, ",chunk"), (self.beside, ",beside_us,alone_us")];
        let more = more.into_iter().filter(|(asked, _)| *asked).map(|(_, names)| names);
        std::iter::once(HEADER).chain(more).collect()
    }
}

/// Under what something was measured. Cells of one file must not differ in it; files of before do not say all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Ranks.
    pub ranks: u32,
    /// Hosts that they are on, as NCCL counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Ranks on each; none where these differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks_per_node: Option<u32>,
    /// What connects them.
    pub link: String,
    /// Whether they share a GPU.
    pub shared: bool,
    /// The GPU.
    pub gpu: String,
    /// The newest CUDA that its driver runs.
    pub cuda: String,
    /// NCCL's release.
    pub nccl: String,
    /// Threads per block that are tried; none for NCCL's own.
    #[serde(deserialize_with = "reader::one_or_many")]
    pub threads: Vec<u32>,
    /// Blocks of every rank's load beside communication; 0 for none.
    pub load: u32,
    /// Whose clock counts.
    #[serde(default)]
    pub clock: Clock,
    /// Whether MPS lets ranks on one GPU run at the same time; none where they share none, or nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps: Option<bool>,
    /// What a sweep tries.
    #[serde(flatten)]
    pub tried: Tried,
    /// What NCCL and the plugin were told by variables, but for those that every run sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<BTreeMap<String, String>>,
}

/// What every call is tried with: where that differs, a cell that was measured is not done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tried {
    /// Channels; 0 for NCCL's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<BTreeSet<u32>>,
    /// Chunk sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<BTreeSet<String>>,
}

impl Tried {
    /// What these settings are.
    pub fn of(tries: &Tries) -> Self {
        let channels = tries.channels.iter().map(|channels| channels.requested().unwrap_or(0));
        let chunks = tries.chunks.iter().map(|chunk| chunk.name().to_owned());
        Tried { channels: Some(channels.collect()), chunks: Some(chunks.collect()) }
    }
}

impl Conditions {
    /// The variables as a report's first line goes on with them; a policy is named there anyway.
    pub fn told(&self) -> String {
        let told = self.variables.iter().flatten().filter(|(name, _)| *name != variables::POLICY);
        told.map(|(name, value)| format!(", {name}={value}")).collect()
    }

    /// What these say otherwise than others did, of what both say.
    fn differ_from(&self, before: &Conditions) -> Vec<String> {
        let said = |conditions| match serde_json::to_value(conditions) {
            Ok(Value::Object(said)) => said,
            _ => Map::new(),
        };
        let now = said(self);
        let differs = |(name, was): (String, Value)| {
            let is = now.get(&name).filter(|is| **is != was)?;
            Some(format!("{name} {was}, now {is}"))
        };
        said(before).into_iter().filter_map(differs).collect()
    }
}

/// A sweep's file.
#[derive(Debug)]
pub struct Sheet {
    file: PathBuf,
    conditions: Conditions,
    columns: Columns,
    /// The lines of every cell, those with the fewest threads first.
    cells: Vec<(Key, Lines)>,
}

/// What a cell is found by: its threads, 0 for NCCL's own.
type Key = (u32, Cell);

/// The lines of a cell.
#[derive(Debug)]
struct Lines {
    /// Rounds of NCCL's own choice, which takes part in all.
    rounds: u32,
    text: Vec<String>,
}

impl Sheet {
    /// A new file, or one to go on with that was measured under the same conditions.
    pub fn open(file: &Path, conditions: Conditions, columns: Columns) -> Result<Self, LiveError> {
        let mut sheet = Sheet { file: file.to_owned(), conditions, columns, cells: Vec::new() };
        if file.exists() {
            sheet.go_on()?;
        }
        // A folder that cannot be written to is noticed before an hour of measuring.
        whole::under_way(file).map_err(|error| unwritable(file, &error))?;
        Ok(sheet)
    }

    fn go_on(&mut self) -> Result<(), LiveError> {
        let name = self.file.display();
        let other = "give the same again, remove it, or give another --out";
        let about = fs::read_to_string(self.about()).ok();
        let before: Option<Conditions> = about.and_then(|text| serde_json::from_str(&text).ok());
        let unknown = || vec!["nobody knows which".to_owned()];
        let what = before.map_or_else(unknown, |before| self.conditions.differ_from(&before));
        if !what.is_empty() {
            let what = what.join("; ");
            return Err(LiveError::File(format!(
                "{name} was measured under other conditions ({what}); {other}"
            )));
        }
        let text =
            fs::read_to_string(&self.file).map_err(|error| LiveError::File(format!("{name}: {error}")))?;
        let (header, one) = (self.columns.header(), self.only_threads());
        let before = Columns { threads: false, ..self.columns };
        if one.is_some() && text.lines().next() == Some(&before.header()) {
            // Files of before had no column for a single count; theirs stays as it is.
            self.columns = before;
        } else if text.lines().next() != Some(&header) {
            return Err(LiveError::File(format!("{name} has not the columns {header}; {other}")));
        }
        // The reader passes over empty lines, too.
        let lines: Vec<&str> = text.lines().skip(1).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let sweeps = reader::read(&self.file).map_err(|error| LiveError::File(error.to_string()))?;
        // The reader puts lines of the same threads together, which they are.
        let threads = |sweep: &reader::Sweep| sweep.threads.or(one).unwrap_or(0);
        let rows = sweeps.iter().flat_map(|sweep| sweep.rows.iter().map(move |row| (threads(sweep), row)));
        for ((threads, row), line) in rows.zip(lines) {
            let key = (threads, Cell { collective: row.collective, bytes: row.bytes });
            let rounds = row.sure.map_or(0, |sure| sure.rounds);
            match self.cells.iter_mut().find(|(known, _)| *known == key) {
                Some((_, lines)) => lines.text.push(line.to_owned()),
                None => self.cells.push((key, Lines { rounds, text: vec![line.to_owned()] })),
            }
        }
        Ok(())
    }

    /// The count of threads, where there is but one.
    fn only_threads(&self) -> Option<u32> {
        if let [threads] = self.conditions.threads[..] { Some(threads) } else { None }
    }

    /// How many rounds of a cell with so many threads are in the file; none where it is not.
    pub fn rounds(&self, threads: u32, cell: Cell) -> Option<u32> {
        self.cells.iter().find(|(known, _)| *known == (threads, cell)).map(|(_, lines)| lines.rounds)
    }

    /// Lines of the file.
    pub fn rows(&self) -> usize {
        self.cells.iter().map(|(_, lines)| lines.text.len()).sum()
    }

    /// Adds a cell with so many threads, or gives it its new times. What is there of more rounds stays: it is better.
    pub fn put(&mut self, threads: u32, times: &CellTimes) -> Result<(), LiveError> {
        let key = (threads, times.cell);
        let line = |setting| self.line(times, setting) + &self.more(threads, times, setting);
        let text: Vec<String> = times.settings.iter().map(line).collect();
        let lines = Lines { rounds: times.rounds() as u32, text };
        match self.cells.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) if old.rounds > lines.rounds => return Ok(()),
            Some((_, old)) => *old = lines,
            None => self.cells.push((key, lines)),
        }
        self.cells.sort_by_key(|((threads, _), _)| *threads);
        self.save()
    }

    fn line(&self, times: &CellTimes, setting: &Measured) -> String {
        let Conditions { ranks, link, .. } = &self.conditions;
        let Cell { collective, bytes } = times.cell;
        let (knobs, model) = match setting.order {
            Order::Knobs { pair, channels, .. } => {
                let channels = channels.requested().map_or(String::new(), |channels| channels.to_string());
                let model = times.look.table.get(pair).map_or(String::new(), |us| format!("{us:.1}"));
                (format!("{},{},{channels}", pair.algorithm, written(pair.protocol)), model)
            }
            Order::Own | Order::Policy => ("default,default,".to_owned(), String::new()),
        };
        let (median, least, most) = (setting.median(), setting.fastest(), setting.slowest());
        let seen = format!("{median:.2},{least:.2},{most:.2}");
        let (low, high) = setting.interval();
        let sure = format!("{},{low:.2},{high:.2}", setting.rounds.len());
        format!("{ranks},{link},{collective},{bytes},{knobs},{seen},{model},{sure}")
    }

    /// What the columns have that were asked for.
    fn more(&self, threads: u32, times: &CellTimes, setting: &Measured) -> String {
        let Columns { threads: with_threads, chunks, beside } = self.columns;
        let mut more = String::new();
        if with_threads {
            more += &if threads == 0 { ",".to_owned() } else { format!(",{threads}") };
        }
        if chunks {
            let chunk = if let Order::Knobs { chunk, .. } = setting.order { chunk.name() } else { "" };
            more += &format!(",{chunk}");
        }
        if beside {
            let number = |us: Option<f64>| us.map_or(String::new(), |us| format!("{us:.2}"));
            let (with, alone) = (setting.load_median(), times.beside.map(|beside| beside.alone_us));
            more += &format!(",{},{}", number(with), number(alone));
        }
        more
    }

    fn about(&self) -> PathBuf {
        reader::About::path(&self.file)
    }

    fn save(&self) -> Result<(), LiveError> {
        let about = serde_json::to_string_pretty(&self.conditions).unwrap_or_default() + "\n";
        let mut text = self.columns.header();
        self.cells.iter().flat_map(|(_, lines)| &lines.text).for_each(|line| {
            text.push('\n');
            text.push_str(line);
        });
        text.push('\n');
        replace(&self.about(), &about)?;
        replace(&self.file, &text)
    }
}

/// A protocol as the published sweeps write it.
fn written(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::LL => "LL",
        Protocol::LL128 => "LL128",
        Protocol::Simple => "Simple",
    }
}

/// Gives a file its new text, whole.
fn replace(file: &Path, text: &str) -> Result<(), LiveError> {
    whole::write(file, text.as_bytes()).map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &io::Error) -> LiveError {
    LiveError::File(format!("cannot write {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{Collective, CostTable, Knobs};

    use super::*;
    use crate::message::Look;

    fn times(rounds: &[f64]) -> CellTimes {
        let look = Look { interface: 5, bytes: 1024, table: CostTable::default() };
        let own = Measured { rounds: rounds.to_vec(), ..Measured::new(Order::Own, Knobs::OWN) };
        let cell = Cell { collective: Collective::AllReduce, bytes: 1024 };
        CellTimes { cell, look, settings: vec![own], beside: None }
    }

    #[test]
    fn what_is_there_of_more_rounds_stays() {
        let dir = tempfile::tempdir().unwrap();
        let conditions = serde_json::from_value(serde_json::json!({
            "ranks": 2, "link": "loopback", "shared": true, "gpu": "G", "cuda": "12.8", "nccl": "2.28.3",
            "threads": [], "load": 0
        }));
        let (file, conditions): (_, Conditions) = (dir.path().join("s.csv"), conditions.unwrap());
        let mut sheet = Sheet::open(&file, conditions.clone(), Columns::default()).unwrap();
        let mut median = |rounds: &[f64]| {
            sheet.put(0, &times(rounds)).unwrap();
            reader::read(&file).unwrap()[0].rows[0].median_us
        };
        assert_eq!(median(&[50.0; 3]), 50.0);
        assert_eq!(median(&[40.0; 2]), 50.0, "fewer");
        assert_eq!(median(&[30.0; 3]), 30.0, "as many, and measured anew");
        assert_eq!(median(&[20.0; 4]), 20.0);
        // A line that somebody has left empty is no row, and takes the place of none.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replacen('\n', "\n\n", 1)).unwrap();
        let again = Sheet::open(&file, conditions, Columns::default()).unwrap();
        let lines: Vec<_> = again.cells.iter().flat_map(|(_, lines)| &lines.text).collect();
        assert_eq!(lines, text.lines().skip(1).collect::<Vec<_>>());
    }
}
