//! By what a change would gain now: rebuild where that gains so many ms more than rerouting would, else reroute
//! where that gains so many.

use serde::Serialize;

use super::{Controller, Move, View};

/// A trigger.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Threshold {
    /// ms by which rebuilding must beat rerouting, or keeping where rerouting is not worth it.
    pub rebuild_ms: f64,
    /// ms by which rerouting must beat keeping.
    pub reroute_ms: f64,
}

impl Threshold {
    /// Triggers that a best one is looked for among.
    pub fn candidates() -> impl Iterator<Item = Threshold> {
        let reroutes = [0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];
        [0.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 120.0, 200.0, f64::MAX]
            .into_iter()
            .flat_map(move |rebuild_ms| reroutes.map(|reroute_ms| Threshold { rebuild_ms, reroute_ms }))
    }
}

impl Controller for Threshold {
    fn choose(&mut self, view: &mut View<'_>) -> Move {
        let prospect = view.prospect;
        let by_routes = prospect.keep_ms - prospect.reroute_ms;
        let by_ring = prospect.keep_ms - prospect.rebuild_ms;
        let reroutes = by_routes > self.reroute_ms;
        if by_ring - if reroutes { by_routes } else { 0.0 } > self.rebuild_ms {
            Move::Rebuild
        } else if reroutes {
            Move::Reroute
        } else {
            Move::Keep
        }
    }
}
