//! What a job would do as it was told and hardly anybody means: settings that are for tests or for programs that measure,
//! and a policy that is told nothing of the machine. The library takes them without a word.

use dynamiccl_spec::variables::{CONTEXT, MODE, POLICY};

use super::facts::{Facts, Finding, Level};
use super::variables::Variables;

/// The word by which tests ask for every setting in turn.
const WALK: &str = "walk";

/// What stands out.
pub fn findings(facts: &Facts, variables: &Variables) -> Vec<Finding> {
    let mode = facts.mode.as_str();
    let walks = mode != "off" && variables.get(POLICY) == Some(WALK);
    let said = [
        (
            walks,
            Level::Fault,
            format!(
                "{POLICY}={WALK} is for tests only: every call would get another setting, and most are slow; name a \
                 policy, or unset it"
            ),
        ),
        (
            mode == "driven",
            Level::Warning,
            format!(
                "{MODE}=driven is for programs that measure: without such a program everything stays NCCL's own; set \
                 it to act"
            ),
        ),
        (
            mode == "act" && facts.context == "none",
            Level::Warning,
            format!(
                "{CONTEXT} is not set: of this job the policy knows nothing but ranks and nodes; name a deployment file \
                 that describes the cluster"
            ),
        ),
    ];
    said.into_iter().filter(|(is, ..)| *is).map(|(_, level, text)| Finding::new(level, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::plugin::doctor::facts::UNKNOWN;

    /// The level and the first word of each finding.
    fn said(mode: &str, context: &str, set: &[(&str, &str)]) -> Vec<(Level, String)> {
        let facts = Facts { mode: mode.to_owned(), context: context.to_owned(), ..Facts::all(UNKNOWN) };
        let variables = Variables::new(set.iter().copied(), Vec::new());
        let first = |text: String| text.split(' ').take(1).collect();
        findings(&facts, &variables).into_iter().map(|found| (found.level, first(found.text))).collect()
    }

    #[test]
    fn what_hardly_anybody_means_is_said() {
        let walk = [(POLICY, "walk")];
        let fault = (Level::Fault, "DYNAMICCL_POLICY=walk".to_owned());
        let untold = (Level::Warning, "DYNAMICCL_CONTEXT".to_owned());
        assert_eq!(said("act", "00bb", &[]), []);
        assert_eq!(said("act", "none", &walk), [fault.clone(), untold.clone()]);
        assert_eq!(said("act", "none", &[]), [untold]);
        assert_eq!(said("act", "00bb", &walk), [fault]);
        assert_eq!(said("off", UNKNOWN, &walk), []);
        assert_eq!(said("observe", "none", &[]), []);
        assert_eq!(said("driven", "none", &[]), [(Level::Warning, "DYNAMICCL_MODE=driven".to_owned())]);
    }
}
