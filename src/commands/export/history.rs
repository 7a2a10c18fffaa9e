//! What a policy remembers of a machine on which a job was recorded, stored in the policy itself.
//!
//! Every rank that loads the file then holds the same memory, and the file's hash covers it.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use dynamiccl_env::recall::{Recalled, recall};
use dynamiccl_env::trace::Trace;
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::policy::PolicyTuner;

use crate::commands::machine::name;
use crate::session::Session;

/// The policy as it is after it was shown a recording, and what it was shown.
pub fn remember(
    frozen: &Frozen,
    file: &Path,
    cluster: Option<&str>,
    session: &Session,
) -> Result<(Frozen, Recalled)> {
    let trace = Trace::read(file)?;
    trace.warnings.iter().for_each(|warning| session.output.note(format_args!("{warning}")));
    let mut tuner = PolicyTuner::new(Arc::new(frozen.policy()), Some(NonZeroUsize::MIN));
    let recalled = recall(&trace, cluster, &mut |query| {
        tuner.answer(query);
    })
    .with_context(|| name(file))?;
    let mut remembering = frozen.clone();
    remembering.weights.remember([tuner.memory().hidden(), tuner.memory().cell()]);
    let of = file.file_name().unwrap_or_default().to_string_lossy().replace([',', '=', ' '], "_");
    let training = &mut remembering.about.training;
    training.curriculum = format!("{} and history {of}", training.curriculum).trim_start().to_owned();
    // They were reached with another memory.
    remembering.about.results.clear();
    Ok((remembering, recalled))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use dynamiccl_policies::frozen::About;
    use dynamiccl_policies::network::{Shape, Weights};
    use dynamiccl_policies::random::Random;

    use super::*;
    use crate::args::Args;

    fn policy() -> Frozen {
        let mut weights = Weights::untrained(Shape::default());
        let mut random = Random::new(5);
        weights.get_mut("lstm.weight").unwrap().iter_mut().for_each(|x| *x = 0.2 * random.normal() as f32);
        Frozen { weights, about: About::default() }
    }

    fn remembered(times: [u32; 2]) -> Frozen {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job.jsonl");
        let head = r#"{"schema":"dynamiccl-trace-1","cluster":"dgx_h100","communicators":[{"id":"a","ranks":16,"nodes":2}]}"#;
        let calls = times.map(|us| format!(r#"{{"comm":"a","coll":"allreduce","bytes":1048576,"us":{us}}}"#));
        std::fs::write(&file, format!("{head}\n{}\n", calls.join("\n"))).unwrap();
        let session = Session::new(&Args::try_parse_from(["dynamiccl", "bench", "-q"]).unwrap().global);
        let (frozen, recalled) = remember(&policy(), &file, None, &session).unwrap();
        assert_eq!(recalled, Recalled { calls: 2, measured: 2 });
        frozen
    }

    #[test]
    fn a_recording_changes_memory_and_nothing_else() {
        let (before, after) = (policy(), remembered([100, 100]));
        for (name, _, numbers) in before.weights.tensors() {
            assert_eq!(after.weights.get(name) == Some(numbers), !name.starts_with("memory."), "{name}");
        }
        assert_eq!(after.weights.trained(), before.weights.trained());
        assert_eq!(Frozen::read(&after.to_bytes()).unwrap(), after);
        assert_eq!(remembered([100, 100]).hash(), after.hash());
    }

    #[test]
    fn every_measured_time_counts_the_last_one_too() {
        let memory = |times| remembered(times).weights.get("memory.hidden").unwrap().to_vec();
        assert_ne!(memory([100, 100]), memory([900, 100]));
        assert_ne!(memory([100, 100]), memory([100, 900]));
    }
}
