//! The line with which the plugin says what it has loaded for a communicator.
//!
//! People read it in NCCL's log, and `plugin doctor` compares it between ranks. Both sides of the library's border must mean
//! the same by it, so it is written and read here. How it was loaded is not known.

use std::fmt;

const POLICY: &str = ", policy ";
const CONTEXT: &str = ", context ";
const MODE: &str = ", mode ";
const OFF: &str = ", mode off: NCCL chooses by itself";
const UNTUNED: &str = " (nothing is tuned: NCCL hands over no table before 2.22)";
const DETERMINISTIC: &str = ", deterministic";
const FIXED: &str = ", fixed by the user: ";

/// What is said when a communicator begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The library's version.
    pub version: String,
    /// The communicator in words: NCCL's interface, ranks, nodes.
    pub communicator: String,
    /// By what calls are decided; none where the mode is off.
    pub rule: Option<Rule>,
}

/// By what calls are decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The policy's name and fingerprint.
    pub policy: String,
    /// The deployment file's fingerprint.
    pub context: String,
    /// What is done with decisions, in one word of lower case.
    pub mode: String,
    /// Whether NCCL hands over tables at all.
    pub tables: bool,
    /// Whether sums must come out alike.
    pub deterministic: bool,
    /// What NCCL's own variables fix; empty where they fix nothing.
    pub fixed: String,
}

impl Loaded {
    /// Reads the line; none where it is not this one.
    pub fn parse(line: &str) -> Option<Self> {
        let (version, rest) = line.split_once(", ")?;
        let (communicator, rule) = match rest.split_once(POLICY) {
            Some((communicator, rule)) => (communicator, Some(Rule::parse(rule)?)),
            None => (rest.strip_suffix(OFF)?, None),
        };
        Some(Loaded { version: version.to_owned(), communicator: communicator.to_owned(), rule })
    }
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        let (policy, rest) = text.split_once(CONTEXT)?;
        let (context, rest) = rest.split_once(MODE)?;
        let end = rest.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(rest.len());
        let (mode, rest) = rest.split_at_checked(end).filter(|(mode, _)| !mode.is_empty())?;
        let untuned = rest.strip_prefix(UNTUNED);
        let rest = untuned.unwrap_or(rest);
        let deterministic = rest.strip_prefix(DETERMINISTIC);
        let rest = deterministic.unwrap_or(rest);
        let fixed = if rest.is_empty() { rest } else { rest.strip_prefix(FIXED)? };
        Some(Rule {
            policy: policy.to_owned(),
            context: context.to_owned(),
            mode: mode.to_owned(),
            tables: untuned.is_none(),
            deterministic: deterministic.is_some(),
            fixed: fixed.to_owned(),
        })
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loaded { version, communicator, rule } = self;
        write!(f, "{version}, {communicator}")?;
        match rule {
            Some(rule) => write!(f, "{POLICY}{rule}"),
            None => f.write_str(OFF),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { policy, context, mode, .. } = self;
        let untuned = if self.tables { "" } else { UNTUNED };
        let deterministic = if self.deterministic { DETERMINISTIC } else { "" };
        write!(f, "{policy}{CONTEXT}{context}{MODE}{mode}{untuned}{deterministic}")?;
        if self.fixed.is_empty() { Ok(()) } else { write!(f, "{FIXED}{}", self.fixed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: &str = "tuner v6, 2 ranks on 1 nodes, communicator 0x0";

    fn rule(tables: bool, deterministic: bool, fixed: &str) -> Loaded {
        let rule = Rule {
            policy: "tiny 00aa".to_owned(),
            context: "none".to_owned(),
            mode: "observe".to_owned(),
            tables,
            deterministic,
            fixed: fixed.to_owned(),
        };
        Loaded { version: "0.1.0".to_owned(), communicator: OF.to_owned(), rule: Some(rule) }
    }

    #[test]
    fn what_is_said_is_understood() {
        let fixed = ["", "NCCL_ALGO=Ring, NCCL_PROTO=LL (left out)", ", policy x, context y, mode act"];
        for (tables, deterministic) in [(true, true), (true, false), (false, true), (false, false)] {
            for loaded in fixed.map(|fixed| rule(tables, deterministic, fixed)) {
                assert_eq!(Loaded::parse(&loaded.to_string()), Some(loaded));
            }
        }
        let off = Loaded { rule: None, ..rule(true, false, "") };
        assert_eq!(Loaded::parse(&off.to_string()), Some(off));
    }

    /// People search logs for it.
    #[test]
    fn the_line_reads_as_ever() {
        let begins = format!("0.1.0, {OF}, policy tiny 00aa, context none, mode observe");
        assert_eq!(rule(true, false, "").to_string(), begins);
        assert_eq!(
            rule(false, true, "NCCL_ALGO=Ring").to_string(),
            format!(
                "{begins} (nothing is tuned: NCCL hands over no table before 2.22), deterministic, fixed by the user: \
                 NCCL_ALGO=Ring"
            )
        );
        let off = Loaded { rule: None, ..rule(true, false, "") };
        assert_eq!(off.to_string(), format!("0.1.0, {OF}, mode off: NCCL chooses by itself"));
    }

    #[test]
    fn another_line_is_none() {
        let line = rule(true, true, "NCCL_ALGO=Ring").to_string();
        for (word, other) in [
            (", policy ", ", rule "),
            (", context ", ", file "),
            (", mode observe", ", mode "),
            ("deterministic", "determined"),
            ("fixed by the user", "set"),
        ] {
            assert_eq!(Loaded::parse(&line.replace(word, other)), None, "{word}");
        }
        assert_eq!(["", "0.1.0", "0.1.0, tuner v6, mode off"].map(Loaded::parse), [None, None, None]);
    }
}
