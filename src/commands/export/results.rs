//! What a policy has reached, from the document of `eval --json` into the policy's own manifest.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use dynamiccl_env::text;
use dynamiccl_policies::frozen::Frozen;
use serde_json::Value;

use crate::commands::machine::name;

/// Figures that are taken over, each by tier, of held-out clusters and of all tiers together; in the order of `train`, so
/// that the same results make the same file.
const FIGURES: [&str; 4] = ["regret", "regret_hold", "speedup", "worst_cell"];

/// The policy with the figures of the first tuner of a document.
pub fn stamp(source: &Frozen, file: &Path) -> Result<Frozen> {
    let text = text::read(file).with_context(|| format!("{}: cannot be read", name(file)))?;
    let document: Value = serde_json::from_str(&text)
        .with_context(|| format!("{}: not a document of eval --json", name(file)))?;
    ensure!(
        document["command"] == "eval" && document["simulated"] == true,
        "{}: not a document of eval --json",
        name(file)
    );
    let (judged, mine) =
        (document["policy"].as_str().unwrap_or("no policy"), format!("{:016x}", source.hash()));
    ensure!(
        judged == mine,
        "{}: about {judged}, not about {mine}; judge this policy with eval --policy",
        name(file)
    );
    ensure!(
        document["hidden"].as_array().is_none_or(Vec::is_empty),
        "{}: features were hidden ({}); judge without --hide",
        name(file),
        document["hidden"]
    );
    ensure!(
        document["notes"] != false,
        "{}: judged without notes; judge without --without-notes",
        name(file)
    );
    let released = document["nccl_version"].as_str().unwrap_or("2.30");
    ensure!(released == "2.30", "{}: judged with NCCL {released}; judge without --nccl", name(file));
    let mut frozen = source.clone();
    frozen.about.results = results(&document["tuners"][0]).with_context(|| name(file))?;
    Ok(frozen)
}

fn results(tuner: &Value) -> Result<Vec<(String, f64)>> {
    let mut groups: Vec<(String, &Value)> = Vec::new();
    for tier in tuner["tiers"].as_array().context("the first tuner has no tiers")? {
        groups.push((format!("tier{}", tier["tier"]), tier));
    }
    for (field, title) in [("held_out", "held_out"), ("overall", "all")] {
        groups.extend(Some((title.to_owned(), &tuner[field])).filter(|(_, figures)| figures.is_object()));
    }
    let mut results = Vec::new();
    for (group, figures) in groups {
        for figure in FIGURES {
            let Some(value) = figures[figure].as_f64() else { bail!("{figure} of {group} is no number") };
            results.push((format!("{figure}.{group}"), value));
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_every_group_are_taken_over() {
        let figures = r#""speedup":1.1,"regret":0.05,"regret_hold":0.06,"worst_cell":0.99"#;
        let text = format!(r#"{{"tiers":[{{"tier":3,{figures}}}],"held_out":null,"overall":{{{figures}}}}}"#);
        let results = results(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(results.len(), 8);
        assert_eq!((results[0].0.as_str(), results[0].1), ("regret.tier3", 0.05));
        assert_eq!(results[7].0, "worst_cell.all");
        assert!(super::results(&serde_json::json!({"tiers": [{"tier": 1}]})).is_err());
    }
}
