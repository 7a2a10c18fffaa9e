//! What a check says.

use serde::Serialize;

use super::rule::Rule;

/// What to check, and how thoroughly.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckOptions {
    /// Random legal steps.
    pub steps: u64,
    /// Seeds of the episodes; two at least, or different seeds cannot be compared.
    pub seeds: Vec<u64>,
    /// Steps within which every episode must end.
    pub longest_episode: u64,
    /// Whether seeds should matter: they do not where a recording is replayed.
    pub seeds_matter: bool,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions { steps: 100_000, seeds: vec![1, 2, 3], longest_episode: 50_000, seeds_matter: true }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The environment's name and version.
    pub id: String,
    /// One per rule.
    pub rules: Vec<RuleResult>,
    /// Steps that were taken, all rules together.
    pub steps: u64,
}

/// The result of one rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleResult {
    /// Which one.
    #[serde(skip)]
    pub rule: Rule,
    /// Its name.
    pub name: &'static str,
    /// Whether it is kept.
    pub verdict: Verdict,
    /// What was found, where anything was.
    pub detail: String,
    /// What to do if it is broken.
    pub remedy: &'static str,
}

/// Whether a rule is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Kept,
    /// It is not.
    Broken,
    /// It could not be judged, or does not apply.
    Open,
}

impl Report {
    /// Whether no rule is broken.
    pub fn ok(&self) -> bool {
        self.broken().next().is_none()
    }

    /// The rules that are broken.
    pub fn broken(&self) -> impl Iterator<Item = &RuleResult> {
        self.rules.iter().filter(|result| result.verdict == Verdict::Broken)
    }
}
