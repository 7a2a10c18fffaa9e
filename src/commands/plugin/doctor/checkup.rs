//! What one rank finds out about itself.

use std::path::{Path, PathBuf};

use anyhow::Result;
use dynamiccl_host::Answers;
use dynamiccl_spec::loaded::{Loaded, Rule};
use serde::{Deserialize, Serialize};

use super::super::library::{self, PREFIXES, as_nccl};
use super::super::probe;
use super::facts::{Facts, Finding, Hints, Level, UNKNOWN};
use super::variables::{PLUGINS, Variables};
use super::{meant, records, surroundings};
use crate::args::DoctorArgs;
use crate::commands::machine;
use crate::launcher::Place;

/// How the library's lines begin.
const SPEAKER: &str = "DynamICCL: ";
/// What is left to NCCL.
const OWN: &str = "own";

/// What a rank finds out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkup {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// The library, as it was named.
    pub library: String,
    /// What NCCL finds in it.
    pub interfaces: Vec<String>,
    /// What all ranks must have alike.
    pub facts: Facts,
    /// What they should have alike.
    pub hints: Hints,
    /// What stands out.
    pub findings: Vec<Finding>,
}

impl Checkup {
    /// Looks around.
    pub fn of(args: &DoctorArgs, place: &Place) -> Self {
        let variables = Variables::here();
        let mut findings = variables.findings();
        let (names, is_named) = tuner(args, &variables, &mut findings);
        let library = names.last().map(|name| machine::name(name)).unwrap_or_default();
        let answers = ask(&names, "the tuner", Level::Fault, &variables, &mut findings);
        other(PLUGINS[1], PREFIXES[1], Level::Warning, &variables, &mut findings);
        let env = other(PLUGINS[2], PREFIXES[2], Level::Fault, &variables, &mut findings);
        let nccl = surroundings::nccl(args.nccl.as_deref()).unwrap_or_else(|why| {
            let level = if args.nccl.is_some() { Level::Warning } else { Level::Note };
            findings.push(Finding::new(
                level,
                format!("NCCL's release is not known: {why}; name its library with --nccl"),
            ));
            UNKNOWN.to_owned()
        });
        let is_loaded = is_named && answers.is_some();
        let mut facts = Facts {
            tuner: if is_loaded { "loaded" } else { "not loaded" }.to_owned(),
            nccl,
            expect: variables.expected(),
            fixed: listed(&variables.fixed()),
            ..Facts::of(answers.as_ref(), &mut findings)
        };
        (facts.threads, facts.buffer) = launch(env.as_ref(), &variables, &mut findings);
        findings.extend(meant::findings(&facts, &variables));
        findings.extend(records::findings(&variables));
        let hints =
            Hints { gpus: listed(&surroundings::gpus()), nccl_variables: listed(&variables.others()) };
        findings.sort_by_key(|finding| finding.level);
        Checkup {
            rank: place.rank,
            host: surroundings::host(),
            library,
            interfaces: answers.map(|answers| answers.interfaces).unwrap_or_default(),
            facts,
            hints,
            findings,
        }
    }
}

impl Facts {
    /// What the library says of itself.
    fn of(answers: Option<&Answers>, findings: &mut Vec<Finding>) -> Self {
        let warnings = answers.map(|answers| answers.warnings.as_slice()).unwrap_or_default();
        let refused = answers.is_some_and(|answers| answers.decisions.is_none());
        let level = if refused { Level::Fault } else { Level::Warning };
        findings.extend(warnings.iter().map(|text| Finding::new(level, said(text).to_owned())));
        let loaded = loaded(answers, findings);
        if loaded.is_some() {
            let notes = answers.iter().flat_map(|answers| &answers.notes).map(|text| said(text));
            let notes = notes.filter(|text| Loaded::parse(text).is_none());
            findings.extend(notes.map(|text| Finding::new(Level::Warning, text.to_owned())));
        }
        let rule = loaded.as_ref().and_then(|loaded| loaded.rule.as_ref());
        let known = |word: Option<&String>| word.map_or(UNKNOWN, String::as_str).to_owned();
        let of_rule = |word: fn(&Rule) -> &String| known(rule.map(word));
        let is_off = loaded.is_some() && rule.is_none();
        let made = answers.and_then(|answers| answers.decisions.as_ref());
        let digest =
            made.map(|made| format!("{} ({} of {} calls changed)", made.digest, made.changed, made.asked));
        Facts {
            tuner: String::new(),
            version: known(loaded.as_ref().map(|loaded| &loaded.version)),
            library: known(answers.and_then(|answers| answers.library.as_ref())),
            policy: of_rule(|rule| &rule.policy),
            context: of_rule(|rule| &rule.context),
            expect: String::new(),
            mode: if is_off { "off".to_owned() } else { of_rule(|rule| &rule.mode) },
            deterministic: if rule.is_some_and(|rule| rule.deterministic) { "1" } else { "0" }.to_owned(),
            fixed: String::new(),
            threads: OWN.to_owned(),
            buffer: OWN.to_owned(),
            decisions: digest.unwrap_or_else(|| "none".to_owned()),
            nccl: UNKNOWN.to_owned(),
        }
    }
}

/// What the library says that it has loaded. Ranks with a line that is not understood would all have loaded the unknown,
/// and seem to agree.
fn loaded(answers: Option<&Answers>, findings: &mut Vec<Finding>) -> Option<Loaded> {
    let line = answers?.begins.as_deref()?;
    let loaded = line.strip_prefix(SPEAKER).and_then(Loaded::parse);
    if loaded.is_none() {
        let text = format!(
            "what the library has loaded is not known, for this program does not understand \"{line}\": use the \
             library of the same release"
        );
        findings.push(Finding::new(Level::Fault, text));
    }
    loaded
}

/// The names under which NCCL would look for the tuner, and whether it would look at all.
fn tuner(args: &DoctorArgs, variables: &Variables, findings: &mut Vec<Finding>) -> (Vec<PathBuf>, bool) {
    let set = variables.get(PLUGINS[0]).filter(|value| !value.eq_ignore_ascii_case("none"));
    let usual = |findings: &mut Vec<Finding>| match library::find(args.library.as_deref()) {
        Ok(file) => vec![file],
        Err(error) => {
            findings.push(Finding::new(Level::Fault, format!("{error:#}")));
            Vec::new()
        }
    };
    let names = match set {
        Some(value) if args.library.is_none() => as_nccl(value, PREFIXES[0]),
        _ => usual(findings),
    };
    if set.is_none() {
        let file = names.last().map_or("LIBRARY".to_owned(), |name| machine::name(name));
        let text =
            format!("NCCL_TUNER_PLUGIN is not set: NCCL chooses by itself; export NCCL_TUNER_PLUGIN={file}");
        findings.push(Finding::new(Level::Warning, text));
    }
    (names, set.is_some())
}

/// The library that another variable of NCCL's names.
fn other(
    variable: &str,
    prefix: &str,
    level: Level,
    variables: &Variables,
    findings: &mut Vec<Finding>,
) -> Option<Answers> {
    let value = variables.get(variable).filter(|value| !value.eq_ignore_ascii_case("none"))?;
    ask(&as_nccl(value, prefix), variable, level, variables, findings)
}

/// Asks a library. NCCL goes on without one that it cannot open, and says so only in its INFO log.
fn ask(
    names: &[PathBuf],
    whose: &str,
    level: Level,
    variables: &Variables,
    findings: &mut Vec<Finding>,
) -> Option<Answers> {
    let last: &Path = names.last()?;
    let asked: Result<Answers> = probe::ask_with(names, variables.configured());
    let failed = |error: anyhow::Error| {
        let name = machine::name(last);
        // Not every rank need have the same fault, and none can see the others.
        let beside = if level == Level::Fault { ", and hang beside ranks that have it" } else { "" };
        let text = format!("{whose}, {name}: {error:#}; NCCL would go on without it{beside}");
        findings.push(Finding::new(level, text));
    };
    asked.map_err(failed).ok()
}

/// Threads and buffer as NCCL gets them.
fn launch(env: Option<&Answers>, variables: &Variables, findings: &mut Vec<Finding>) -> (String, String) {
    let own = |name| variables.get(name).unwrap_or(OWN).to_owned();
    let Some(answers) = env else { return (own("NCCL_NTHREADS"), own("NCCL_BUFFSIZE")) };
    // Where NCCL may begin all the same, what was meant is left out.
    let level = if answers.handed.is_some() { Level::Warning } else { Level::Fault };
    for text in answers.env_warnings.iter().map(|text| said(text)) {
        // The tuner may have said the same.
        if !findings.iter().any(|finding| finding.text == text) {
            findings.push(Finding::new(level, text.to_owned()));
        }
    }
    let Some(handed) = &answers.handed else { return ("none".to_owned(), "none".to_owned()) };
    let value = |given: &Option<String>| given.clone().unwrap_or_else(|| OWN.to_owned());
    (value(&handed.threads), value(&handed.buffer))
}

/// A line of the library without who says it.
fn said(line: &str) -> &str {
    line.strip_prefix(SPEAKER).unwrap_or(line)
}

fn listed(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_host::Handed;

    fn answers(begins: &str) -> Answers {
        Answers {
            library: Some("00cc".to_owned()),
            interfaces: Vec::new(),
            begins: Some(begins.to_owned()),
            notes: Vec::new(),
            decisions: None,
            handed: None,
            warnings: Vec::new(),
            env_warnings: Vec::new(),
        }
    }

    fn facts(line: &str) -> (Facts, Vec<Finding>) {
        let mut findings = Vec::new();
        (Facts::of(Some(&answers(line)), &mut findings), findings)
    }

    #[test]
    fn the_line_of_the_library_is_understood() {
        let line = "DynamICCL: 0.1.0, tuner v6, 2 ranks on 1 nodes, communicator 0x0, policy tiny 00aa, context 00bb, \
                    mode observe, deterministic, fixed by the user: NCCL_ALGO=Ring";
        let (facts, findings) = facts(line);
        assert_eq!(findings, []);
        assert_eq!((facts.version.as_str(), facts.library.as_str()), ("0.1.0", "00cc"));
        assert_eq!(facts.policy, "tiny 00aa");
        assert_eq!((facts.context.as_str(), facts.mode.as_str()), ("00bb", "observe"));
        assert_eq!(facts.deterministic, "1");
    }

    #[test]
    fn what_the_library_says_besides_is_a_warning() {
        let begins =
            "DynamICCL: 0.1.0, tuner v6, 2 ranks on 1 nodes, policy tiny 00aa, context 00bb, mode act";
        let besides = "DynamICCL: the deployment file leaves out cluster.class";
        let notes = [besides, &begins.replace("2 ranks", "4 ranks")].map(str::to_owned).to_vec();
        let mut findings = Vec::new();
        Facts::of(Some(&Answers { notes, ..answers(begins) }), &mut findings);
        let text = "the deployment file leaves out cluster.class".to_owned();
        assert_eq!(findings, [Finding::new(Level::Warning, text)]);
    }

    #[test]
    fn what_is_left_out_at_launch_is_a_warning_and_what_stops_it_a_fault() {
        let env_warnings = vec!["DynamICCL: buffer = \"3000\"".to_owned()];
        let handed = Some(Handed { threads: Some("256".to_owned()), buffer: None });
        for (handed, level, gets) in
            [(handed, Level::Warning, ["256", OWN]), (None, Level::Fault, ["none", "none"])]
        {
            let env = Answers { handed, env_warnings: env_warnings.clone(), ..answers("") };
            let mut findings = Vec::new();
            let (threads, buffer) = launch(Some(&env), &Variables::default(), &mut findings);
            assert_eq!([threads.as_str(), &buffer], gets);
            assert_eq!(findings, [Finding::new(level, "buffer = \"3000\"".to_owned())]);
        }
    }

    #[test]
    fn off_has_no_policy() {
        let (facts, findings) =
            facts("DynamICCL: 0.1.0, tuner v6, 2 ranks on 1 nodes, mode off: NCCL chooses by itself");
        assert_eq!((facts.mode.as_str(), facts.policy.as_str()), ("off", UNKNOWN));
        assert_eq!(findings, []);
    }

    #[test]
    fn a_line_that_is_not_understood_is_a_fault() {
        for line in
            ["DynamICCL: 9.9.9, tuner v6, 2 ranks on 1 nodes, rule tiny 00aa", "TUNER/Plugin: another"]
        {
            let (facts, findings) = facts(line);
            assert_eq!((facts.policy.as_str(), findings[0].level), (UNKNOWN, Level::Fault));
            assert!(findings[0].text.contains(line), "{findings:?}");
        }
    }
}
