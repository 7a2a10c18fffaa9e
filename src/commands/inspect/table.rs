//! A table of NVIDIA's example tuner, as `inspect` shows it.

use dynamiccl_policies::nccl_csv::{Channels, Rule, Table};
use dynamiccl_spec::Collective;
use serde::Serialize;

/// The end of the ranges in NVIDIA's own examples.
const FOUR_GIB: u64 = u32::MAX as u64;

/// What a table covers.
#[derive(Debug, Serialize)]
pub struct Summary {
    rules: usize,
    collectives: Vec<Collective>,
    notes: Vec<String>,
}

impl Summary {
    /// What there is to say about a table.
    pub fn new(table: &Table) -> Self {
        let covers = |collective: &Collective| table.rules().any(|rule| rule.collective == *collective);
        Summary {
            rules: table.rules().count(),
            collectives: Collective::TUNED.into_iter().filter(covers).collect(),
            notes: notes(table),
        }
    }

    /// The same as names and values.
    pub fn lines(&self) -> Vec<(String, String)> {
        let collectives: Vec<_> = self.collectives.iter().map(|collective| collective.name()).collect();
        let mut lines = vec![
            ("rules".to_owned(), self.rules.to_string()),
            ("collectives".to_owned(), collectives.join(", ")),
        ];
        lines.extend(self.notes.iter().map(|note| ("note".to_owned(), note.clone())));
        lines
    }
}

/// What its author may not have meant.
fn notes(table: &Table) -> Vec<String> {
    let count = |wanted: &dyn Fn(&Rule) -> bool| table.rules().filter(|rule| wanted(rule)).count();
    let meant = count(&|rule| rule.channels == Channels::Meant);
    let ends = count(&|rule| rule.max_bytes == FOUR_GIB);
    let missing = count(&|rule| !rule.pair.exists_for(rule.collective));
    [
        (meant, "rules leave the channels to NCCL with -1, and NVIDIA's plugin makes 1 of it; write 0"),
        (ends, "rules end below 4 GiB and match no larger call; write 18446744073709551615 for no end"),
        (missing, "rules name an algorithm with a protocol that NCCL does not have for their collective"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, note)| format!("{count} {note}"))
    .collect()
}
