//! What an environment shows and takes, in its own words.

use dynamiccl_spec::action::{HEADS, Head};
use dynamiccl_spec::features::{FEATURES, Part};
use serde::Serialize;

use crate::gym::EnvError;

/// The spaces of an environment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spaces {
    /// Name and version, for instance `sim-v1`.
    pub id: String,
    /// What a context holds, in order.
    pub context: Vec<FeatureSpace>,
    /// What a history row holds, in order.
    pub history: Vec<FeatureSpace>,
    /// What only a critic may see, in order.
    pub privileged: Vec<FeatureSpace>,
    /// What can be chosen, in the order of decisions; at most [`HEADS`] of them.
    pub heads: Vec<HeadSpace>,
}

/// One observed feature.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeatureSpace {
    /// Its name.
    pub name: String,
    /// How many numbers it takes.
    pub width: usize,
    /// Their smallest value.
    pub low: f32,
    /// Their largest value.
    pub high: f32,
}

/// One head.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadSpace {
    /// Its name.
    pub name: String,
    /// What its choices are called.
    pub labels: Vec<String>,
}

impl Spaces {
    /// The spaces of NCCL's knobs, shared by simulator, traces and live NCCL.
    pub fn of_knobs(id: &str, privileged: Vec<FeatureSpace>) -> Self {
        let of = |history: bool| {
            let part = move |feature: &&dynamiccl_spec::features::Feature| {
                (feature.part == Part::History) == history
            };
            FEATURES.iter().filter(part).map(FeatureSpace::of).collect()
        };
        let heads = Head::ALL.iter().map(|head| HeadSpace {
            name: head.name().to_owned(),
            labels: (0..head.size()).filter_map(|index| head.label(index)).collect(),
        });
        Spaces {
            id: id.to_owned(),
            context: of(false),
            history: of(true),
            privileged,
            heads: heads.collect(),
        }
    }

    /// Numbers in a context.
    pub fn context_width(&self) -> usize {
        width(&self.context)
    }

    /// Numbers in a history row.
    pub fn history_width(&self) -> usize {
        width(&self.history)
    }

    /// Numbers that only a critic may see.
    pub fn privileged_width(&self) -> usize {
        width(&self.privileged)
    }

    /// An error that names the first choice that a mask forbids.
    pub fn check(&self, mask: &[u32; HEADS], choice: &[u8; HEADS]) -> Result<(), EnvError> {
        let legal = |head: usize, index: usize| index < 32 && mask[head] & (1 << index) != 0;
        let Some(head) = (0..HEADS).find(|&head| !legal(head, usize::from(choice[head]))) else {
            return Ok(());
        };
        let space = self.heads.get(head);
        let label = |index: usize| {
            let known = space.and_then(|space| space.labels.get(index).cloned());
            known.unwrap_or_else(|| index.to_string())
        };
        Err(EnvError::Illegal {
            head: space.map_or_else(|| head.to_string(), |space| space.name.clone()),
            choice: label(usize::from(choice[head])),
            legal: (0..32).filter(|&index| legal(head, index)).map(label).collect::<Vec<_>>().join(", "),
        })
    }
}

fn width(features: &[FeatureSpace]) -> usize {
    features.iter().map(|feature| feature.width).sum()
}

impl FeatureSpace {
    /// One number between 0 and 1, or between -1 and 1 where it has a sign.
    pub fn scalar(name: &str, low: f32) -> Self {
        FeatureSpace { name: name.to_owned(), width: 1, low, high: 1.0 }
    }

    fn of(feature: &dynamiccl_spec::features::Feature) -> Self {
        let [low, high] = feature.range();
        FeatureSpace { name: feature.name.to_owned(), width: feature.width(), low, high }
    }
}
