//! How calls of a recorded sweep are run: in no weather, and judged by their time alone.

use rand_chacha::ChaCha8Rng;

use super::episode::Rules;
use crate::curriculum::Dynamics;
use crate::job::Shown;
use crate::reward::Weights;
use crate::world::draw::uniform;

/// What holds for every sweep.
pub(super) const RULES: Rules = Rules {
    dynamics: Dynamics::STILL,
    weights: Weights {
        switch: 0.0,
        congestion: 0.0,
        probe: 0.0,
        convergence: 0.0,
        sm: 0.0,
        tier: 0.0,
        fault: 0.0,
        clip: 10.0,
    },
    calls: 1000,
    regime: None,
    free_threads: false,
};

/// What a policy is told: half of the jobs have no deployment file, others one with or without the machine.
pub(super) fn shown(rng: &mut ChaCha8Rng) -> Shown {
    let [nothing, topology, rest] = [(); 3].map(|()| uniform(rng) < 0.5);
    if nothing {
        return Shown::NOTHING;
    }
    Shown { topology, workload: rest, scheduler: rest, llm: rest }
}
