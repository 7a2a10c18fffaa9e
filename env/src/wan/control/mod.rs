//! Whoever decides, before each collective, whether to keep, reroute or rebuild.
//!
//! Cadences, triggers and learned policies are all asked the same way and see the same; only the clairvoyant
//! knows the future, and is a bound, not somebody to be asked.

mod cadence;
mod clairvoyant;
mod lanes;
mod threshold;
mod view;

use serde::Serialize;

pub use cadence::Cadence;
pub use clairvoyant::Clairvoyant;
pub use threshold::Threshold;
pub use view::View;

/// What can be done before a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// Nothing.
    Keep,
    /// The widest route for each crossing.
    Reroute,
    /// The best ring and its widest routes.
    Rebuild,
}

impl Move {
    /// All of them, in the order of a policy's choices.
    pub const ALL: [Move; 3] = [Move::Keep, Move::Reroute, Move::Rebuild];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Move::Keep => "keep",
            Move::Reroute => "reroute",
            Move::Rebuild => "rebuild",
        }
    }
}

/// Somebody who decides.
pub trait Controller {
    /// A job begins: nothing of the one before counts.
    fn begin(&mut self) {}

    /// What to do before the next collective.
    fn choose(&mut self, view: &mut View<'_>) -> Move;
}
