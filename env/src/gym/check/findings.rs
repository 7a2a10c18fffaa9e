//! What was found against each rule: the first thing is enough.

use super::report::{RuleResult, Verdict};
use super::rule::Rule;

/// The first violation of each rule, and the rules that were left out.
#[derive(Debug, Default)]
pub struct Findings {
    broken: Vec<(Rule, String)>,
    left_out: Vec<(Rule, &'static str)>,
}

impl Findings {
    /// Notes a violation; later ones of the same rule are dropped unsaid.
    pub fn note(&mut self, rule: Rule, detail: impl FnOnce() -> String) {
        if !self.is_broken(rule) {
            self.broken.push((rule, detail()));
        }
    }

    /// Notes that a rule does not apply.
    pub fn leave_out(&mut self, rule: Rule, why: &'static str) {
        self.left_out.push((rule, why));
    }

    fn is_broken(&self, rule: Rule) -> bool {
        self.broken.iter().any(|(other, _)| *other == rule)
    }

    /// The verdict on every rule. One that needs a broken one is open: its evidence means nothing.
    pub fn verdicts(self) -> Vec<RuleResult> {
        Rule::ALL.into_iter().map(|rule| self.verdict(rule)).collect()
    }

    fn verdict(&self, rule: Rule) -> RuleResult {
        let needed = rule.needs().filter(|&needed| self.is_broken(needed));
        let left_out = self.left_out.iter().find(|(other, _)| *other == rule);
        let broken = self.broken.iter().find(|(other, _)| *other == rule);
        let (verdict, detail) = match (needed, left_out, broken) {
            (Some(needed), ..) => {
                (Verdict::Open, format!("cannot be judged while {} is broken", needed.name()))
            }
            (None, Some((_, why)), _) => (Verdict::Open, (*why).to_owned()),
            (None, None, Some((_, detail))) => (Verdict::Broken, detail.clone()),
            (None, None, None) => (Verdict::Kept, String::new()),
        };
        RuleResult { rule, name: rule.name(), verdict, detail, remedy: rule.remedy() }
    }
}
