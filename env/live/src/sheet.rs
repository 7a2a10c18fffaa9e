//! A sweep's file: the columns of the published sweeps. It can be gone on with, and is always whole: it gets its next
//! cell at once or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dynamiccl_env::measure::sweep as reader;
use dynamiccl_spec::{Order, Protocol};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::cell::Cell;
use crate::clock::Clock;
use crate::crew::LiveError;
use crate::measure::{CellTimes, Measured};

/// The first line of a sweep.
const HEADER: &str =
    "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nccl_model_us";

/// Under what a sweep was measured. Cells of one file must not differ in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Ranks.
    pub ranks: u32,
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
    /// Threads per block; 0 for NCCL's own.
    pub threads: u32,
    /// Blocks of the load beside communication; 0 for none.
    pub load: u32,
    /// Whose clock counts.
    #[serde(default)]
    pub clock: Clock,
}

/// A sweep's file.
#[derive(Debug)]
pub struct Sheet {
    file: PathBuf,
    conditions: Conditions,
    /// The lines of every cell.
    cells: Vec<(Cell, Vec<String>)>,
}

impl Sheet {
    /// A new file, or one to go on with that was measured under the same conditions.
    pub fn open(file: &Path, conditions: Conditions) -> Result<Self, LiveError> {
        let mut sheet = Sheet { file: file.to_owned(), conditions, cells: Vec::new() };
        if file.exists() {
            sheet.go_on()?;
        }
        // A folder that cannot be written to is noticed before an hour of measuring.
        under_way(file).map_err(|error| unwritable(file, &error))?;
        Ok(sheet)
    }

    fn go_on(&mut self) -> Result<(), LiveError> {
        let name = self.file.display();
        let other = "remove it, or give another --out";
        let about = fs::read_to_string(self.about()).ok();
        let before: Option<Conditions> = about.and_then(|text| serde_json::from_str(&text).ok());
        if before.as_ref() != Some(&self.conditions) {
            let what = before.map_or("nobody knows how".to_owned(), |before| format!("{before:?}"));
            return Err(LiveError::File(format!(
                "{name} was measured under other conditions ({what}); {other}"
            )));
        }
        let text =
            fs::read_to_string(&self.file).map_err(|error| LiveError::File(format!("{name}: {error}")))?;
        if text.lines().next() != Some(HEADER) {
            return Err(LiveError::File(format!("{name} is no sweep; {other}")));
        }
        let lines: Vec<&str> = text.lines().skip(1).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let sweeps = reader::read(&self.file).map_err(|error| LiveError::File(error.to_string()))?;
        let rows = sweeps.iter().flat_map(|sweep| &sweep.rows);
        for (row, line) in rows.zip(lines) {
            let cell = Cell { collective: row.collective, bytes: row.bytes };
            match self.cells.iter_mut().find(|(known, _)| *known == cell) {
                Some((_, lines)) => lines.push(line.to_owned()),
                None => self.cells.push((cell, vec![line.to_owned()])),
            }
        }
        Ok(())
    }

    /// Whether a cell is in the file.
    pub fn has(&self, cell: Cell) -> bool {
        self.cells.iter().any(|(known, _)| *known == cell)
    }

    /// Lines of the file.
    pub fn rows(&self) -> usize {
        self.cells.iter().map(|(_, lines)| lines.len()).sum()
    }

    /// Adds a cell, or gives it its new times.
    pub fn put(&mut self, times: &CellTimes) -> Result<(), LiveError> {
        let lines: Vec<String> = times.settings.iter().map(|setting| self.line(times, setting)).collect();
        match self.cells.iter_mut().find(|(known, _)| *known == times.cell) {
            Some((_, old)) => *old = lines,
            None => self.cells.push((times.cell, lines)),
        }
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
        let micros = &setting.rounds;
        let least = micros.iter().copied().fold(f64::INFINITY, f64::min);
        let most = micros.iter().copied().fold(0.0, f64::max);
        let median = setting.median();
        format!("{ranks},{link},{collective},{bytes},{knobs},{median:.2},{least:.2},{most:.2},{model}")
    }

    fn about(&self) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(".about.json");
        name.into()
    }

    fn save(&self) -> Result<(), LiveError> {
        let about = serde_json::to_string_pretty(&self.conditions).unwrap_or_default() + "\n";
        let mut text = String::from(HEADER);
        self.cells.iter().flat_map(|(_, lines)| lines).for_each(|line| {
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
    let write = || -> io::Result<()> {
        let mut under_way = under_way(file)?;
        under_way.write_all(text.as_bytes())?;
        under_way.persist(file)?;
        Ok(())
    };
    write().map_err(|error| unwritable(file, &error))
}

/// A file beside another, gone unless it gets its name.
fn under_way(file: &Path) -> io::Result<NamedTempFile> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".live-").permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
}

fn unwritable(file: &Path, error: &io::Error) -> LiveError {
    LiveError::File(format!("cannot write {}: {error}", file.display()))
}
