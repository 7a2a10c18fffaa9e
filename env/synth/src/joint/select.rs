//! Which of a table's settings a call runs with: the one with the shortest recent time, as TuCCL does.
//!
//! What was not measured yet counts with what the table expects of it. After a change of the topology,
//! nothing that was measured counts any more, and a table of the new topology is needed.

use std::collections::HashMap;

use dynamiccl_spec::Collective;

use super::table::{Entry, Table, TableError};
use crate::machine::Machine;

/// Share of a new measurement in a recent time.
const NEW: f64 = 0.5;

/// Picks settings and remembers times. Every rank that is told the same picks the same.
#[derive(Debug, Clone)]
pub struct Selection {
    table: Table,
    /// Recent µs, by collective, size of the table and place among its settings.
    recent: HashMap<(Collective, u64, usize), f64>,
}

/// A setting that was picked.
#[derive(Debug, Clone, PartialEq)]
pub struct Picked {
    /// The entry.
    pub entry: Entry,
    /// Its place among the settings of its call.
    pub place: usize,
}

impl Selection {
    /// A selection from a table of this machine.
    pub fn new(table: Table, machine: &Machine) -> Result<Self, TableError> {
        table.check(machine)?;
        Ok(Selection { table, recent: HashMap::new() })
    }

    /// The setting for a call; none where the table has none for the collective.
    pub fn pick(&self, collective: Collective, bytes: u64) -> Option<Picked> {
        let entries = self.table.look_up(collective, bytes);
        let time = |place: usize, entry: &Entry| {
            self.recent.get(&(collective, entry.bytes, place)).copied().unwrap_or(entry.micros)
        };
        let timed = entries.iter().enumerate().map(|(place, entry)| (time(place, entry), place));
        let (_, place) = timed.reduce(|best, next| if next.0 < best.0 { next } else { best })?;
        Some(Picked { entry: entries[place].clone(), place })
    }

    /// Remembers what a picked setting took, in µs.
    pub fn record(&mut self, picked: &Picked, micros: f64) {
        let key = (picked.entry.collective, picked.entry.bytes, picked.place);
        let recent = self.recent.entry(key).or_insert(micros);
        *recent += NEW * (micros - *recent);
    }

    /// Begins again after a restart or a change of the topology; a table of another topology is refused.
    pub fn reinitialise(&mut self, table: Table, machine: &Machine) -> Result<(), TableError> {
        *self = Selection::new(table, machine)?;
        Ok(())
    }

    /// Whether the table is still that of the machine.
    pub fn still_valid(&self, machine: &Machine) -> bool {
        self.table.check(machine).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joint::{START, Setting};
    use dynamiccl_env::cluster::Cluster;

    fn machine(nodes: u32) -> Machine {
        Machine::from_cluster(&Cluster::load("aws_p4d").unwrap(), nodes, 8).unwrap()
    }

    fn table(nodes: u32) -> Table {
        let entry = |bytes, micros, last| Entry {
            collective: Collective::AllGather,
            bytes,
            micros,
            setting: Setting::at([START[0], 1, 1, 0, 0, 2, last]),
        };
        Table::new(
            &machine(nodes),
            vec![entry(1 << 20, 50.0, 1), entry(1 << 20, 60.0, 2), entry(1 << 30, 9e4, 3)],
        )
    }

    #[test]
    fn the_shortest_recent_time_wins_and_a_new_topology_begins_again() {
        let mut selection = Selection::new(table(2), &machine(2)).unwrap();
        let first = selection.pick(Collective::AllGather, 2 << 20).unwrap();
        assert_eq!((first.entry.micros, first.place), (50.0, 0));
        selection.record(&first, 80.0);
        let second = selection.pick(Collective::AllGather, 2 << 20).unwrap();
        assert_eq!((second.entry.micros, second.place), (60.0, 1));
        // The first was slow once; the second is slower now.
        selection.record(&second, 200.0);
        assert_eq!(selection.pick(Collective::AllGather, 1 << 20).unwrap().place, 0);
        assert_eq!(selection.pick(Collective::AllReduce, 1 << 20), None);

        assert!(selection.still_valid(&machine(2)) && !selection.still_valid(&machine(3)));
        let error = selection.reinitialise(table(2), &machine(3)).unwrap_err().to_string();
        assert!(error.contains("topology differs"), "{error}");
        selection.reinitialise(table(3), &machine(3)).unwrap();
        assert_eq!(selection.pick(Collective::AllGather, 1 << 20).unwrap().place, 0);
    }

    #[test]
    fn a_table_is_refused_when_it_was_changed_or_ranks_differ() {
        let table = table(2);
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
        let sums = |words: [&str; 3]| words.map(str::to_owned);
        assert!(Table::agree(&sums(["a", "a", "a"])).is_ok());
        let error = Table::agree(&sums(["a", "a", "b"])).unwrap_err().to_string();
        assert!(error.starts_with("rank 2 has the table b"), "{error}");
    }
}
