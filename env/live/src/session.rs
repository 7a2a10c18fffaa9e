//! From workers that have come to a communicator that works.

use crate::crew::{Crew, LiveError};
use crate::message::{Answer, Opening, Request, Surroundings};

/// Lets all workers take their GPUs and begin one communicator.
pub fn begin(crew: &mut Crew, opening: &Opening) -> Result<Surroundings, LiveError> {
    let opened = crew.ask(&Request::Open(opening.clone()))?;
    let opened: Vec<Surroundings> = opened
        .into_iter()
        .filter_map(|answer| if let Answer::Opened(what) = answer { Some(what) } else { None })
        .collect();
    let first = opened[0].clone();
    if let Some(rank) = opened.iter().position(|other| other.nccl != first.nccl) {
        return Err(LiveError::Disagree(format!(
            "rank {rank} has NCCL {}, rank 0 has {}: give all the same with --nccl",
            opened[rank].nccl, first.nccl
        )));
    }
    let named = crew.ask_some(&[0], |_| Request::Name)?;
    let Some(Answer::Named(id)) = named.into_iter().next() else {
        return Err(LiveError::Disagree("rank 0 answers something else than it was asked".to_owned()));
    };
    crew.ask(&Request::Join(id))?;
    Ok(first)
}
