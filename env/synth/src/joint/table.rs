//! What joint tuning has found, as a file that every rank of a job loads: settings by operator and size for
//! one topology, with a checksum that the ranks compare before they use it.

use dynamiccl_spec::Collective;
use dynamiccl_spec::fnv::Fnv;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Setting;
use crate::machine::Machine;

/// Number of the file's form.
pub const FORMAT: u32 = 1;

/// Why a table cannot be used.
#[derive(Debug, Error)]
pub enum TableError {
    /// It is no table.
    #[error("{file}: no lookup table: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// It is of another form.
    #[error("{file}: form {found}, this build reads {FORMAT}: tune again")]
    Form {
        /// The file.
        file: String,
        /// Its form.
        found: u32,
    },
    /// It was changed after it was written.
    #[error("{file}: its checksum is {said}, its content has {found}: copy or tune it again")]
    Checksum {
        /// The file.
        file: String,
        /// What it says.
        said: String,
        /// What it has.
        found: String,
    },
    /// It belongs to another machine.
    #[error("table of {table}: this is {machine}, whose topology differs: tune again")]
    Topology {
        /// The machine of the table.
        table: String,
        /// The machine at hand.
        machine: String,
    },
    /// Ranks have different tables.
    #[error("rank {rank} has the table {theirs}, rank 0 has {ours}: give all ranks the same file")]
    Ranks {
        /// The first rank that differs.
        rank: usize,
        /// Its checksum.
        theirs: String,
        /// The checksum of rank 0.
        ours: String,
    },
}

/// What was found for one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The operator.
    pub collective: Collective,
    /// The size.
    pub bytes: u64,
    /// µs that it is expected to take.
    pub micros: f64,
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Number of its form.
    pub format: u32,
    /// The machine that it is for.
    pub machine: String,
    /// The fingerprint of that machine's topology.
    pub topology: String,
    /// The checksum of everything else.
    pub checksum: String,
    /// Several settings of a call, fastest first.
    pub entries: Vec<Entry>,
}

fn hexadecimal(number: u64) -> String {
    format!("{number:016x}")
}

impl Table {
    /// The table of a machine.
    pub fn new(machine: &Machine, entries: Vec<Entry>) -> Table {
        let topology = hexadecimal(machine.fingerprint());
        let mut table = Table {
            format: FORMAT,
            machine: machine.name.clone(),
            topology,
            checksum: String::new(),
            entries,
        };
        table.checksum = table.sum();
        table
    }

    /// The checksum of its content.
    fn sum(&self) -> String {
        let mut fnv = Fnv::new();
        fnv.number(u64::from(self.format));
        fnv.text(&self.machine);
        fnv.text(&self.topology);
        for Entry { collective, bytes, micros, setting } in &self.entries {
            let backend = &setting.backend;
            [collective.name(), setting.sketch.name(), setting.synthesizer.name(), backend.protocol.name()]
                .iter()
                .for_each(|word| fnv.text(word));
            let numbers = [*bytes, micros.to_bits(), backend.buffer];
            numbers.iter().for_each(|&number| fnv.number(number));
            let small = [setting.chunks, backend.channels, backend.threads];
            small.iter().for_each(|&number| fnv.number(u64::from(number)));
        }
        hexadecimal(fnv.value())
    }

    /// The text of a file that reads back as this table.
    pub fn to_json(&self) -> String {
        // Plain words and numbers are always JSON.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a table; one that was changed is refused.
    pub fn from_json(file: &str, text: &str) -> Result<Table, TableError> {
        let file = file.to_owned();
        let table: Table = serde_json::from_str(text)
            .map_err(|error| TableError::Syntax { file: file.clone(), problem: error.to_string() })?;
        if table.format != FORMAT {
            return Err(TableError::Form { file, found: table.format });
        }
        let found = table.sum();
        if found != table.checksum {
            return Err(TableError::Checksum { file, said: table.checksum, found });
        }
        Ok(table)
    }

    /// Refuses a machine that the table was not made for.
    pub fn check(&self, machine: &Machine) -> Result<(), TableError> {
        if self.topology == hexadecimal(machine.fingerprint()) {
            return Ok(());
        }
        Err(TableError::Topology { table: self.machine.clone(), machine: machine.name.clone() })
    }

    /// Refuses checksums of ranks, in their order, that are not all the same.
    pub fn agree(checksums: &[String]) -> Result<(), TableError> {
        let Some(ours) = checksums.first() else { return Ok(()) };
        match checksums.iter().position(|theirs| theirs != ours) {
            None => Ok(()),
            Some(rank) => {
                Err(TableError::Ranks { rank, theirs: checksums[rank].clone(), ours: ours.clone() })
            }
        }
    }

    /// The settings of the nearest size of a call, by ratio; smaller before larger.
    pub fn look_up(&self, collective: Collective, bytes: u64) -> Vec<&Entry> {
        let off = |entry: &Entry| {
            let (a, b) = (entry.bytes.max(1) as f64, bytes.max(1) as f64);
            if a > b { a / b } else { b / a }
        };
        let calls = self.entries.iter().filter(|entry| entry.collective == collective);
        let nearest = calls.clone().min_by(|a, b| off(a).total_cmp(&off(b)).then(a.bytes.cmp(&b.bytes)));
        let size = nearest.map(|entry| entry.bytes);
        calls.filter(|entry| Some(entry.bytes) == size).collect()
    }
}
