//! By the count alone: rebuild every so many collectives, reroute every so many.

use serde::Serialize;

use super::{Controller, Move, View};

/// A cadence; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cadence {
    /// Collectives from one rebuilding to the next.
    pub rebuild: u32,
    /// Collectives from one rerouting to the next.
    pub reroute: u32,
}

impl Cadence {
    /// Rebuild every ten collectives and reroute at each, as the study does.
    pub const STUDY: Cadence = Cadence { rebuild: 10, reroute: 1 };

    /// Cadences that a best one is looked for among.
    pub fn candidates() -> impl Iterator<Item = Cadence> {
        let reroutes = [0, 1, 2, 5, 10];
        [0, 1, 2, 5, 10, 20, 50, 100, 200]
            .into_iter()
            .flat_map(move |rebuild| reroutes.map(|reroute| Cadence { rebuild, reroute }))
    }
}

impl Controller for Cadence {
    fn choose(&mut self, view: &mut View<'_>) -> Move {
        let due = |every: u32| every > 0 && view.operation.done().is_multiple_of(every);
        if due(self.rebuild) {
            Move::Rebuild
        } else if due(self.reroute) {
            Move::Reroute
        } else {
            Move::Keep
        }
    }
}
