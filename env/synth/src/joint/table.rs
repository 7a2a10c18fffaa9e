//! What joint tuning has found, as a file: settings by operator and size for one topology, with a checksum
//! that tells a file that was changed.

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joint::START;
    use dynamiccl_env::cluster::Cluster;

    fn table() -> Table {
        let machine = Machine::from_cluster(&Cluster::load("aws_p4d").unwrap(), 2, 8).unwrap();
        let entry = |bytes, micros, last| Entry {
            collective: Collective::AllGather,
            bytes,
            micros,
            setting: Setting::at([START[0], 1, 1, 0, 0, 2, last]),
        };
        Table::new(&machine, vec![entry(1 << 20, 50.0, 1), entry(1 << 20, 60.0, 2), entry(1 << 30, 9e4, 3)])
    }

    #[test]
    fn a_table_is_refused_when_it_was_changed() {
        let table = table();
        let text = table.to_json();
        assert_eq!(Table::from_json("t.json", &text).unwrap(), table);
        for (from, to) in
            [("\"channels\": 1", "\"channels\": 2"), ("50.0", "50.5"), ("greedy-nic", "tree-nic")]
        {
            assert!(text.contains(from), "{from} in {text}");
            let error = Table::from_json("t.json", &text.replacen(from, to, 1)).unwrap_err();
            assert!(matches!(error, TableError::Checksum { .. }), "{error}");
        }
        assert!(matches!(Table::from_json("t", "{}").unwrap_err(), TableError::Syntax { .. }));
    }
}
