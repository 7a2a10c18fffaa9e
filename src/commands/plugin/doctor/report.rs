//! What the doctor says.

use std::fmt;

use serde::Serialize;

use super::checkup::Checkup;
use super::facts::{Facts, Hints, Level};
use super::verdict::{Difference, Said, Verdict, ranks_in_words};
use crate::launcher::Place;
use crate::table::{Column, Table};
use crate::words::counted;

/// What was found, of rank 0 in full and of the others where they differ.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Who started the ranks.
    pub launcher: Option<&'static str>,
    /// How many.
    pub ranks: u32,
    /// Where they run.
    pub hosts: Vec<String>,
    /// Rank 0's library.
    pub library: String,
    /// What NCCL finds in it.
    pub interfaces: Vec<String>,
    /// What all must have alike, as rank 0 has it.
    pub facts: Facts,
    /// What NCCL's tables are made of, as rank 0 has it.
    pub hints: Hints,
    /// What comes of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Report {
    /// Of all ranks; rank 0 comes first.
    pub fn new(place: Place, checkups: Vec<Checkup>, verdict: Verdict) -> Self {
        let mut hosts: Vec<String> = checkups.iter().map(|checkup| checkup.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        let Checkup { library, interfaces, facts, hints, .. } =
            checkups.into_iter().next().expect("rank 0 is always there");
        let Place { launcher, ranks, .. } = place;
        Report { launcher, ranks, hosts, library, interfaces, facts, hints, verdict }
    }

    fn whose(&self, ranks: &[u32]) -> String {
        if self.ranks == 1 { String::new() } else { format!("{}: ", ranks_in_words(ranks)) }
    }

    fn summary(&self) -> String {
        let Verdict { agree, healthy, .. } = self.verdict;
        match (self.ranks, agree, healthy) {
            (1, _, true) => {
                "this rank could begin; run the doctor on all ranks to see whether they agree".to_owned()
            }
            (1, _, false) => "this rank must not begin: see the faults above".to_owned(),
            (ranks, true, true) => format!("all {} would decide the same", counted(ranks, "rank")),
            (ranks, false, _) => {
                format!("NO: {} would not agree, and the job would hang", counted(ranks, "rank"))
            }
            (_, true, false) => "NO: ranks could not begin: see the faults above".to_owned(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ranks, hosts) = (counted(self.ranks, "rank"), self.hosts.join(", "));
        let launcher = self.launcher.map(|name| format!(" of {name}")).unwrap_or_default();
        writeln!(f, "# {ranks}{launcher} on {hosts}")?;
        writeln!(f, "# library {}: {}", self.library, interfaces(&self.interfaces))?;
        let mut table = Table::new([Column::left("what"), Column::left("value")]);
        let named = self.facts.named().into_iter().chain(self.hints.named());
        named.for_each(|(name, value)| table.row([name.to_owned(), value.to_owned()]));
        write!(f, "#\n{table}")?;
        for Said { ranks, finding } in &self.verdict.findings {
            let level = match finding.level {
                Level::Fault => "fault",
                Level::Warning => "warning",
                Level::Note => "note",
            };
            writeln!(f, "# {level}: {}{}", self.whose(ranks), finding.text)?;
        }
        self.verdict.differences.iter().try_for_each(|difference| differs(f, difference))?;
        writeln!(f, "Summary  {}", self.summary())
    }
}

/// Who has what, with the odd ones first.
fn differs(f: &mut fmt::Formatter<'_>, difference: &Difference) -> fmt::Result {
    let Difference { what, decides, values } = difference;
    let Some((most, odd)) = values.split_first() else { return Ok(()) };
    let weight = if *decides { "fault" } else { "warning: tables may differ" };
    for held in odd {
        let (who, value) = (ranks_in_words(&held.ranks), &held.value);
        let verb = if held.ranks.len() == 1 { "differs" } else { "differ" };
        let others = ranks_in_words(&most.ranks);
        let have = if most.ranks.len() == 1 { "has" } else { "have" };
        writeln!(f, "# {weight}: {who} {verb} in {what}: {value}, where {others} {have} {}", most.value)?;
    }
    Ok(())
}

/// `tuner v2-v7, profiler v1-v6, env v1-v2`.
fn interfaces(names: &[String]) -> String {
    let versions = |prefix: &str| {
        let all: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix(prefix)).collect();
        Some((*all.first()?, *all.last()?))
    };
    let kinds = [("tuner", "ncclTunerPlugin_"), ("profiler", "ncclProfiler_"), ("env", "ncclEnvPlugin_")];
    let found = kinds.into_iter().filter_map(|(kind, prefix)| {
        let (first, last) = versions(prefix)?;
        Some(format!("{kind} {first}-{last}"))
    });
    let found: Vec<String> = found.collect();
    if found.is_empty() { "nothing that NCCL looks for".to_owned() } else { found.join(", ") }
}
