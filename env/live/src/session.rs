//! From workers that have come to a communicator that works.

use std::collections::BTreeMap;

use crate::crew::{Crew, LiveError, misheard};
use crate::message::{Answer, Opening, Request, Surroundings};

/// A communicator that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// What rank 0 runs on.
    pub first: Surroundings,
    /// Hosts of all ranks.
    pub nodes: u32,
    /// Ranks of each; none where these differ.
    pub ranks_per_node: Option<u32>,
}

impl Begun {
    fn of(opened: &[Surroundings]) -> Option<Self> {
        let mut hosts: BTreeMap<&str, u32> = BTreeMap::new();
        opened.iter().for_each(|rank| *hosts.entry(&rank.host).or_default() += 1);
        let (first, nodes, ranks) = (opened.first()?.clone(), hosts.len() as u32, opened.len() as u32);
        let alike = hosts.values().all(|&count| count * nodes == ranks);
        Some(Begun { first, nodes, ranks_per_node: alike.then_some(ranks / nodes) })
    }
}

/// Lets all workers take their GPUs and begin one communicator.
pub fn begin(crew: &mut Crew, opening: &Opening) -> Result<Begun, LiveError> {
    let what = |answer| if let Answer::Opened(what) = answer { Some(what) } else { None };
    let opened = crew.ask_for(&Request::Open(opening.clone()), what)?;
    let begun = Begun::of(&opened).ok_or_else(|| misheard(0))?;
    let first = &begun.first;
    if let Some(rank) = opened.iter().position(|other| other.nccl != first.nccl) {
        return Err(LiveError::Disagree(format!(
            "rank {rank} has NCCL {}, rank 0 has {}: give all the same with --nccl",
            opened[rank].nccl, first.nccl
        )));
    }
    let named = crew.ask_some(&[0], |_| Request::Name)?;
    let Some(Answer::Named(id)) = named.into_iter().next() else {
        return Err(misheard(0));
    };
    crew.ask_for(&Request::Join(id), |answer| (answer == Answer::Joined).then_some(()))?;
    Ok(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_counted_by_their_hosts() {
        let laid = |hosts: &str| {
            let text = |word: &str| word.to_owned();
            let on = |host| Surroundings {
                gpu: text("g"),
                multiprocessors: 1,
                cuda: text("13.0"),
                nccl: text("2.28.3"),
                host,
                blocks: 0,
            };
            let opened: Vec<_> = hosts.chars().map(|host| on(host.to_string())).collect();
            Begun::of(&opened).map(|begun| (begun.nodes, begun.ranks_per_node))
        };
        assert_eq!(laid("abab"), Some((2, Some(2))));
        assert_eq!((laid("aaab"), laid("aaa"), laid("")), (Some((2, None)), Some((1, Some(3))), None));
    }
}
