//! Many random legal steps, each looked at: ranges, masks, rewards, ends.

use dynamiccl_spec::action::HEADS;

use super::CheckOptions;
use super::findings::Findings;
use super::rule::Rule;
use crate::gym::{Env, EnvError, FeatureSpace, Observation, RandomActor, Spaces};

/// Steps between two reports of progress.
pub const CHUNK: u64 = 1000;

/// A walk under way.
struct Walk<'a> {
    options: &'a CheckOptions,
    spaces: Spaces,
    observation: Observation,
    actions: RandomActor,
    steps: u64,
}

/// Walks; answers with the steps that were taken.
pub fn walk<E: Env, X>(
    env: &mut E,
    options: &CheckOptions,
    findings: &mut Findings,
    progress: &mut impl FnMut(u64) -> Result<(), X>,
) -> Result<u64, X> {
    let spaces = env.spaces().clone();
    let observation = Observation::new(&spaces);
    let actions = RandomActor::new(options.seeds.first().copied().unwrap_or(0));
    let mut walk = Walk { options, spaces, observation, actions, steps: 0 };
    let mut episodes = 0;
    while walk.steps < options.steps {
        // Every seed once, then whatever follows without one.
        let seed = options.seeds.get(episodes).copied();
        episodes += 1;
        if let Err(error) = env.reset(seed, &mut walk.observation) {
            findings.note(Rule::Reset, || format!("reset({seed:?}) of episode {episodes}: {error}"));
            // Without a single step there is nothing to wait for.
            if episodes > options.seeds.len() && walk.steps == 0 {
                break;
            }
            walk.steps += 1;
            continue;
        }
        let length = walk.episode(env, findings, progress)?;
        // An episode in which nothing is legal must not hold up the walk.
        walk.steps += u64::from(length == 0);
    }
    Ok(walk.steps)
}

impl Walk<'_> {
    /// Goes through the episode that has begun; answers with its steps.
    fn episode<E: Env, X>(
        &mut self,
        env: &mut E,
        findings: &mut Findings,
        progress: &mut impl FnMut(u64) -> Result<(), X>,
    ) -> Result<u64, X> {
        let longest = self.options.longest_episode;
        let mut length = 0;
        look(&self.spaces, &self.observation, findings);
        while let Some(action) = self.actions.try_act(&self.observation) {
            let taken = env.step(&action, &mut self.observation);
            (length, self.steps) = (length + 1, self.steps + 1);
            if self.steps.is_multiple_of(CHUNK) {
                progress(CHUNK)?;
            }
            let over = match taken {
                Ok(transition) => {
                    if !transition.reward.is_finite() {
                        findings.note(Rule::Reward, || format!("{} in step {length}", transition.reward));
                    }
                    look(&self.spaces, &self.observation, findings);
                    transition.terminated || transition.truncated
                }
                Err(error) => refused(&error, length, findings),
            };
            if length > longest {
                findings.note(Rule::End, || format!("no end within {longest} steps"));
            }
            if over || length > longest || self.steps >= self.options.steps {
                break;
            }
        }
        Ok(length)
    }
}

/// A legal action was refused: the episode is over unsaid, or the action was not accepted.
fn refused(error: &EnvError, length: u64, findings: &mut Findings) -> bool {
    let rule = if matches!(error, EnvError::NoEpisode(_)) { Rule::End } else { Rule::Accept };
    findings.note(rule, || format!("step {length} of an episode without a flag: {error}"));
    true
}

/// Looks at one observation.
pub fn look(spaces: &Spaces, observation: &Observation, findings: &mut Findings) {
    let wide = (observation.context.len(), observation.history.len());
    if wide != (spaces.context_width(), spaces.history_width()) {
        findings.note(Rule::Spaces, || {
            let stated = (spaces.context_width(), spaces.history_width());
            format!("context and history are {wide:?} wide, the spaces say {stated:?}")
        });
        return;
    }
    in_range(&spaces.context, &observation.context, findings);
    in_range(&spaces.history, &observation.history, findings);
    in_range(&spaces.privileged, &observation.privileged, findings);
    look_at_masks(spaces, observation, findings);
}

fn in_range(features: &[FeatureSpace], mut numbers: &[f32], findings: &mut Findings) {
    for feature in features {
        let (own, rest) = numbers.split_at(feature.width);
        numbers = rest;
        // NaN is in no range, infinity in none that is finite.
        if let Some(x) = own.iter().find(|x| !(feature.low..=feature.high).contains(*x) || !x.is_finite()) {
            findings.note(Rule::Range, || {
                format!("{} is {x}, stated are {} to {}", feature.name, feature.low, feature.high)
            });
        }
    }
}

fn look_at_masks(spaces: &Spaces, observation: &Observation, findings: &mut Findings) {
    for head in 0..HEADS {
        let (name, labels) = spaces
            .heads
            .get(head)
            .map_or(("an unused head", 1), |space| (space.name.as_str(), space.labels.len()));
        let mask = observation.mask[head];
        if mask == 0 {
            findings.note(Rule::Masks, || format!("{name} allows nothing"));
        } else if labels < 32 && mask >> labels != 0 {
            findings.note(Rule::Masks, || format!("{name} allows {mask:#b}, and has {labels} labels"));
        }
    }
    let choice = observation.mask.iter().any(|mask| mask.count_ones() > 1);
    if choice != observation.decides && observation.mask.iter().all(|&mask| mask != 0) {
        let [decides, choices] = [observation.decides, choice].map(|yes| if yes { "yes" } else { "no" });
        findings.note(Rule::Idle, || format!("decides: {decides}, more than one choice: {choices}"));
    }
}
