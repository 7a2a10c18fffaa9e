//! What an environment must refuse: steps without an episode, choices against the mask.

use dynamiccl_spec::action::HEADS;

use super::CheckOptions;
use super::episode::Episode;
use super::findings::Findings;
use super::rule::Rule;
use super::twins::{parted, steps};
use crate::gym::{Action, Env, EnvError, Observation, RandomActor};

/// Steps of an episode before each of which everything illegal is tried.
const STEPS: usize = 64;

/// Steps before the first reset and after the end; `fresh` was never reset.
pub fn order<E: Env>(fresh: &mut E, options: &CheckOptions, findings: &mut Findings) -> u64 {
    let mut observation = Observation::new(fresh.spaces());
    no_episode(fresh, &mut observation, "before the first reset", findings);
    let seed = options.seeds.first().copied().unwrap_or(0);
    let steps = options.longest_episode.min(options.steps) as usize;
    let record = Episode::begin(fresh, Some(seed), 0.0).run(steps);
    if record.ended {
        no_episode(fresh, &mut observation, "after the end", findings);
        if let Err(error) = fresh.reset(None, &mut observation) {
            findings.note(Rule::Reset, || format!("reset(None) after the end: {error}"));
        }
    }
    record.prints.len().saturating_sub(1) as u64
}

fn no_episode<E: Env>(env: &mut E, into: &mut Observation, when: &str, findings: &mut Findings) {
    match env.step(&Action::default(), into) {
        Err(EnvError::NoEpisode(_)) => {}
        Err(other) => findings.note(Rule::Order, || format!("a step {when} is another error: {other}")),
        Ok(_) => findings.note(Rule::Order, || format!("a step {when} is accepted")),
    }
}

/// Resets in the middle of an episode, with a seed and without.
pub fn reset<E: Env>(env: &mut E, options: &CheckOptions, findings: &mut Findings) {
    let mut observation = Observation::new(env.spaces());
    for seed in options.seeds.iter().flat_map(|&seed| [Some(seed), None]) {
        Episode::begin(env, Some(options.seeds[0]), 0.0).run(3);
        if let Err(error) = env.reset(seed, &mut observation) {
            findings.note(Rule::Reset, || format!("reset({seed:?}) in the middle of an episode: {error}"));
        }
    }
}

/// Every choice of every head against the mask, at every step; then the episode must go on as if nothing
/// had happened.
pub fn refuse<E: Env>(env: &mut E, seed: u64, findings: &mut Findings) -> u64 {
    let undisturbed = Episode::begin(env, Some(seed), 0.0).run(STEPS);
    let mut episode = Episode::begin(env, Some(seed), 0.0);
    for _ in 0..STEPS {
        for choice in episode.observed().map(illegal).unwrap_or_default() {
            if let Some(detail) = episode.provoke(choice) {
                findings.note(Rule::Refuse, || detail);
                return steps([&undisturbed, &episode.record()]);
            }
        }
        episode.step();
    }
    let disturbed = episode.record();
    if let Some(at) = parted(&undisturbed, &disturbed) {
        findings.note(Rule::Refuse, || format!("seed {seed}: step {at} differs after refused actions"));
    }
    steps([&undisturbed, &disturbed])
}

/// All choices that one head forbids, the others being legal.
fn illegal(observation: &Observation) -> Vec<[u8; HEADS]> {
    let Some(legal) = RandomActor::new(1).try_act(observation) else { return Vec::new() };
    let forbidden = |head: usize| {
        let mask = observation.mask[head];
        let indices = (0..32u8).filter(move |index| mask >> index & 1 == 0).chain([32, 255]);
        indices.map(move |index| {
            let mut choice = legal.choice;
            choice[head] = index;
            choice
        })
    };
    (0..HEADS).flat_map(forbidden).collect()
}

/// Every choice of every head that the mask of a seed's first observations allows.
pub fn accept<E: Env>(env: &mut E, seed: u64, depth: usize, findings: &mut Findings) -> u64 {
    let mut taken = 0;
    let mut observation = Observation::new(env.spaces());
    for head in 0..HEADS {
        for index in 0..32u8 {
            let mut actions = RandomActor::new(1);
            if env.reset(Some(seed), &mut observation).is_err() {
                return taken;
            }
            for at in 0..=depth {
                let Some(mut action) = actions.try_act(&observation) else { break };
                if at == depth && observation.mask[head] >> index & 1 == 1 {
                    action.choice[head] = index;
                }
                taken += 1;
                match env.step(&action, &mut observation) {
                    Ok(transition) if transition.terminated || transition.truncated => break,
                    Ok(_) => {}
                    Err(EnvError::NoEpisode(_)) => break,
                    Err(error) => {
                        findings.note(Rule::Accept, || format!("{:?} at step {at}: {error}", action.choice));
                        break;
                    }
                }
            }
        }
    }
    taken
}
