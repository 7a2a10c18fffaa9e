//! The policy that was fitted, with what its file says of how it came about.

use std::path::Path;

use dynamiccl_agent::fit::{Fit, Ground};
use dynamiccl_agent::run::clock::Utc;
use dynamiccl_agent::run::settings::shell;
use dynamiccl_env::swept::Judgement;
use dynamiccl_policies::frozen::{About, Frozen, Training};

use crate::args::LiveTrainArgs;

/// The policy, made from `source`.
pub fn fitted(
    source: &Frozen,
    fit: &Fit,
    args: &LiveTrainArgs,
    (ground, seed, created): (&Ground, u64, Utc),
) -> Frozen {
    let best = fit.best();
    let mut nccl = source.about.nccl.clone();
    nccl.extend(releases(ground));
    nccl.sort();
    nccl.dedup();
    let training = Training {
        curriculum: format!("{} and {}", lessons(fit, ground), args.curriculum),
        seeds: vec![seed],
        steps: best.steps,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command(args, seed),
        created: created.to_string(),
        parent: Some(source.hash()),
    };
    let about = About {
        name: format!("{}-fitted", source.about.name),
        nccl,
        training,
        // What the parent has reached, it has reached with other weights.
        results: best.untold.iter().flat_map(results).collect(),
        ..source.about.clone()
    };
    Frozen { weights: best.weights.clone(), about }
}

/// What it was fitted to.
fn lessons(fit: &Fit, ground: &Ground) -> String {
    match ground {
        Ground::Sweeps(_) => {
            let sweeps = fit.best().untold.iter().map(|judged| word(&judged.sweep));
            format!("sweeps {}", sweeps.collect::<Vec<_>>().join(" "))
        }
        Ground::Live(lived) => format!("{} calls on {} real ranks", lived.called(), lived.ranks()),
    }
}

/// The releases of NCCL whose choices it was fitted to.
fn releases(ground: &Ground) -> Vec<String> {
    match ground {
        Ground::Sweeps(sweeps) => {
            sweeps.iter().map(|swept| swept.machine.release.version.to_string()).collect()
        }
        Ground::Live(lived) => vec![lived.machine.release.version.to_string()],
    }
}

fn results(judged: &Judgement) -> [(String, f64); 2] {
    let sweep = word(&judged.sweep);
    [
        (format!("measured_speedup.{sweep}"), judged.speedup),
        (format!("measured_worst.{sweep}"), judged.worst_cell),
    ]
}

/// A file's name as a word of a list, which may hold no comma, no equals sign and no space.
fn word(name: &str) -> String {
    name.replace([',', '=', ' '], "_")
}

/// The command that made the policy, ready for a shell. Where its files lie is not part of it, nor which libraries and variables
/// ranks had.
fn command(args: &LiveTrainArgs, seed: u64) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut words = ["dynamiccl", "live", "train"].map(str::to_owned).to_vec();
    let mut say = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    say("--policy", name(args.policy.as_ref()));
    if args.sweep.is_empty() {
        args.job.ranks.iter().for_each(|ranks| say("--ranks", ranks.to_string()));
        args.job.link.iter().for_each(|link| say("--link", link.clone()));
        say("--calls", args.calls.to_string());
        say("--slowdown", args.slowdown.to_string());
    } else {
        let sweeps: Vec<String> = args.sweep.iter().map(|path| name(path)).collect();
        say("--sweep", sweeps.join(","));
    }
    say("--seed", seed.to_string());
    say("--steps", args.steps.to_string());
    say("--seconds", args.seconds.to_string());
    say("--enough", args.enough.to_string());
    say("--doubt", args.doubt.to_string());
    say("--simulated", args.simulated.to_string());
    say("--curriculum", args.curriculum.clone());
    args.cluster.iter().for_each(|cluster| say("--cluster", cluster.clone()));
    args.set.iter().for_each(|set| say("--set", set.clone()));
    if args.job.share_gpu {
        words.push("--share-gpu".to_owned());
    }
    shell(&words)
}
