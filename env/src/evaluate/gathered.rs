//! What one worker has found, before figures are made of it.

use dynamiccl_spec::Choice;

use super::judge::Tally;
use super::report::Place;
use crate::nccl::Realised;

/// The cells of a piece of work, and what every entrant did there.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// The cells.
    pub cells: Vec<Cell>,
    /// By entrant, then by seed; tallies count cells as above.
    pub players: Vec<Vec<Tally>>,
}

/// A cell, and what can run in it.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Where it is.
    pub place: Place,
    /// Its tier.
    pub tier: u8,
    /// Whether its cluster is held out.
    pub held_out: bool,
    /// NCCL's own among the choices.
    pub own: usize,
    /// How often each choice was the fastest.
    pub fastest: Vec<f64>,
    /// What can run; knobs that NCCL runs alike are one.
    pub choices: Vec<(Choice, Realised)>,
}
