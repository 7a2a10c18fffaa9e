//! What a run was told, all of it: kept beside the run as TOML, and compared when it is resumed.
//!
//! The stages are here as their files stated them, so a run can be understood after a file has changed; a
//! fingerprint covers what is only named, such as clusters and the constants of the model.

use std::fmt;
use std::path::Path;

use dynamiccl_env::model::ConstantsFile;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::error::RunError;
use crate::config::Config;
use crate::subject::StageSettings;

/// What a run was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The release of DynamICCL that began it.
    pub version: String,
    /// When, in UTC.
    pub started: String,
    /// The curriculum, by name or file.
    pub curriculum: String,
    /// The seed of everything random.
    pub seed: u64,
    /// Steps after which it ends, if the curriculum is not through by then.
    pub steps: Option<u64>,
    /// Constants of the model, by name or file.
    #[serde(default = "usual_constants")]
    pub constants: String,
    /// What gradients are worked out on.
    pub device: String,
    /// How the agent is trained.
    pub config: Config,
    /// The stages of the curriculum.
    pub stages: Vec<StageSettings>,
}

/// A setting that is another one than it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which, like `config.loss.entropy`.
    pub field: String,
    /// What it was; nothing where it was not there.
    pub old: String,
    /// What it is now.
    pub new: String,
}

impl Change {
    /// Whether it is about something that a run has from its first step to its last.
    pub fn is_final(&self) -> bool {
        let parts = ["config.network.", "config.without."];
        let seats = ["config.rollout.environments", "config.rollout.held"];
        parts.iter().any(|part| self.field.starts_with(part)) || seats.contains(&self.field.as_str())
    }

    /// Whether a policy is judged otherwise after it, so that what was found before cannot be compared.
    pub fn is_of_judgement(&self) -> bool {
        let how = ["config.evaluation.worlds", "config.evaluation.margin", "constants"];
        self.field.starts_with("stages.") || how.contains(&self.field.as_str())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |word: &str| if word.is_empty() { "nothing".to_owned() } else { word.to_owned() };
        write!(f, "{} {} → {}", self.field, words(&self.old), words(&self.new))
    }
}

impl Settings {
    /// The text of the file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are tables of plain values")
    }

    /// What a file holds.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, RunError> {
        let wrong = |why: toml::de::Error| RunError::Settings { path: path.to_owned(), why: why.to_string() };
        toml::from_str(text).map_err(wrong)
    }

    /// Everything that is another one in `new`, but for the time.
    pub fn changes(&self, new: &Settings) -> Vec<Change> {
        let new = Settings { started: self.started.clone(), ..new.clone() };
        let [old, new] = [self, &new].map(|settings| {
            let mut found = Vec::new();
            flatten("", &Value::Table(table(settings)), &mut found);
            found
        });
        let value = |found: &[(String, String)], field: &str| {
            found
                .iter()
                .find(|(known, _)| known == field)
                .map_or_else(String::new, |(_, value)| value.clone())
        };
        let fields = old.iter().chain(new.iter().filter(|(field, _)| !old.iter().any(|(f, _)| f == field)));
        let change = |field: &String| {
            let (old, new) = (value(&old, field), value(&new, field));
            (old != new).then(|| Change { field: field.clone(), old, new })
        };
        fields.filter_map(|(field, _)| change(field)).collect()
    }

    /// The command that makes the same run again, where so much is usual, ready for a shell; where its files lie is not part
    /// of it.
    pub fn command(&self, usual: Config) -> String {
        let Settings { curriculum, seed, steps, constants, device, config, .. } = self;
        let mut words = ["dynamiccl", "train", "--curriculum", curriculum].map(str::to_owned).to_vec();
        let mut say = |name: &str, value: String| words.extend([name.to_owned(), value]);
        say("--seed", seed.to_string());
        if let Some(steps) = steps {
            say("--steps", steps.to_string());
        }
        if constants != ConstantsFile::USUAL {
            say("--constants", constants.clone());
        }
        if device != crate::run::USUAL_DEVICE {
            say("--device", device.clone());
        }
        let usual = Settings { config: usual, ..self.clone() };
        let mine = Settings { config: config.clone(), ..self.clone() };
        for change in usual.changes(&mine) {
            let field = change.field.trim_start_matches("config.");
            say("--set", format!("{field}={}", change.new.replace(' ', "")));
        }
        shell(&words)
    }
}

/// Words as a shell takes them.
pub fn shell<W: AsRef<str>>(words: &[W]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    // Only a NUL cannot be quoted, and nobody can have given one.
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
}

fn usual_constants() -> String {
    ConstantsFile::USUAL.to_owned()
}

fn table(settings: &Settings) -> Table {
    Table::try_from(settings).expect("settings are tables of plain values")
}

/// Every value of a table that is no table itself, with the way there. Stages and clusters go by their names; where one
/// comes again, by its number among those of its name as well.
fn flatten(prefix: &str, value: &Value, found: &mut Vec<(String, String)>) {
    let name = |part: &str| if prefix.is_empty() { part.to_owned() } else { format!("{prefix}.{part}") };
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| flatten(&name(key), value, found)),
        Value::Array(items) if items.iter().any(Value::is_table) => {
            let called = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
            for (at, item) in items.iter().enumerate() {
                let same = items[..at].iter().filter(|before| called(before) == called(item)).count();
                let part = match called(item) {
                    Some(known) if same == 0 => known,
                    Some(known) => format!("{known}#{}", same + 1),
                    None => at.to_string(),
                };
                flatten(&name(&part), item, found);
            }
        }
        _ => found.push((prefix.to_owned(), text(value))),
    }
}

/// A value as people write it: numbers that were `f32` with as many digits as those need.
pub fn text(value: &Value) -> String {
    match value {
        Value::Float(x) if f64::from(*x as f32) == *x => format!("{:?}", *x as f32),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dynamiccl_env::curriculum::Curriculum;

    use super::*;
    use crate::subject::{Knobs, Subject};

    fn stages(curriculum: &str) -> Vec<StageSettings> {
        let curriculum = Curriculum::load(curriculum).unwrap();
        Knobs { curriculum, constants: Arc::new(ConstantsFile::load("full").unwrap()), schedules: None }
            .settings()
    }

    fn settings() -> Settings {
        Settings {
            version: "0.1.0".to_owned(),
            started: "2026-11-15T10:33:10Z".to_owned(),
            curriculum: "smoke".to_owned(),
            seed: 7,
            steps: None,
            constants: usual_constants(),
            device: "flex".to_owned(),
            config: Config::default(),
            stages: stages("smoke"),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let settings = Settings { steps: Some(9), ..settings() };
        assert_eq!(Settings::from_toml(Path::new("x"), &settings.to_toml()).unwrap(), settings);
        let settings = Settings { stages: stages("full"), ..settings };
        assert_eq!(Settings::from_toml(Path::new("x"), &settings.to_toml()).unwrap(), settings);
    }

    #[test]
    fn changes_are_named_with_what_was_and_what_is() {
        let old = settings();
        assert!(old.changes(&Settings { started: String::new(), ..old.clone() }).is_empty());
        let mut new = Settings { seed: 8, steps: Some(100), ..old.clone() };
        new.config.loss.entropy = [0.1, 0.01];
        new.config.without.features = vec!["size".to_owned()];
        new.stages[0].stage["dynamics"]["jitter"] = Value::Float(2.0);
        let said: Vec<String> = old.changes(&new).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "seed 7 → 8",
                "config.loss.entropy [0.05, 0.005] → [0.1, 0.01]",
                "config.without.features [] → [\"size\"]",
                "stages.smoke.stage.dynamics.jitter 1.0 → 2.0",
                "steps nothing → 100",
            ]
        );
    }

    #[test]
    fn a_cluster_that_is_named_twice_has_changes_of_its_own() {
        let old = Settings { stages: stages("stage2"), ..settings() };
        let clusters = old.stages[0].stage["clusters"].as_array().unwrap();
        let name = |at: usize| clusters[at]["name"].as_str().unwrap();
        let again = (1..clusters.len()).find(|&at| (0..at).any(|before| name(before) == name(at))).unwrap();
        let mut new = old.clone();
        new.stages[0].stage["clusters"][again]["weight"] = Value::Float(9.0);
        let changes = old.changes(&new);
        let fields: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
        assert_eq!(fields, [format!("stages.stage2.stage.clusters.{}#2.weight", name(again))]);
    }

    #[test]
    fn a_run_keeps_its_network_its_environments_and_what_it_is_without() {
        let (old, mut new) = (settings(), settings());
        new.config.loss.value = 0.25;
        new.config.rollout.environments = 8;
        new.config.network.table = false;
        new.config.rollout.held = 0.75;
        new.config.without.anchor = true;
        let changes = old.changes(&new);
        let finals: Vec<&str> =
            changes.iter().filter(|change| change.is_final()).map(|change| change.field.as_str()).collect();
        let expected = ["network.table", "rollout.environments", "rollout.held", "without.anchor"];
        assert_eq!(finals, expected.map(|field| format!("config.{field}")));
    }

    #[test]
    fn what_is_judged_otherwise_cannot_be_compared() {
        let (old, mut new) = (settings(), settings());
        new.config.loss.value = 0.25;
        new.config.evaluation.every = 9;
        new.config.evaluation.worlds = 9;
        new.constants = "blind".to_owned();
        new.stages[0].fingerprint = "other".to_owned();
        let changes = old.changes(&new);
        let fields = changes.iter().filter(|change| change.is_of_judgement());
        let fields: Vec<&str> = fields.map(|change| change.field.as_str()).collect();
        assert_eq!(fields, ["constants", "config.evaluation.worlds", "stages.smoke.fingerprint"]);
    }

    #[test]
    fn the_command_says_what_is_not_usual() {
        let mut settings = Settings { steps: Some(4000), ..settings() };
        settings.config.loss.entropy = [0.1, 0.01];
        assert_eq!(
            settings.command(Config::default()),
            "dynamiccl train --curriculum smoke --seed 7 --steps 4000 --set 'loss.entropy=[0.1,0.01]'"
        );
    }
}
