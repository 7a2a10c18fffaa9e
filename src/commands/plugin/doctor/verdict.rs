//! Whether ranks would do the same, and which of them would not.

use serde::Serialize;

use super::checkup::Checkup;
use super::facts::{Finding, Level, UNKNOWN};

/// Ranks that have the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// What they have.
    pub value: String,
    /// Who.
    pub ranks: Vec<u32>,
}

/// Something in which ranks differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What.
    pub what: &'static str,
    /// Whether decisions would differ; else NCCL's tables may.
    pub decides: bool,
    /// Who has what; what most have comes first.
    pub values: Vec<Held>,
}

/// The findings of a rank, or of several with the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// Who.
    pub ranks: Vec<u32>,
    /// What.
    #[serde(flatten)]
    pub finding: Finding,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether all ranks would decide the same.
    pub agree: bool,
    /// Whether every rank could begin.
    pub healthy: bool,
    /// In what they differ.
    pub differences: Vec<Difference>,
    /// What stands out.
    pub findings: Vec<Said>,
}

impl Verdict {
    /// Of what all ranks found.
    pub fn of(checkups: &[Checkup]) -> Self {
        let facts = differences(checkups, true, |checkup| checkup.facts.named().to_vec());
        let hints = differences(checkups, false, |checkup| checkup.hints.named().to_vec());
        let mut findings: Vec<Said> = Vec::new();
        for checkup in checkups {
            for finding in &checkup.findings {
                match findings.iter_mut().find(|said| said.finding == *finding) {
                    Some(said) => said.ranks.push(checkup.rank),
                    None => findings.push(Said { ranks: vec![checkup.rank], finding: finding.clone() }),
                }
            }
        }
        findings.sort_by_key(|said| said.finding.level);
        let healthy = findings.iter().all(|said| said.finding.level != Level::Fault);
        Verdict { agree: facts.is_empty(), healthy, differences: [facts, hints].concat(), findings }
    }

    /// Whether a job may begin.
    pub fn is_good(&self) -> bool {
        self.agree && self.healthy
    }
}

type Named<'a> = Vec<(&'static str, &'a str)>;

fn differences<'a>(
    checkups: &'a [Checkup],
    decides: bool,
    named: impl Fn(&'a Checkup) -> Named<'a>,
) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    for checkup in checkups {
        for (at, (what, value)) in named(checkup).into_iter().enumerate() {
            if found.len() <= at {
                found.push(Difference { what, decides, values: Vec::new() });
            }
            // A rank that cannot see NCCL has it all the same.
            if what == "nccl" && value == UNKNOWN {
                continue;
            }
            let values = &mut found[at].values;
            match values.iter_mut().find(|held| held.value == value) {
                Some(held) => held.ranks.push(checkup.rank),
                None => values.push(Held { value: value.to_owned(), ranks: vec![checkup.rank] }),
            }
        }
    }
    found.retain(|difference| difference.values.len() > 1);
    // Stable: among as many, those who have the lowest rank with them come first.
    found
        .iter_mut()
        .for_each(|difference| difference.values.sort_by_key(|held| std::cmp::Reverse(held.ranks.len())));
    found
}

/// `rank 3`, `ranks 0-2, 5`.
pub fn ranks_in_words(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let run = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let words = runs.iter().map(run).collect::<Vec<_>>().join(", ");
    if ranks.len() == 1 { format!("rank {words}") } else { format!("ranks {words}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::plugin::doctor::facts::{Facts, Hints};

    fn checkup(rank: u32, change: impl Fn(&mut Checkup)) -> Checkup {
        let word = || "x".to_owned();
        let facts = Facts { nccl: "2.28.9".to_owned(), ..Facts::all("x") };
        let hints = Hints { gpus: word(), nccl_variables: word() };
        let mut checkup = Checkup {
            rank,
            host: word(),
            library: word(),
            interfaces: vec![],
            facts,
            hints,
            findings: vec![],
        };
        change(&mut checkup);
        checkup
    }

    #[test]
    fn equal_ranks_agree() {
        let verdict = Verdict::of(&[checkup(0, |_| ()), checkup(1, |c| c.facts.nccl = UNKNOWN.to_owned())]);
        assert!(verdict.is_good() && verdict.differences.is_empty());
    }

    #[test]
    fn the_one_that_differs_is_named_last() {
        let other = |c: &mut Checkup| c.facts.policy = "y".to_owned();
        for odd in 0..4 {
            let checkups: Vec<Checkup> = (0..4)
                .map(|rank| {
                    checkup(rank, |c| {
                        if rank == odd {
                            other(c);
                        }
                    })
                })
                .collect();
            let verdict = Verdict::of(&checkups);
            assert!(!verdict.agree && verdict.healthy);
            let Difference { what, values, .. } = &verdict.differences[0];
            assert_eq!((*what, values[1].ranks.as_slice()), ("policy", [odd].as_slice()));
        }
        // Of two, rank 0 is the measure.
        let verdict = Verdict::of(&[checkup(0, other), checkup(1, |_| ())]);
        assert_eq!(verdict.differences[0].values[1].ranks, [1]);
    }

    #[test]
    fn tables_that_may_differ_are_no_disagreement() {
        let verdict = Verdict::of(&[checkup(0, |_| ()), checkup(1, |c| c.hints.gpus = "y".to_owned())]);
        assert!(verdict.is_good() && !verdict.differences[0].decides);
        let verdict = Verdict::of(&[checkup(0, |_| ()), checkup(1, |c| c.facts.nccl = "2.28.3".to_owned())]);
        assert!(!verdict.agree);
    }

    #[test]
    fn a_fault_is_said_once_with_all_who_have_it() {
        let fault = |c: &mut Checkup| c.findings.push(Finding::new(Level::Fault, "no policy".to_owned()));
        let verdict = Verdict::of(&[checkup(0, fault), checkup(1, fault)]);
        assert!(verdict.agree && !verdict.healthy && !verdict.is_good());
        assert_eq!(verdict.findings[0].ranks, [0, 1]);
    }

    #[test]
    fn ranks_read_well() {
        assert_eq!(ranks_in_words(&[3]), "rank 3");
        assert_eq!(ranks_in_words(&[0, 1, 2, 5]), "ranks 0-2, 5");
    }
}
