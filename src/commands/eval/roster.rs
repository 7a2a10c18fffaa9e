//! Who is judged: names become tuners.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use dynamiccl_env::evaluate::{Entrant, Kind};
use dynamiccl_policies::baselines::Fixed;
use dynamiccl_policies::frozen::SHIPPED;
use dynamiccl_policies::roster::{self, Entry};
use dynamiccl_spec::features::Hidden;
use dynamiccl_spec::words::look_up;
use dynamiccl_spec::{Algorithm, ChannelChoice, Knobs, Pair, Protocol};

use crate::args::EvalArgs;
use crate::commands::policy_file::{PolicyFile, is_shipped};

/// The word of `--policy` for no policy at all.
const NONE: &str = "none";
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
    Shipped,
}

/// All that are judged: the policy first, then the others in the order in which they were named.
pub fn entrants(args: &EvalArgs) -> Result<Vec<Entrant>> {
    let words = words(args);
    let hidden =
        Hidden::of(args.hide.iter().map(String::as_str)).map_err(|unknown| anyhow!("--hide: {unknown}"))?;
    let mut entrants: Vec<Entrant> = Vec::new();
    for word in &words {
        let entrant = word.entrant(&words, !args.without_notes)?.hiding(hidden.clone());
        ensure!(
            !entrants.iter().any(|known| known.name == entrant.name),
            "--against {}: it is named twice, name it once",
            entrant.name
        );
        entrants.push(entrant);
    }
    Ok(entrants)
}

/// The policy alone, with its name in tables.
pub fn policy_alone(args: &EvalArgs) -> Result<(String, PolicyFile)> {
    match first(args) {
        None => Err(anyhow!("--policy none: --proof is about a policy; name one")),
        Some(Word::Name(name)) => Ok((name.to_owned(), PolicyFile::shipped()?)),
        Some(Word::File(file)) => Ok((Word::File(file).title(&[]), PolicyFile::open(file)?)),
    }
}

/// What tells the policy that comes first from every other; none where no policy does.
pub fn first_hash(args: &EvalArgs) -> Result<Option<u64>> {
    Ok(match words(args).first() {
        Some(Word::File(file)) => PolicyFile::open(file)?.hash(),
        Some(Word::Name(SHIPPED)) => PolicyFile::shipped()?.hash(),
        _ => None,
    })
}

/// The policy, then the others.
fn words(args: &EvalArgs) -> Vec<Word<'_>> {
    first(args).into_iter().chain(args.against.iter().map(|name| Word::of(name))).collect()
}

/// The policy: the one that comes with the program unless another is named, or none.
fn first(args: &EvalArgs) -> Option<Word<'_>> {
    match args.policy.as_deref() {
        None => (!args.against.iter().any(|name| name == SHIPPED)).then_some(Word::Name(SHIPPED)),
        Some(none) if none == Path::new(NONE) => None,
        Some(file) if is_shipped(file) => Some(Word::Name(SHIPPED)),
        Some(file) => Some(Word::File(file)),
    }
}

/// What somebody wrote to name a tuner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word<'a> {
    /// A file that decides.
    File(&'a Path),
    /// Anything else.
    Name(&'a str),
}

impl<'a> Word<'a> {
    fn of(name: &'a str) -> Self {
        if !name.starts_with(FIXED) && is_file(name) { Word::File(Path::new(name)) } else { Word::Name(name) }
    }

    /// Whom it names. Policies take notes or take none.
    fn entrant(&self, all: &[Word<'_>], notes: bool) -> Result<Entrant> {
        match self {
            Word::File(file) => Ok(decided_by(PolicyFile::open(file)?, &self.title(all), notes)),
            Word::Name(name) => entrant(name, notes),
        }
    }

    /// The name in tables: a file's is its stem, or its path where the stem would be taken for somebody else.
    fn title(&self, all: &[Word<'_>]) -> String {
        let file = match self {
            Word::File(file) => file,
            Word::Name(name) => return (*name).to_owned(),
        };
        let stem = stem(file);
        let alike = |word: &Word<'_>| matches!(word, Word::File(other) if self::stem(other) == stem);
        let reserved = known().iter().any(|(name, _)| *name == stem);
        let taken = reserved || all.iter().filter(|word| alike(word)).count() > 1;
        if taken { file.display().to_string() } else { stem }
    }
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Everybody who can be had by name.
fn known() -> Vec<(&'static str, Known)> {
    let tuners = roster::entries().map(|entry| (entry.name, Known::Tuner(entry)));
    ORACLES.into_iter().chain([(SHIPPED, Known::Shipped)]).chain(tuners).collect()
}

fn entrant(name: &str, notes: bool) -> Result<Entrant> {
    if let Some(words) = name.strip_prefix(FIXED) {
        let knobs = fixed(words).with_context(|| format!("--against {name}"))?;
        return Ok(Entrant::tuner(name, move |_| Box::new(Fixed::new(knobs))));
    }
    match look_up("tuner", name, &known()).map_err(|unknown| anyhow!("--against: {unknown}"))? {
        Known::Truth(make) => Ok(make()),
        Known::Tuner(entry) => Ok(Entrant::tuner(entry.name, entry.make).of_kind(kind(entry.name))),
        Known::Shipped => Ok(decided_by(PolicyFile::shipped()?, SHIPPED, notes)),
    }
}

/// The kind of a tuner of the roster.
fn kind(name: &str) -> Kind {
    match name {
        "nccl" => Kind::Nccl,
        "random" => Kind::Random,
        _ => Kind::Tuner,
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

/// One that goes by a policy or table.
pub fn decided_by(policy: PolicyFile, name: &str, notes: bool) -> Entrant {
    Entrant::tuner(name, move |_| policy.told(notes))
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
    fn files_that_could_be_taken_for_others_go_by_their_path() {
        let all = ["a/one.csv", "b/one.csv", "two.csv", "oracle.csv", "nccl"].map(Word::of);
        let titles = all.map(|word| word.title(&all));
        assert_eq!(titles, ["a/one.csv", "b/one.csv", "two", "oracle.csv", "nccl"]);
        let kinds =
            ["nccl", "random", "bandit", "oracle", "bayes"].map(|name| entrant(name, true).unwrap().kind);
        assert_eq!(kinds, [Kind::Nccl, Kind::Random, Kind::Tuner, Kind::Oracle, Kind::Bayes]);
    }

    #[test]
    fn an_unknown_name_names_the_known_ones() {
        let error = entrant("oracel", true).unwrap_err().to_string();
        assert!(error.contains("did you mean \"oracle\""), "{error}");
    }
}
