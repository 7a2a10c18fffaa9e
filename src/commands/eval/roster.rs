//! Who is judged: names become tuners.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use dynamiccl_env::evaluate::Entrant;
use dynamiccl_policies::baselines::Fixed;
use dynamiccl_policies::roster::{self, Entry};
use dynamiccl_spec::words::look_up;
use dynamiccl_spec::{Algorithm, ChannelChoice, Knobs, Pair, Protocol};

use crate::args::EvalArgs;
use crate::commands::policy_file::PolicyFile;

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
        let entrant = entrant(name)?;
        ensure!(
            !entrants.iter().any(|known| known.name == entrant.name),
            "--against {name}: it is named twice, name it once"
        );
        entrants.push(entrant);
    }
    Ok(entrants)
}

fn entrant(name: &str) -> Result<Entrant> {
    if let Some(words) = name.strip_prefix(FIXED) {
        let knobs = fixed(words).with_context(|| format!("--against {name}"))?;
        return Ok(Entrant::tuner(name, move |_| Box::new(Fixed::new(knobs))));
    }
    if is_file(name) {
        return policy(Path::new(name));
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

/// A policy or table from its file, under the file's name.
fn policy(file: &Path) -> Result<Entrant> {
    let policy = PolicyFile::open(file)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Entrant::tuner(&name, move |_| policy.tuner(Some(REFRESH))))
}

/// Whether a name is meant to be that of a file.
fn is_file(name: &str) -> bool {
    let path = Path::new(name);
    path.extension().is_some() || path.components().count() > 1
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
