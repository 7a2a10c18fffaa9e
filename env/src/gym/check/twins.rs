//! Runs that must be equal, and runs that must not.

use std::collections::BTreeSet;

use super::CheckOptions;
use super::episode::{Episode, Record};
use super::findings::Findings;
use super::rule::Rule;
use crate::gym::Env;

/// Steps of an episode that are compared.
pub const STEPS: usize = 2_000;
/// Episodes of a stream that are compared, and steps of each: the last one is left in its middle.
const EPISODES: usize = 3;
/// Steps in which different seeds must have parted.
const PART: usize = 64;
/// Shifts at which one seed's episode is compared with another's.
const SHIFTS: usize = 16;

/// Same seed, same bits: in a new environment and in one that was used.
pub fn repeat<E: Env>(fresh: &mut E, used: &mut E, seed: u64, findings: &mut Findings) -> u64 {
    let first = Episode::begin(fresh, Some(seed), 0.0).run(STEPS);
    Episode::begin(used, Some(!seed), 0.0).run(7);
    let second = Episode::begin(used, Some(seed), 0.0).run(STEPS);
    if let Some(at) = parted(&first, &second) {
        let what = if at == 0 { "the reset".to_owned() } else { format!("step {at}") };
        findings.note(Rule::Repeat, || format!("seed {seed}: two runs part at {what}"));
    } else if let Some(at) = first.infos.iter().zip(&second.infos).position(|(a, b)| a != b) {
        let (a, b) = (&first.infos[at], &second.infos[at]);
        findings.note(Rule::Infos, || format!("seed {seed}, step {at}: {a:?} and {b:?}"));
    }
    let third = Episode::begin(used, Some(seed), f32::NAN).run(STEPS);
    if let Some(at) = parted(&first, &third) {
        findings.note(Rule::Written, || format!("seed {seed}: step {at} shows what was there before"));
    }
    steps([&first, &second, &third])
}

/// Episodes after the first of a seed, each begun without one.
pub fn stream<E: Env>(a: &mut E, b: &mut E, seed: u64, findings: &mut Findings) -> u64 {
    let mut taken = 0;
    for episode in 0..EPISODES {
        let seed_of = (episode == 0).then_some(seed);
        let [first, second] = [&mut *a, &mut *b].map(|env| Episode::begin(env, seed_of, 0.0).run(STEPS));
        // Without the first episode there is no stream; that is the business of another rule.
        if first.infos.is_empty() || second.infos.is_empty() {
            break;
        }
        if parted(&first, &second).is_some() && episode > 0 {
            findings.note(Rule::Stream, || format!("seed {seed}: two runs part in episode {}", episode + 1));
        }
        taken += steps([&first, &second]);
    }
    taken
}

/// Two environments stepped in turn, beside the same two one after the other.
pub fn isolation<E: Env>(a: &mut E, b: &mut E, seeds: [u64; 2], findings: &mut Findings) -> u64 {
    let alone = [
        Episode::begin(a, Some(seeds[0]), 0.0).run(STEPS),
        Episode::begin(b, Some(seeds[1]), 0.0).run(STEPS),
    ];
    let mut first = Episode::begin(a, Some(seeds[0]), 0.0);
    let mut second = Episode::begin(b, Some(seeds[1]), 0.0);
    for _ in 0..STEPS {
        first.step();
        second.step();
    }
    let together = [first.record(), second.record()];
    for i in 0..2 {
        if let Some(at) = parted(&alone[i], &together[i]) {
            findings.note(Rule::Isolation, || {
                format!("seed {}: step {at} differs when another environment is stepped too", seeds[i])
            });
        }
    }
    2 * steps(&alone)
}

/// Episodes of different seeds, and the second episode of each.
pub fn seeds<E: Env>(env: &mut E, options: &CheckOptions, findings: &mut Findings) -> u64 {
    let both = options.seeds.iter().flat_map(|&seed| [seed, seed.wrapping_add(1)]);
    let mut episodes = Vec::new();
    for seed in both.collect::<BTreeSet<u64>>() {
        let first = Episode::begin(env, Some(seed), 0.0).run(PART);
        let next = Episode::begin(env, None, 0.0).run(PART);
        episodes.push((seed, first, next));
    }
    for (i, (seed, first, next)) in episodes.iter().enumerate() {
        if alike(first, next) {
            findings.note(Rule::Seeds, || format!("seed {seed}: the second episode is the first one again"));
        }
        for (other, theirs, _) in episodes.iter().skip(i + 1) {
            if alike(first, theirs) {
                findings.note(Rule::Seeds, || format!("seeds {seed} and {other} give the same episode"));
            }
            if alike(next, theirs) {
                findings.note(Rule::Seeds, || {
                    format!("the second episode of seed {seed} is the first of seed {other}")
                });
            }
        }
    }
    episodes.iter().map(|(_, first, next)| steps([first, next])).sum()
}

/// Whether two episodes are the same, or one is the other some steps later.
fn alike<I>(a: &Record<I>, b: &Record<I>) -> bool {
    let later = |a: &[u64], b: &[u64], shift: usize| {
        let len = a.len().saturating_sub(shift).min(b.len());
        // Short of a few steps, being equal is no copy.
        len >= 4 && a[shift..shift + len] == b[..len]
    };
    a.prints == b.prints
        || (1..SHIFTS).any(|shift| later(&a.prints, &b.prints, shift) || later(&b.prints, &a.prints, shift))
}

/// Where two runs part, 0 for the reset.
pub fn parted<I>(a: &Record<I>, b: &Record<I>) -> Option<usize> {
    let at = a.prints.iter().zip(&b.prints).position(|(a, b)| a != b);
    at.or((a.prints.len() != b.prints.len()).then_some(a.prints.len().min(b.prints.len())))
}

/// Steps of some runs.
pub fn steps<'a, I: 'a>(records: impl IntoIterator<Item = &'a Record<I>>) -> u64 {
    records.into_iter().map(|record| record.prints.len().saturating_sub(1) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(from: u64) -> Record<()> {
        Record { prints: (from..from + 40).map(|i| i * i).collect(), infos: Vec::new(), ended: true }
    }

    #[test]
    fn a_shifted_copy_is_a_copy() {
        assert!(alike(&record(3), &record(3)));
        assert!(alike(&record(3), &record(4)) && alike(&record(9), &record(3)));
        assert!(!alike(&record(3), &record(100)));
    }
}
