//! From workers that have come to a communicator that works.

use crate::crew::{Crew, LiveError, misheard};
use crate::message::{Answer, Opening, Request, Surroundings};

/// Lets all workers take their GPUs and begin one communicator.
pub fn begin(crew: &mut Crew, opening: &Opening) -> Result<Surroundings, LiveError> {
    let what = |answer| if let Answer::Opened(what) = answer { Some(what) } else { None };
    let opened = crew.ask_for(&Request::Open(opening.clone()), what)?;
    let first = opened[0].clone();
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
    Ok(first)
}
