//! The environment in the widths of NCCL's knobs, for a network and a trainer that are made for those.
//!
//! What is seen stands at the beginning of a call's part of the context and of a history row, the rest is 0; the
//! move is chosen by the head for channels, whose first values stand for it. Nothing else changes.

use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH, JOB_WIDTH, catalogue};

use super::{WanEnv, WanInfo};
use crate::gym::{Action, Env, EnvError, FeatureSpace, HeadSpace, Observation, Spaces, Transition};
use crate::sim_env::Stream;

/// The head that moves.
const HEAD: usize = Head::Channels as usize;

/// The environment in other clothes.
#[derive(Debug)]
pub struct Dressed {
    env: WanEnv,
    spaces: Spaces,
    plain: Observation,
}

impl Dressed {
    /// Dresses an environment.
    pub fn new(env: WanEnv) -> Self {
        let own = env.spaces();
        let plain = Observation::new(own);
        let empty = |name: &str, width| FeatureSpace { name: name.to_owned(), width, low: 0.0, high: 1.0 };
        let fill = |kind: &str, own: &[FeatureSpace], before: usize, after: usize| {
            let mut features = own.to_vec();
            if before > 0 {
                features.insert(0, empty(&format!("before_{kind}"), before));
            }
            features.push(empty(&format!("after_{kind}"), after));
            features
        };
        let (seen, past) = (own.context_width(), own.history_width());
        let first = past_place();
        let heads = Head::ALL.iter().enumerate().map(|(at, head)| match at {
            HEAD => own.heads[0].clone(),
            _ => HeadSpace { name: head.name().to_owned(), labels: head.label(0).into_iter().collect() },
        });
        let spaces = Spaces {
            id: format!("{}-dressed", own.id),
            context: fill("context", &own.context, JOB_WIDTH, CONTEXT_WIDTH - JOB_WIDTH - seen),
            history: fill("history", &own.history, first, HISTORY_WIDTH - first - past),
            privileged: own.privileged.clone(),
            heads: heads.collect(),
        };
        Dressed { env, spaces, plain }
    }

    /// What a plain observation looks like when dressed.
    pub fn dress(plain: &Observation, into: &mut Observation) {
        into.context.fill(0.0);
        into.history.fill(0.0);
        // An expert must be named, and there is one only.
        into.context[catalogue::slot("pipeline_role").map_or(0, |slot| slot.start)] = 1.0;
        into.context[JOB_WIDTH..][..plain.context.len()].copy_from_slice(&plain.context);
        into.history[past_place()..][..plain.history.len()].copy_from_slice(&plain.history);
        into.privileged.copy_from_slice(&plain.privileged);
        into.mask = [1; HEADS];
        into.mask[HEAD] = plain.mask[0];
        into.decides = plain.decides;
    }

    /// The move that a dressed choice means, as the plain environment is told it.
    pub fn plain_choice(choice: [u8; HEADS]) -> [u8; HEADS] {
        let mut plain = [0; HEADS];
        plain[0] = choice[HEAD];
        plain
    }

    /// Where the stream of episodes stood when the running one began; none before the first.
    pub fn stream(&self) -> Option<&Stream> {
        self.env.stream()
    }

    /// Begins the episode that began at this point of a stream once more.
    pub fn rejoin(&mut self, stream: &Stream, into: &mut Observation) -> Result<WanInfo, EnvError> {
        let info = self.env.rejoin(stream, &mut self.plain)?;
        Self::dress(&self.plain, into);
        Ok(info)
    }
}

/// Where a history row holds what was done before; what was measured of NCCL stands elsewhere and stays 0.
fn past_place() -> usize {
    catalogue::slot("last_pair").map_or(0, |slot| slot.start)
}

impl Env for Dressed {
    type Info = WanInfo;

    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: Option<u64>, into: &mut Observation) -> Result<WanInfo, EnvError> {
        let info = self.env.reset(seed, &mut self.plain)?;
        Self::dress(&self.plain, into);
        Ok(info)
    }

    fn step(&mut self, action: &Action, into: &mut Observation) -> Result<Transition<WanInfo>, EnvError> {
        if self.env.is_running() {
            let mut mask = [1; HEADS];
            mask[HEAD] = self.plain.mask[0];
            self.spaces.check(&mask, &action.choice)?;
        }
        let plain = Action { choice: Self::plain_choice(action.choice), exploratory: action.exploratory };
        let transition = self.env.step(&plain, &mut self.plain)?;
        Self::dress(&self.plain, into);
        Ok(transition)
    }
}
