//! The policy that a run leaves behind: a file that says where it comes from and how good it is.

use std::path::Path;

use dynamiccl_env::curriculum::Kind;
use dynamiccl_env::evaluate::{Figures, Report};
use dynamiccl_env::whole;
use dynamiccl_policies::frozen::{About, Frozen, Training};
use dynamiccl_policies::network::Weights;

use super::error::RunError;
use super::settings::Settings;
use crate::subject::Subject;

/// What a policy of this run says about itself after so many steps.
pub fn about<S: Subject>(settings: &Settings, subject: &S, steps: u64, results: Vec<(String, f64)>) -> About {
    let Settings { version, started, curriculum, seed, .. } = settings;
    // A file's name may hold what no list of words may.
    let stem = Path::new(curriculum).file_stem().unwrap_or_default().to_string_lossy();
    let word = stem.replace([',', '='], "_");
    let (nccl, gates) = subject.surroundings();
    About {
        name: format!("{word}-s{seed}"),
        gates,
        nccl,
        margin: settings.config.evaluation.margin,
        training: Training {
            curriculum: said(S::KIND, curriculum),
            seeds: vec![*seed],
            steps,
            version: version.clone(),
            command: settings.command(subject.usual()),
            created: started.clone(),
            parent: None,
        },
        results,
    }
}

/// What a policy says that it was trained on: where the name of a curriculum does not tell what it is about, that first.
fn said(kind: Kind, curriculum: &str) -> String {
    match kind {
        Kind::Knobs => curriculum.to_owned(),
        _ if curriculum == kind.name() => curriculum.to_owned(),
        _ => format!("{kind} {curriculum}"),
    }
}

/// The results of a report's first tuner, by what was judged.
pub fn results(report: &Report) -> Vec<(String, f64)> {
    let Some(tuner) = report.tuners.first() else { return Vec::new() };
    let tiers = tuner.tiers.iter().map(|tier| (format!("tier{}", tier.tier), &tier.figures));
    let rest = [("held_out", &tuner.held_out), ("all", &tuner.overall)];
    let rest = rest.into_iter().filter_map(|(name, figures)| Some((name.to_owned(), figures.as_ref()?)));
    let of = |(place, figures): (String, &Figures)| {
        let named = |what: &str, value: f64| (format!("{what}.{place}"), value);
        [
            named("regret", figures.regret),
            named("regret_hold", figures.regret_hold),
            named("speedup", figures.speedup),
            named("worst_cell", figures.worst_cell),
        ]
    };
    tiers.chain(rest).flat_map(of).collect()
}

/// Writes a policy, whole or not at all, and only if it can be read again.
pub fn write(path: &Path, weights: Weights, about: About) -> Result<Frozen, RunError> {
    let frozen = Frozen { weights, about };
    let bytes = frozen.to_bytes();
    Frozen::read(&bytes).map_err(|why| RunError::Policy { path: path.to_owned(), why })?;
    whole::write(path, &bytes).map_err(RunError::write(path))?;
    Ok(frozen)
}
