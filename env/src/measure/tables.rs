//! Tables collected from public sources: a folder with `tables.csv` and `measurements.csv`.
//!
//! `tables.csv` says where each table comes from and on what it was measured; `measurements.csv`
//! holds the rows. The notes of a table are text for people, but two things in them are read:
//! `healthy=` and `dtype=`.

use std::collections::HashMap;
use std::path::Path;

use dynamiccl_spec::{Algorithm, Collective, Protocol};

use super::Row;
use super::error::{Fault, MeasureError};
use super::sheet::Sheet;

const TABLE_COLUMNS: [&str; 10] = [
    "table_id",
    "source_url",
    "gpu",
    "n_nodes",
    "gpus_per_node",
    "intra",
    "inter",
    "inter_gbps_per_gpu_or_node",
    "nccl_version",
    "notes",
];
const ROW_COLUMNS: [&str; 10] = [
    "table_id",
    "collective",
    "size_bytes",
    "time_us",
    "algbw_gbps",
    "busbw_gbps",
    "inplace",
    "algo",
    "proto",
    "nchannels",
];

/// Whether the machine behind a table ran as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Health {
    /// It did.
    Yes,
    /// It did not.
    No,
    /// For some sizes or nodes only.
    Partly,
    /// The source does not tell.
    #[default]
    Unknown,
}

/// One table of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name, unique in the folder.
    pub id: String,
    /// Where it was published.
    pub source_url: String,
    /// GPU, in the source's words; empty where it does not say.
    pub gpu: String,
    /// Nodes.
    pub nodes: Option<u32>,
    /// GPUs used on each node.
    pub gpus_per_node: Option<u32>,
    /// Links inside a node, in words.
    pub intra: String,
    /// Network, in words.
    pub inter: String,
    /// Rate of the network per GPU or per node, in words.
    pub inter_gbps: String,
    /// NCCL's version; empty where not stated.
    pub nccl_version: String,
    /// Notes, in words.
    pub notes: String,
    /// Whether the machine ran as it should.
    pub health: Health,
    /// Data type, in the source's words.
    pub dtype: Option<String>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// Rows left out: without a time and with a bandwidth too coarse to compute one from, or forced
    /// to `CollNet`, which names two of NCCL's algorithms.
    pub left_out: usize,
}

impl Table {
    /// Ranks, where nodes and GPUs per node are both known.
    pub fn ranks(&self) -> Option<u32> {
        self.nodes?.checked_mul(self.gpus_per_node?)
    }
}

/// Reads a folder with `tables.csv` and `measurements.csv`.
pub fn read(dir: &Path) -> Result<Vec<Table>, MeasureError> {
    let mut tables = Vec::new();
    let mut sheet = Sheet::open(&dir.join("tables.csv"))?;
    sheet.require(&TABLE_COLUMNS)?;
    let mut index = HashMap::new();
    while sheet.advance()? {
        let table = table_of(&sheet)?;
        if index.insert(table.id.clone(), tables.len()).is_some() {
            return Err(sheet.bad("table_id", "each table needs a name of its own"));
        }
        tables.push(table);
    }
    read_rows(dir, &index, &mut tables)?;
    Ok(tables)
}

fn read_rows(dir: &Path, index: &HashMap<String, usize>, tables: &mut [Table]) -> Result<(), MeasureError> {
    let file = dir.join("measurements.csv");
    let mut sheet = Sheet::open(&file)?;
    sheet.require(&ROW_COLUMNS)?;
    let mut any = false;
    while sheet.advance()? {
        let id = sheet.text("table_id");
        let Some(&at) = index.get(id) else {
            let fault = Fault::new(&file, sheet.line(), id, "describe this table in tables.csv");
            return Err(MeasureError::Bad { what: "table_id".to_owned(), at: fault });
        };
        let table = &mut tables[at];
        match row_of(&sheet, table.ranks())? {
            Some(row) => table.rows.push(row),
            None => table.left_out += 1,
        }
        any = true;
    }
    if any { Ok(()) } else { Err(sheet.no_rows()) }
}

fn table_of(sheet: &Sheet) -> Result<Table, MeasureError> {
    let id = sheet.text("table_id").to_owned();
    if id.is_empty() {
        return Err(sheet.bad("table_id", "each table needs a name"));
    }
    let count = |column| sheet.optional(column, "a whole number, or nothing where unknown, is expected");
    let text = |column| sheet.text(column).to_owned();
    let notes = text("notes");
    Ok(Table {
        id,
        source_url: text("source_url"),
        gpu: text("gpu"),
        nodes: count("n_nodes")?,
        gpus_per_node: count("gpus_per_node")?,
        intra: text("intra"),
        inter: text("inter"),
        inter_gbps: text("inter_gbps_per_gpu_or_node"),
        nccl_version: text("nccl_version"),
        health: health_of(&notes),
        dtype: noted(&notes, "dtype=").map(str::to_owned),
        notes,
        rows: Vec::new(),
        left_out: 0,
    })
}

/// Notes are prose: a word that is none of these says no more than silence.
fn health_of(notes: &str) -> Health {
    match noted(notes, "healthy=") {
        Some("yes") => Health::Yes,
        Some("no") => Health::No,
        Some("partly") => Health::Partly,
        _ => Health::Unknown,
    }
}

/// The word after `key` in notes.
fn noted<'a>(notes: &'a str, key: &str) -> Option<&'a str> {
    let (_, after) = notes.split_once(key)?;
    let word = after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!word.is_empty()).then_some(word)
}

/// The row of the current line; nothing where it has no time and none can be computed, or where
/// its algorithm is two.
pub(super) fn row_of(sheet: &Sheet, ranks: Option<u32>) -> Result<Option<Row>, MeasureError> {
    if sheet.text("algo").eq_ignore_ascii_case("collnet") {
        return Ok(None);
    }
    let collective: Collective = sheet.word("collective")?;
    let bytes: u64 = sheet.whole("size_bytes")?;
    let time_us = if sheet.text("time_us").is_empty() {
        let Some(time) = time_of_bandwidth(sheet, collective, bytes, ranks)? else { return Ok(None) };
        time
    } else {
        sheet.positive("time_us")?
    };
    let algorithm: Option<Algorithm> = optional_word(sheet, "algo")?;
    let protocol: Option<Protocol> = optional_word(sheet, "proto")?;
    let in_place = match sheet.text("inplace") {
        "" => None,
        "0" => Some(false),
        "1" => Some(true),
        _ => return Err(sheet.bad("inplace", "0, 1 or nothing is expected")),
    };
    let channels = sheet.optional("nchannels", "a whole number, or nothing for NCCL's own, is expected")?;
    Ok(Some(Row { collective, bytes, time_us, pair: (algorithm, protocol), channels, in_place }))
}

fn optional_word<T>(sheet: &Sheet, column: &str) -> Result<Option<T>, MeasureError>
where
    T: std::str::FromStr,
    T::Err: ToString,
{
    if sheet.text(column).is_empty() { Ok(None) } else { sheet.word(column).map(Some) }
}

/// The time that a printed bandwidth stands for, where its rounding leaves it within 1 %.
fn time_of_bandwidth(
    sheet: &Sheet,
    collective: Collective,
    bytes: u64,
    ranks: Option<u32>,
) -> Result<Option<f64>, MeasureError> {
    let remedy = "a bandwidth in GB/s, or nothing, is expected";
    let algorithm: Option<f64> = sheet.optional("algbw_gbps", remedy)?;
    let bus: Option<f64> = sheet.optional("busbw_gbps", remedy)?;
    let precise = |column: &str, value: f64| {
        let decimals = sheet.text(column).split_once('.').map_or(0, |(_, digits)| digits.len().min(9));
        value.is_finite() && value > 0.0 && 0.5 * 10f64.powi(-(decimals as i32)) / value <= 0.01
    };
    let of_bus = || {
        let factor = collective.bus_factor(ranks.filter(|&n| n > 1)?);
        bus.filter(|&v| precise("busbw_gbps", v)).map(|v| v / factor)
    };
    let bandwidth = algorithm.filter(|&v| precise("algbw_gbps", v)).or_else(of_bus);
    Ok(bandwidth.map(|gbps| bytes as f64 / gbps / 1000.0))
}
