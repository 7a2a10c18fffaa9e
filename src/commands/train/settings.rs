//! How the agent is trained: what is usual, or what a run has, then a file, then words on the command line.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use dynamiccl_agent::Config;
use dynamiccl_env::text;
use dynamiccl_spec::features::{FEATURES, Part};
use dynamiccl_spec::words::UnknownWord;
use toml::{Table, Value};

use crate::args::TrainArgs;

/// The features that NCCL's own table of predicted times gives.
const COST_TABLE: [&str; 2] = ["nccl_best", "nccl_cost"];
/// What can be done without, beside features.
const PARTS: [&str; 6] = ["lstm", "anchor", "experts", "feedback", "curriculum", "cost_table"];

/// The configuration that the words ask for.
pub fn config(args: &TrainArgs, usual: Config) -> Result<Config> {
    let config = match args.config.as_deref() {
        Some(file) => read(file, &usual).with_context(|| format!("--config {}", file.display()))?,
        None => usual,
    };
    let mut config = with(config, &args.set)?;
    for part in &args.without {
        without(&mut config, part).with_context(|| format!("--without {part}"))?;
    }
    Ok(config)
}

/// A configuration with some of its settings changed.
pub fn with(config: Config, settings: &[String]) -> Result<Config> {
    settings
        .iter()
        .try_fold(config, |config, word| set(&config, word).with_context(|| format!("--set {word}")))
}

/// The settings that a file names, and the usual ones beside.
fn read(file: &Path, usual: &Config) -> Result<Config> {
    let text = text::read(file)?;
    // By itself first: only then is it said in which line something is wrong.
    toml::from_str::<Config>(&text)?;
    let mut table = Table::try_from(usual).context("the settings are a table")?;
    merge(&mut table, toml::from_str(&text)?);
    table.try_into().context("the values do not fit")
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

fn set(config: &Config, word: &str) -> Result<Config> {
    let (key, value) = word.split_once('=').context("write it like loss.entropy=[0.1,0.01]")?;
    let mut line: Table = toml::from_str(&format!("value = {value}")).map_err(|_| {
        anyhow!("\"{value}\" is no value; write it like 3, 0.1, true, [0.1,0.01] or [\"log2_bytes\"]")
    })?;
    let value = line.remove("value").filter(|_| line.is_empty()).context("give one value")?;
    let mut table = Table::try_from(config).context("the settings are a table")?;
    *place(&mut table, key.trim())? = value;
    table.try_into().context("the value does not fit")
}

/// Where the value of a key like `loss.entropy` is.
fn place<'a>(table: &'a mut Table, key: &str) -> Result<&'a mut Value> {
    let known = keys("", table);
    ensure!(
        known.iter().any(|known| known == key),
        UnknownWord { kind: "setting", value: key.to_owned(), known }
    );
    let mut parts = key.split('.');
    let first = parts.next().and_then(|part| table.get_mut(part));
    parts.fold(first, |value, part| value?.as_table_mut()?.get_mut(part)).context("no such setting")
}

/// The keys of all values.
fn keys(prefix: &str, table: &Table) -> Vec<String> {
    let of = |(key, value): (&String, &Value)| match value {
        Value::Table(inner) => keys(&format!("{prefix}{key}."), inner),
        _ => vec![format!("{prefix}{key}")],
    };
    table.iter().flat_map(of).collect()
}

fn without(config: &mut Config, part: &str) -> Result<()> {
    let without = &mut config.without;
    match part {
        "lstm" => without.lstm = true,
        "anchor" => without.anchor = true,
        "experts" => without.experts = true,
        "feedback" => without.feedback = true,
        "curriculum" => without.curriculum = true,
        "cost_table" => COST_TABLE.iter().for_each(|name| add(&mut without.features, name)),
        feature => {
            let seen = FEATURES.iter().filter(|feature| feature.part as u8 != Part::History as u8);
            let known: Vec<String> = seen.map(|feature| feature.name.to_owned()).collect();
            let unknown = || {
                let known = PARTS.map(str::to_owned).into_iter().chain(known.clone()).collect();
                UnknownWord { kind: "part", value: feature.to_owned(), known }
            };
            ensure!(known.iter().any(|name| name == feature), unknown());
            add(&mut without.features, feature);
        }
    }
    Ok(())
}

fn add(features: &mut Vec<String>, name: &str) {
    if !features.iter().any(|known| known == name) {
        features.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_setting_is_found_by_its_key() {
        let config = set(&Config::default(), "loss.entropy=[0.1,0.01]").unwrap();
        assert_eq!(config.loss.entropy, [0.1, 0.01]);
        let config = set(&config, "optimiser.epochs=7").unwrap();
        assert_eq!((config.optimiser.epochs, config.loss.entropy), (7, [0.1, 0.01]));
        assert_eq!(set(&config, "loss.policy=2").unwrap().loss.policy, 2.0);
        assert_eq!(
            set(&config, "without.features=[\"log2_bytes\"]").unwrap().without.features,
            ["log2_bytes"]
        );
    }

    #[test]
    fn a_file_changes_what_it_names_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mine.toml");
        let usual =
            with(Config::default(), &["network.table=false".to_owned(), "loss.value=2".to_owned()]).unwrap();
        fs::write(&file, "").unwrap();
        assert_eq!(read(&file, &usual).unwrap(), usual);
        fs::write(&file, "[loss]\npolicy = 3.0\n").unwrap();
        let config = read(&file, &usual).unwrap();
        assert_eq!((config.loss.policy, config.loss.value, config.network.table), (3.0, 2.0, false));
        fs::write(&file, "[loss]\n\npolicies = 3.0\n").unwrap();
        let error = format!("{:#}", read(&file, &usual).unwrap_err());
        assert!(error.contains("line 3") && error.contains("policies"), "{error}");
    }

    #[test]
    fn a_wrong_setting_says_why() {
        for (word, said) in [
            ("loss.entropi=1", "did you mean \"loss.entropy\""),
            ("loss=1", "unknown setting \"loss\""),
            ("loss.entropy", "write it like"),
            ("loss.entropy=many", "\"many\" is no value"),
            ("loss.policy=1\nseed = 2", "give one value"),
            ("loss.entropy=3", "invalid type"),
            ("optimiser.epochs=-1", "invalid value"),
        ] {
            let error = format!("{:#}", set(&Config::default(), word).unwrap_err());
            assert!(error.contains(said), "{word}: {error}");
        }
    }

    #[test]
    fn parts_and_features_can_be_left_out() {
        let mut config = Config::default();
        for part in ["lstm", "cost_table", "log2_bytes", "log2_bytes"] {
            without(&mut config, part).unwrap();
        }
        assert!(config.without.lstm && !config.without.anchor);
        assert_eq!(config.without.features, ["nccl_best", "nccl_cost", "log2_bytes"]);
        let error = without(&mut config, "anchr").unwrap_err().to_string();
        assert!(error.contains("did you mean \"anchor\""), "{error}");
    }
}
