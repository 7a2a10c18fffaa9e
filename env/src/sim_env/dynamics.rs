//! What moves while a job runs, beside the weather: own congestion, the loss, who waits for whom.

use dynamiccl_spec::math::exp;
use dynamiccl_spec::{Environment, FaultTolerance, SyncMode};
use rand_chacha::ChaCha8Rng;

use crate::model::Conditions;
use crate::wan::{Sample, Traffic};
use crate::world::Climate;

/// µs in which queues drain and senders recover (assumed: a few round trips of congestion control).
const RECOVERY: f64 = 2000.0;
/// Flows into one NIC that meet without harm.
const CALM_FLOWS: f64 = 1.0;
/// Flows beyond those at which a NIC's queues are full.
const FULL_FLOWS: f64 = 8.0;
/// How much longer hops take through full queues.
const QUEUED_HOP: f64 = 0.5;

/// Queues that own channels have filled, 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Congestion(f64);

impl Congestion {
    /// How full queues are.
    pub fn level(self) -> f64 {
        self.0
    }

    /// What a call with this many flows per NIC adds in `busy` µs. What they drain meanwhile, time does.
    pub fn fill(&mut self, flows: f64, busy: f64) {
        let pressure = ((flows - CALM_FLOWS) / FULL_FLOWS).clamp(0.0, 1.0);
        self.0 = (self.0 + pressure * (1.0 - exp(-busy / RECOVERY))).min(1.0);
    }

    /// What is left after this many µs.
    pub fn drain(&mut self, micros: f64) {
        if self.0 > 0.0 {
            self.0 *= exp(-micros / RECOVERY);
        }
    }

    /// The conditions as a call meets them behind those queues; `share` of the network can be clogged.
    pub fn upon(self, conditions: &Conditions, share: f64) -> Conditions {
        if self.0 <= 0.0 || share <= 0.0 {
            return *conditions;
        }
        Conditions {
            load: 1.0 - (1.0 - conditions.load) * (1.0 - share * self.0),
            latency: conditions.latency * (1.0 + QUEUED_HOP * self.0 * share),
            ..*conditions
        }
    }
}

/// Least and most that traffic between datacentres leaves of a link, as a share (10 to 100 of 100 Gbit/s).
const LEFT: [f64; 2] = [0.1, 1.0];

/// What a WAN leaves of the link that a job crosses: the traffic of [`crate::wan`], a collective at a time.
#[derive(Debug, Clone)]
pub(super) struct Wan {
    traffic: Traffic,
    left: Sample,
}

impl Wan {
    /// A WAN whose traffic is that much alike from one call to the next.
    pub fn new(rho: f64, rng: ChaCha8Rng) -> Self {
        Wan { traffic: Traffic::over(vec![LEFT], rho, rng), left: Sample::default() }
    }

    /// The conditions that the next call meets across it.
    pub fn upon(&mut self, conditions: &Conditions) -> Conditions {
        self.traffic.next_into(&mut self.left);
        Conditions { load: 1.0 - (1.0 - conditions.load) * self.left.gbps(0), ..*conditions }
    }
}

/// A synthetic loss: falls fast, then slowly, with every iteration that reaches all replicas.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loss {
    updates: f64,
    value: f64,
}

impl Loss {
    /// The loss of an untrained model of some size.
    pub fn new() -> Self {
        Loss { updates: 0.0, value: Self::at(0.0) }
    }

    fn at(updates: f64) -> f64 {
        const FLOOR: f64 = 1.8;
        const SPAN: f64 = 9.0;
        FLOOR + SPAN / (1.0 + updates).sqrt()
    }

    /// How far the loss moves with this many more updates.
    pub fn advance(&mut self, updates: f64) -> f64 {
        self.updates += updates;
        let before = std::mem::replace(&mut self.value, Self::at(self.updates));
        self.value - before
    }
}

/// How much of a straggler's delay reaches the others.
pub(super) fn waiting_share(sync: SyncMode) -> f64 {
    match sync {
        SyncMode::Unknown | SyncMode::Bsp | SyncMode::Local => 1.0,
        SyncMode::Hybrid => 0.7,
        SyncMode::Decentralised => 0.6,
        SyncMode::Stale => 0.5,
        SyncMode::Async => 0.2,
    }
}

/// The share of a fault's stall that is left where others step in.
pub(super) fn stall_share(tolerance: FaultTolerance, template: bool) -> f64 {
    let share = match tolerance {
        FaultTolerance::Unknown | FaultTolerance::None => 1.0,
        FaultTolerance::Oobleck => 0.3,
        FaultTolerance::Swarm => 0.2,
        FaultTolerance::Ftar => 0.1,
    };
    if template { share * 0.5 } else { share }
}

/// How much rougher the weather is outside of datacentres (directions documented, sizes assumed).
pub(super) fn climate(environment: Environment) -> Climate {
    let (jitter, stragglers, load) = match environment {
        Environment::Unknown | Environment::Datacentre => (1.0, 1.0, 1.0),
        Environment::Edge => (1.8, 3.0, 1.3),
        Environment::Federated => (2.5, 8.0, 1.5),
    };
    Climate { jitter, stragglers, load, drift: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_channels_fill_queues_and_time_drains_them() {
        let mut congestion = Congestion::default();
        congestion.fill(1.0, 1e4);
        assert_eq!(congestion.level(), 0.0);
        congestion.fill(32.0, 1e4);
        let full = congestion.level();
        assert!(full > 0.9);
        congestion.drain(1e4);
        assert!(congestion.level() < 0.01 * full);
    }

    /// However long each call is.
    #[test]
    fn calls_without_a_pause_fill_queues_as_far_as_their_flows_press() {
        for (busy, flows) in [(50.0, 9.0), (50.0, 5.0), (2000.0, 9.0), (20_000.0, 5.0)] {
            let mut congestion = Congestion::default();
            for _ in 0..1000 {
                congestion.drain(busy);
                congestion.fill(flows, busy);
            }
            let level = congestion.level();
            assert!((level - (flows - CALM_FLOWS) / FULL_FLOWS).abs() < 0.01, "{busy} µs: {level}");
        }
    }

    #[test]
    fn queues_leave_less_network_and_longer_hops() {
        let calm = Conditions::CALM;
        let behind = Congestion(0.8).upon(&calm, 0.25);
        assert!((behind.load - 0.2).abs() < 1e-12 && behind.latency > 1.0);
        assert_eq!(Congestion(0.8).upon(&calm, 0.0), calm);
    }

    #[test]
    fn the_loss_falls_ever_slower() {
        let mut loss = Loss::new();
        let steps: Vec<f64> = (0..20).map(|_| loss.advance(1.0)).collect();
        assert!(steps.iter().all(|step| *step < 0.0));
        assert!(steps.windows(2).all(|two| two[1] > two[0]));
        assert_eq!(loss.advance(0.0), 0.0);
    }

    #[test]
    fn who_waits_less_and_who_recovers_sooner() {
        use SyncMode::*;
        assert!([Bsp, Hybrid, Stale, Async].map(waiting_share).is_sorted_by(|a, b| a > b));
        use FaultTolerance as Ft;
        assert!(
            [Ft::None, Ft::Oobleck, Ft::Swarm, Ft::Ftar]
                .map(|ft| stall_share(ft, false))
                .is_sorted_by(|a, b| a > b)
        );
        assert!(stall_share(Ft::Oobleck, true) < stall_share(Ft::Oobleck, false));
    }
}
