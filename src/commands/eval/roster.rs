//! Who is judged: names become tuners.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use dynamiccl_env::evaluate::Entrant;
use dynamiccl_policies::baselines::Fixed;
use dynamiccl_policies::frozen::Frozen;
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_policies::roster::{self, Entry};
use dynamiccl_spec::words::look_up;
use dynamiccl_spec::{Algorithm, ChannelChoice, Knobs, Pair, Protocol};

use crate::args::EvalArgs;

/// Calls after which a policy takes in what it was told: often enough to follow the weather.
const REFRESH: NonZeroUsize = NonZeroUsize::new(16).expect("not 0");
/// What begins the name of fixed knobs.
const FIXED: &str = "fixed:";

/// Those that know the truth, which no tuner does.
const ORACLES: [(&str, Known); 2] =
    [("oracle", Known::Truth(Entrant::oracle)), ("bayes", Known::Truth(Entrant::bayes))];

/// Whom a name stands for.
#[derive(Debug, Clone, Copy)]
enum Known {
    Truth(fn() -> Entrant),
    Tuner(&'static Entry),
}

/// All that are judged: the policy first, then the others in the order in which they were named.
pub fn entrants(args: &EvalArgs) -> Result<Vec<Entrant>> {
    let mut entrants: Vec<Entrant> = args.policy.as_deref().map(policy).transpose()?.into_iter().collect();
    for name in &args.against {
        ensure!(
            !entrants.iter().any(|entrant| entrant.name == *name),
            "--against {name}: it is named twice, name it once"
        );
        entrants.push(entrant(name)?);
    }
    Ok(entrants)
}

fn entrant(name: &str) -> Result<Entrant> {
    if let Some(words) = name.strip_prefix(FIXED) {
        let knobs = fixed(words).with_context(|| format!("--against {name}"))?;
        return Ok(Entrant::tuner(name, move |_| Box::new(Fixed::new(knobs))));
    }
    let tuners = roster::entries().map(|entry| (entry.name, Known::Tuner(entry)));
    let known: Vec<_> = ORACLES.into_iter().chain(tuners).collect();
    match look_up("tuner", name, &known).map_err(|unknown| anyhow!("--against: {unknown}"))? {
        Known::Truth(make) => Ok(make()),
        Known::Tuner(entry) => Ok(Entrant::tuner(entry.name, entry.make)),
    }
}

/// Knobs as `ring/simple` or `ring/simple/8`.
fn fixed(words: &str) -> Result<Knobs> {
    let parts: Vec<&str> = words.split('/').collect();
    let (algorithm, protocol, channels) = match parts[..] {
        [algorithm, protocol] => (algorithm, protocol, "0"),
        [algorithm, protocol, channels] => (algorithm, protocol, channels),
        _ => return Err(anyhow!("write it like fixed:ring/simple or fixed:ring/simple/8")),
    };
    let pair = Pair::new(algorithm.parse::<Algorithm>()?, protocol.parse::<Protocol>()?);
    let counts = || ChannelChoice::VALUES.map(|n| n.to_string()).join(", ");
    let channels = channels.parse().ok().and_then(ChannelChoice::of);
    let channels = channels.with_context(|| format!("channels are one of {}; 0 is NCCL's own", counts()))?;
    Ok(Knobs::with_pair(pair, channels))
}

/// A policy from its file.
fn policy(file: &Path) -> Result<Entrant> {
    let frozen = Frozen::open(file)?;
    let name =
        file.file_stem().map_or_else(|| "policy".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let policy = Arc::new(Policy::new(name.clone(), &frozen.weights, frozen.about.margin, frozen.hash()));
    Ok(Entrant::tuner(&name, move |_| Box::new(PolicyTuner::new(Arc::clone(&policy), Some(REFRESH)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_knobs_are_read_and_wrong_ones_explained() {
        let ring = Pair::new(Algorithm::Ring, Protocol::Simple);
        assert_eq!(fixed("ring/simple").unwrap(), Knobs::with_pair(ring, ChannelChoice::OWN));
        assert_eq!(fixed("Ring/Simple/8").unwrap().channels.requested(), Some(8));
        for (words, said) in [
            ("ring", "write it like fixed:ring/simple"),
            ("ring/simple/7", "channels are one of 0, 1, 2, 4"),
            ("rign/simple", "did you mean \"ring\""),
        ] {
            let error = format!("{:#}", fixed(words).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn an_unknown_name_names_the_known_ones() {
        let error = entrant("oracel").unwrap_err().to_string();
        assert!(error.contains("did you mean \"oracle\""), "{error}");
    }
}
