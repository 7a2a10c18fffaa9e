//! What `check-env` says: a line per rule.

use std::fmt;

use dynamiccl_env::gym::check::{Report, Rule, RuleResult, Verdict};
use serde::Serialize;

use crate::args::{CheckEnvArgs, EnvKind};

/// The report, with what was checked.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    env: EnvKind,
    curriculum: Option<&'a str>,
    trace: Option<String>,
    ok: bool,
    #[serde(flatten)]
    report: &'a Report,
}

impl<'a> Document<'a> {
    /// The report on what the words name.
    pub fn new(args: &'a CheckEnvArgs, report: &'a Report) -> Self {
        let trace = args.trace.as_ref().or(args.sweep.as_ref()).map(|path| path.display().to_string());
        let named = args.draws() && args.env != EnvKind::Trace;
        let curriculum = named.then_some(args.curriculum());
        Document { env: args.env, curriculum, trace, ok: report.ok(), report }
    }
}

impl fmt::Display for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { id, rules, steps } = self.report;
        writeln!(f, "# {id}, {steps} steps\n#")?;
        let width = Rule::ALL.iter().map(|rule| rule.name().len()).max().unwrap_or(0);
        rules.iter().try_for_each(|result| line(f, result, width))?;
        match self.report.broken().count() {
            0 => writeln!(f, "Summary  {id} keeps the contract"),
            broken => writeln!(f, "Summary  {id} breaks {broken} of {} rules", rules.len()),
        }
    }
}

fn line(f: &mut fmt::Formatter<'_>, result: &RuleResult, width: usize) -> fmt::Result {
    let RuleResult { rule, name, verdict, detail, remedy } = result;
    let sign = match verdict {
        Verdict::Kept => '✓',
        Verdict::Broken => '✗',
        Verdict::Open => '–',
    };
    writeln!(f, "{sign}  {name:width$}  {}", rule.meaning())?;
    if !detail.is_empty() {
        writeln!(f, "#  {:width$}  {detail}", "")?;
    }
    if *verdict == Verdict::Broken {
        writeln!(f, "#  {:width$}  remedy: {remedy}", "")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_rule_says_what_and_what_to_do() {
        let result = |rule: Rule, verdict, detail: &str| RuleResult {
            rule,
            name: rule.name(),
            verdict,
            detail: detail.to_owned(),
            remedy: rule.remedy(),
        };
        let rules = vec![
            result(Rule::Spaces, Verdict::Kept, ""),
            result(Rule::Range, Verdict::Broken, "size is NaN, stated are 0 to 1"),
            result(Rule::Seeds, Verdict::Open, "does not apply"),
        ];
        let report = Report { id: "x-v1".to_owned(), rules, steps: 9 };
        let document =
            Document { env: EnvKind::Sim, curriculum: None, trace: None, ok: report.ok(), report: &report };
        insta::assert_snapshot!(document.to_string(), @r"
        # x-v1, 9 steps
        #
        ✓  spaces     names are unique, ranges are ranges, observations are as wide as the spaces say
        ✗  range      observed numbers are finite and within their stated range
        #             size is NaN, stated are 0 to 1
        #             remedy: write through the encoder, which clamps, or widen the stated range
        –  seeds      different seeds give episodes that are neither equal nor shifted copies
        #             does not apply
        Summary  x-v1 breaks 1 of 3 rules
        ");
    }
}
