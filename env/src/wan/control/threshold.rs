//! By what a change would gain now: rebuild where that gains so many ms more than rerouting would, else reroute
//! where that gains so many.

use serde::Serialize;

use super::{Controller, Move, View};
use crate::wan::Setting;

/// ms below: what they are for the job of the study, 8 GPUs and chunks of 32 MB over 1 ms.
const REBUILDS: [f64; 13] =
    [0.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 120.0, 200.0, Threshold::NEVER];
const REROUTES: [f64; 8] = [0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, Threshold::NEVER];
/// What [`Setting::middle_ms`] is for that job.
const STUDY_MS: f64 = 33.583_818_181_818_19;

/// A trigger.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Threshold {
    /// ms by which rebuilding must beat rerouting, or keeping where rerouting is not worth it.
    pub rebuild_ms: f64,
    /// ms by which rerouting must beat keeping.
    pub reroute_ms: f64,
}

impl Threshold {
    /// More than anything gains.
    pub const NEVER: f64 = f64::MAX;

    /// Triggers that a best one is looked for among; a job whose collectives take longer has more to gain.
    pub fn candidates(setting: &Setting) -> impl Iterator<Item = Threshold> {
        let scale = setting.middle_ms() / STUDY_MS;
        let scaled = move |ms: f64| if ms == Threshold::NEVER { ms } else { ms * scale };
        let reroutes = REROUTES.map(scaled);
        REBUILDS
            .map(scaled)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::Network;

    #[test]
    fn thresholds_are_as_large_as_what_a_job_has_to_gain() {
        let study = Setting::new(Network::even(2, 4, 2).unwrap()).unwrap();
        assert_eq!(study.middle_ms(), STUDY_MS);
        let of = |setting: &Setting| Threshold::candidates(setting).collect::<Vec<_>>();
        assert_eq!(of(&study).len(), REBUILDS.len() * REROUTES.len());
        assert_eq!(of(&study)[0], Threshold { rebuild_ms: 0.0, reroute_ms: 0.0 });
        let small = Setting { chunk_mb: 3.2, delay_ms: 0.1, inside_delay_ms: 1e-4, ..study.clone() };
        for (small, usual) in of(&small).iter().zip(of(&study)) {
            for (small, usual) in [(small.rebuild_ms, usual.rebuild_ms), (small.reroute_ms, usual.reroute_ms)]
            {
                let never = usual == Threshold::NEVER && small == usual;
                assert!(never || (10.0 * small - usual).abs() < 1e-9, "{small} beside {usual}");
            }
        }
    }
}
