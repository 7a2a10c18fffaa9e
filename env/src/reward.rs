//! What a step is worth: eight terms, each logged by itself.
//!
//! The time relative to NCCL's own choice is what counts; the others are small and say what else a
//! job pays for: changing knobs, filling queues, trying things, slow convergence, SMs taken from
//! compute, demanding settings on distant links, faults. A reward knows nothing of how a call was
//! simulated or measured, so live calls are judged by the same function.

use dynamiccl_spec::{ChunkChoice, Protocol};
use serde::{Deserialize, Serialize};

/// Number of terms.
pub const TERMS: usize = 8;
/// Their names, in the order of [`Terms::all`].
pub const NAMES: [&str; TERMS] =
    ["time", "switch", "congestion", "probe", "convergence", "sm", "tier", "fault"];
/// The most that the inverse of a loss change counts, so that a loss that stands still costs no infinity.
const LOSS_CAP: f64 = 1e3;

/// How much each term counts. The time's own weight is 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Another launch.
    pub switch: f64,
    /// Congestion that own channels cause.
    pub congestion: f64,
    /// A sampled action that the policy does not prefer.
    pub probe: f64,
    /// The inverse of the loss change.
    pub convergence: f64,
    /// Compute lost to channels.
    pub sm: f64,
    /// Demanding settings on distant links.
    pub tier: f64,
    /// A fault during the call.
    pub fault: f64,
    /// Times beyond this many times NCCL's count as that many.
    pub clip: f64,
}

/// What happened in a call, as far as it is worth something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// µs of the call.
    pub micros: f64,
    /// µs of NCCL's own choice for the same call in the same conditions.
    pub reference: f64,
    /// Whether another launch ran than in the last call of the same communicator, collective and size octave.
    pub switched: bool,
    /// Congestion that own channels have caused, 0 to 1.
    pub congestion: f64,
    /// Whether the action was a probe.
    pub exploratory: bool,
    /// How much the loss moved with the last update of the model.
    pub loss_change: f64,
    /// µs that compute beside the call lost to its channels.
    pub compute_lost: f64,
    /// What the setting demands of distant links, 0 to 1.
    pub demand: f64,
    /// Whether a fault struck during the call.
    pub fault: bool,
}

/// The weighted terms; their sum is the reward.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Terms {
    /// Time relative to NCCL's own choice.
    pub time: f64,
    /// Another launch.
    pub switch: f64,
    /// Congestion.
    pub congestion: f64,
    /// Probes.
    pub probe: f64,
    /// Convergence.
    pub convergence: f64,
    /// SMs.
    pub sm: f64,
    /// Distant links.
    pub tier: f64,
    /// Faults.
    pub fault: f64,
}

impl Terms {
    /// The terms of an outcome.
    pub fn new(weights: &Weights, outcome: &Outcome) -> Self {
        let flag = |yes: bool| if yes { 1.0 } else { 0.0 };
        let reference = outcome.reference.max(f64::MIN_POSITIVE);
        Terms {
            time: -(outcome.micros / reference).min(weights.clip),
            switch: -weights.switch * flag(outcome.switched),
            congestion: -weights.congestion * outcome.congestion,
            probe: -weights.probe * flag(outcome.exploratory),
            convergence: -weights.convergence * stagnation(outcome.loss_change),
            sm: -weights.sm * (outcome.compute_lost / reference).min(weights.clip),
            tier: -weights.tier * outcome.demand,
            fault: -weights.fault * flag(outcome.fault),
        }
    }

    /// All of them, in the order of [`NAMES`].
    pub fn all(&self) -> [f64; TERMS] {
        let Terms { time, switch, congestion, probe, convergence, sm, tier, fault } = *self;
        [time, switch, congestion, probe, convergence, sm, tier, fault]
    }

    /// The reward.
    pub fn sum(&self) -> f64 {
        self.all().into_iter().sum()
    }
}

/// The inverse of a loss change as a share of its cap: 1 where the loss stands still.
fn stagnation(loss_change: f64) -> f64 {
    (1.0 / loss_change.abs()).min(LOSS_CAP) / LOSS_CAP
}

/// What a setting demands of links, 0 to 1, where the most distant ranks are at this tier: a protocol
/// and chunks that fill links cost nothing nearby and much across datacentres.
pub fn demand(protocol: Protocol, chunk: ChunkChoice, channels: u32, tier: u8) -> f64 {
    const CHANNELS: f64 = 64.0;
    let distance = f64::from(tier.clamp(1, 4) - 1) / 3.0;
    let simple = if protocol == Protocol::Simple { 0.5 } else { 0.0 };
    let chunks = match chunk {
        ChunkChoice::Quadruple => 0.25,
        ChunkChoice::Double => 0.125,
        _ => 0.0,
    };
    distance * (simple + chunks + 0.25 * (f64::from(channels) / CHANNELS).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: Weights = Weights {
        switch: 0.1,
        congestion: 0.2,
        probe: 0.3,
        convergence: 0.4,
        sm: 0.5,
        tier: 0.6,
        fault: 0.7,
        clip: 10.0,
    };
    const CALM: Outcome = Outcome {
        micros: 50.0,
        reference: 100.0,
        switched: false,
        congestion: 0.0,
        exploratory: false,
        loss_change: 1e9,
        compute_lost: 0.0,
        demand: 0.0,
        fault: false,
    };

    fn terms(change: impl Fn(&mut Outcome)) -> [f64; TERMS] {
        let mut outcome = CALM;
        change(&mut outcome);
        Terms::new(&WEIGHTS, &outcome).all().map(|term| (term * 1e6).round() / 1e6)
    }

    #[test]
    fn each_term_follows_its_own_cause() {
        let calm = terms(|_| {});
        assert_eq!(calm, [-0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let moved = |change: fn(&mut Outcome)| {
            let after = terms(change);
            let mut differing = (0..TERMS).filter(|&i| after[i] != calm[i]);
            let only = differing.next().expect("a term moves");
            assert_eq!(differing.next(), None, "one term moves");
            (NAMES[only], after[only])
        };
        assert_eq!(moved(|o| o.micros = 200.0), ("time", -2.0));
        assert_eq!(moved(|o| o.switched = true), ("switch", -0.1));
        assert_eq!(moved(|o| o.congestion = 0.5), ("congestion", -0.1));
        assert_eq!(moved(|o| o.exploratory = true), ("probe", -0.3));
        assert_eq!(moved(|o| o.loss_change = 0.002), ("convergence", -0.2));
        assert_eq!(moved(|o| o.compute_lost = 20.0), ("sm", -0.1));
        assert_eq!(moved(|o| o.demand = 0.5), ("tier", -0.3));
        assert_eq!(moved(|o| o.fault = true), ("fault", -0.7));
    }

    #[test]
    fn a_time_beyond_the_clip_counts_as_the_clip() {
        assert_eq!(terms(|o| o.micros = 1e9)[0], -10.0);
        assert_eq!(terms(|o| o.reference = 0.0)[0], -10.0);
    }

    #[test]
    fn a_loss_that_stands_still_costs_the_cap_and_no_more() {
        assert_eq!(terms(|o| o.loss_change = 0.0)[4], -0.4);
        assert_eq!(terms(|o| o.loss_change = -0.002)[4], -0.2);
    }

    #[test]
    fn only_distant_links_mind_demanding_settings() {
        let at = |tier| demand(Protocol::Simple, ChunkChoice::Quadruple, 64, tier);
        assert_eq!([0, 1, 4].map(at), [0.0, 0.0, 1.0]);
        assert!(at(2) < at(3));
        assert!(demand(Protocol::LL, ChunkChoice::Own, 4, 4) < 0.02);
    }
}
