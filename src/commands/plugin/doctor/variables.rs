//! The variables of a job: which are set, by the environment or by NCCL's configuration files, which are misspelt, and
//! what they do to each other.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use dynamiccl_host::Configured;
use dynamiccl_spec::Overrides;
use dynamiccl_spec::overrides::number;
use dynamiccl_spec::variables::{ALL, BUFFSIZE, EXPECT, NTHREADS, PREFIX, PROFILE, PROMETHEUS};
use dynamiccl_spec::words::nearest;

use super::facts::{Finding, Level};
use crate::commands::machine;

/// NCCL's variables that name plugins.
pub const PLUGINS: [&str; 3] = ["NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN"];
/// NCCL's variables that differ between ranks of healthy jobs, and change no decision.
const RANKS_OWN: [&str; 7] = [
    "NCCL_HOSTID",
    "NCCL_DEBUG",
    "NCCL_DEBUG_FILE",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_TOPO_DUMP_FILE",
    "NCCL_GRAPH_DUMP_FILE",
    "NCCL_CONF_FILE",
];

/// The variables that matter, with their values.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    all: BTreeMap<String, String>,
    /// Those of them that NCCL takes from its files.
    configured: Vec<Configured>,
}

impl Variables {
    /// Of these, ours and NCCL's. What is no text is shown as well as it can be.
    pub fn new<N: AsRef<OsStr>>(set: impl Iterator<Item = (N, N)>, mut configured: Vec<Configured>) -> Self {
        let text = |word: &OsStr| word.to_string_lossy().into_owned();
        // Empty, the others are as if they were not set.
        let says = |name: &str, value: &OsStr| name == EXPECT || !value.is_empty();
        let matters = |name: &str| name.starts_with(PREFIX) || name.starts_with("NCCL_");
        let counts = |name: &OsStr, value: &OsStr| matters(&text(name)) && says(&text(name), value);
        configured.retain(|said| counts(&said.name, &said.value));
        let set = set.filter(|(name, value)| counts(name.as_ref(), value.as_ref()));
        let set = set.map(|(name, value)| (text(name.as_ref()), text(value.as_ref())));
        let said = configured.iter().map(|said| (text(&said.name), text(&said.value)));
        let all = set.chain(said).collect();
        Variables { all, configured }
    }

    /// Those that NCCL would have in this process.
    pub fn here() -> Self {
        Variables::new(std::env::vars_os(), dynamiccl_host::configured())
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all.get(name).map(String::as_str)
    }

    /// The hashes that the launcher expects, in one way of writing.
    pub fn expected(&self) -> String {
        let hashes = |said: &str| said.split(',').map(|hash| hash.trim().to_lowercase()).collect::<Vec<_>>();
        let expected = self.get(EXPECT).map(|said| hashes(said).join(","));
        expected.map_or("any".to_owned(), |said| if said.is_empty() { "nothing".to_owned() } else { said })
    }

    /// Those that NCCL takes from its files.
    pub fn configured(&self) -> &[Configured] {
        &self.configured
    }

    /// What the user has fixed through NCCL's own variables, as `NAME=value`.
    pub fn fixed(&self) -> Vec<String> {
        let set = Overrides::VARIABLES.iter().filter_map(|name| Some((name, self.get(name)?)));
        set.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// NCCL's other variables, which may change its tables.
    pub fn others(&self) -> Vec<String> {
        let known = |name: &str| {
            Overrides::VARIABLES.contains(&name) || PLUGINS.contains(&name) || RANKS_OWN.contains(&name)
        };
        let others = self.all.iter().filter(|(name, _)| name.starts_with("NCCL_") && !known(name));
        others.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// What stands out.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.all.keys().filter_map(|name| misspelt(name)).collect();
        for variable in Overrides::VARIABLES {
            let Some(value) = self.get(variable) else { continue };
            findings.push(match Overrides::default().set(variable, value) {
                Ok(()) => Finding::new(
                    Level::Note,
                    format!("{variable}={value} stands: the policy chooses among what it leaves"),
                ),
                Err(bad) => Finding::new(Level::Warning, format!("{bad}; NCCL will say what it makes of it")),
            });
        }
        findings.extend(self.configured.iter().map(|said| {
            let (file, name, value) =
                (machine::name(&said.file), said.name.to_string_lossy(), said.value.to_string_lossy());
            Finding::new(
                Level::Note,
                format!("{file} sets {name}={value}, which holds for this host's ranks"),
            )
        }));
        findings.extend(self.gathering());
        findings.extend(self.profiler());
        findings.extend(self.launch());
        findings
    }

    fn gathering(&self) -> Option<Finding> {
        let is_off = self.get(Overrides::GATHERING).is_some_and(|value| number(value) == Some(0));
        let text = format!(
            "{} is not 0: channels of allgathers stay NCCL's own; 0 on all ranks lets them be tuned",
            Overrides::GATHERING
        );
        (self.get(PLUGINS[0]).is_some() && !is_off).then(|| Finding::new(Level::Note, text))
    }

    fn profiler(&self) -> Option<Finding> {
        let records = [PROFILE, PROMETHEUS].into_iter().find(|name| self.get(name).is_some());
        match (self.get(PLUGINS[1]), records) {
            (Some(_), None) => Some(Finding::new(
                Level::Note,
                "NCCL_PROFILER_PLUGIN is set, but nothing is recorded: set DYNAMICCL_PROFILE to a folder"
                    .to_owned(),
            )),
            (None, Some(records)) => Some(Finding::new(
                Level::Warning,
                format!("{records} is set, but nothing is recorded: set NCCL_PROFILER_PLUGIN to the library"),
            )),
            _ => None,
        }
    }

    fn launch(&self) -> Option<Finding> {
        let set = [NTHREADS, BUFFSIZE].into_iter().find(|name| self.get(name).is_some())?;
        self.get(PLUGINS[2]).is_none().then(|| {
            Finding::new(
                Level::Warning,
                format!("{set} is set, but NCCL is not told: set NCCL_ENV_PLUGIN to the library (NCCL 2.28.7 and newer)"),
            )
        })
    }
}

fn misspelt(name: &str) -> Option<Finding> {
    let rest = name.strip_prefix(PREFIX).filter(|_| !ALL.contains(&name))?;
    // What all of them begin with makes nothing alike.
    let near = nearest(rest, &ALL.map(|known| known.strip_prefix(PREFIX).unwrap_or(known)))
        .map(|near| format!("; did you mean {PREFIX}{near}?"))
        .unwrap_or_default();
    Some(Finding::new(Level::Warning, format!("{name} is no variable of ours, and nobody reads it{near}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(set: &[(&str, &str)]) -> Variables {
        Variables::new(set.iter().copied(), Vec::new())
    }

    fn said(set: &[(&str, &str)]) -> Vec<String> {
        variables(set)
            .findings()
            .into_iter()
            .map(|finding| format!("{:?} {}", finding.level, finding.text))
            .collect()
    }

    #[test]
    fn a_misspelt_variable_is_answered_with_the_one_that_was_meant() {
        let said = said(&[
            ("DYNAMICCL_POLCY", "x"),
            ("DYNAMICCL_XYZZY", "x"),
            ("DYNAMICCL_MODE", "act"),
            ("HOME", "/"),
        ]);
        assert_eq!(said.len(), 2);
        assert!(
            said[0].contains("DYNAMICCL_POLCY is no") && said[0].ends_with("did you mean DYNAMICCL_POLICY?")
        );
        assert!(said[1].ends_with("nobody reads it"), "{said:?}");
    }

    #[test]
    fn what_the_user_has_fixed_is_said() {
        let set = [("NCCL_ALGO", "Ring"), ("NCCL_NTHREADS", "many"), ("NCCL_PROTO", "")];
        let said = said(&set);
        assert!(said[0].starts_with("Note NCCL_ALGO=Ring stands"), "{said:?}");
        assert!(said[1].starts_with("Warning NCCL_NTHREADS=many: not a whole number"), "{said:?}");
        assert_eq!(variables(&set).fixed(), ["NCCL_ALGO=Ring", "NCCL_NTHREADS=many"]);
    }

    #[test]
    fn what_nccl_takes_from_a_file_counts_and_is_said() {
        let said = |name: &str, value: &str| Configured {
            file: "/etc/nccl.conf".into(),
            name: name.into(),
            value: value.into(),
        };
        let files = vec![said("NCCL_ALGO", "Tree"), said("LD_LIBRARY_PATH", "/x"), said("NCCL_PROTO", "")];
        let variables = Variables::new([("NCCL_DEBUG", "INFO")].into_iter(), files);
        assert_eq!(variables.fixed(), ["NCCL_ALGO=Tree"]);
        assert_eq!(variables.configured().len(), 1);
        let findings = variables.findings();
        assert!(
            findings.iter().any(|finding| finding.text.starts_with("/etc/nccl.conf sets NCCL_ALGO=Tree"))
        );
    }

    /// The library refuses it when it is empty, and so the doctor must hand it on.
    #[test]
    fn what_is_expected_counts_though_it_is_empty() {
        let expected = |said: &str| variables(&[(EXPECT, said)]).expected();
        assert_eq!(variables(&[]).expected(), "any");
        assert_eq!(["", "00FF, 00aa", "x"].map(expected), ["nothing", "00ff,00aa", "x"]);
        let empty = Configured { file: "/etc/nccl.conf".into(), name: EXPECT.into(), value: "".into() };
        let variables = Variables::new(std::iter::empty::<(&str, &str)>(), vec![empty]);
        assert_eq!((variables.configured().len(), variables.expected().as_str()), (1, "nothing"));
    }

    #[test]
    fn what_keeps_channels_of_allgathers_is_said() {
        let plugin = ("NCCL_TUNER_PLUGIN", "x.so");
        assert!(said(&[plugin])[0].starts_with("Note NCCL_ALLGATHERV_ENABLE is not 0"));
        assert!(said(&[plugin, (Overrides::GATHERING, "0")]).is_empty());
    }

    #[test]
    fn what_differs_between_healthy_ranks_is_not_compared() {
        let set =
            [("NCCL_HOSTID", "3"), ("NCCL_IB_HCA", "mlx5"), ("NCCL_DEBUG", "INFO"), ("NCCL_ALGO", "Ring")];
        assert_eq!(variables(&set).others(), ["NCCL_IB_HCA=mlx5"]);
    }

    #[test]
    fn a_half_that_lacks_its_other_is_said() {
        for (set, part) in [
            (("DYNAMICCL_PROFILE", "/tmp/x"), "set NCCL_PROFILER_PLUGIN"),
            (("NCCL_PROFILER_PLUGIN", "/x.so"), "set DYNAMICCL_PROFILE"),
            (("DYNAMICCL_NTHREADS", "256"), "set NCCL_ENV_PLUGIN"),
        ] {
            assert!(said(&[set])[0].contains(part));
        }
        assert!(said(&[("DYNAMICCL_NTHREADS", "256"), ("NCCL_ENV_PLUGIN", "x")]).is_empty());
    }
}
