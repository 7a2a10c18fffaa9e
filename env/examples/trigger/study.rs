//! Series of noisy times from the simulator with a change put in, and what the trigger makes of them.

use dynamiccl_env::cluster::{Cluster, ClusterError, CommOptions, InterLink};
use dynamiccl_env::model::constants::Weather;
use dynamiccl_env::model::{Call, Conditions, ConstantsFile};
use dynamiccl_env::nccl::Realised;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::trigger::{Key, Ran, Trigger, TriggerConfig};
use dynamiccl_env::world::{WeatherState, World};
use dynamiccl_spec::Collective;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Where: name, cluster, nodes.
pub type PlaceName = (&'static str, &'static str, u32);
/// One NVSwitch domain, an RDMA network, sockets.
pub const PLACES: [PlaceName; 3] =
    [("tier 1", "tier1", 1), ("RDMA", "dgx_h100", 4), ("sockets", "a100_8_tcp25g", 4)];
/// Factors on the jitter of the kind of network: the ends of its range, and its middle.
pub const JITTERS: [(&str, f64); 3] = [("low", 0.6), ("usual", 1.0), ("high", 2.0)];
/// A change that moves times by less than this is none.
pub const LEAST_SHIFT: f64 = 0.02;

/// Calls before the change, and after it.
const BEFORE: u32 = 200;
const AFTER: u32 = 400;
/// Settings that a job with wandering knobs uses.
const WANDERS: usize = 4;
/// Share of calls that pause in the series of pauses, and by how many times their length.
const PAUSES: (f64, f64) = (0.03, 10.0);

/// What happens after [`BEFORE`] calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named below")]
pub enum Change {
    None,
    Pauses,
    Knobs,
    Bandwidth20,
    Bandwidth50,
    Bandwidth50Knobs,
    Latency,
    LoadOn,
    LoadOff,
    Straggler,
    Drift,
}

impl Change {
    /// All of them.
    pub const ALL: [Change; 11] = [
        Change::None,
        Change::Pauses,
        Change::Knobs,
        Change::Bandwidth20,
        Change::Bandwidth50,
        Change::Bandwidth50Knobs,
        Change::Latency,
        Change::LoadOn,
        Change::LoadOff,
        Change::Straggler,
        Change::Drift,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Change::None => "nothing",
            Change::Pauses => "3 % of calls pause for ten times their length",
            Change::Knobs => "nothing, four settings in turn at random",
            Change::Bandwidth20 => "bandwidth −20 %",
            Change::Bandwidth50 => "bandwidth −50 %",
            Change::Bandwidth50Knobs => "bandwidth −50 %, four settings at random",
            Change::Latency => "latency × 1.5 (16 KiB)",
            Change::LoadOn => "others take half of the network",
            Change::LoadOff => "others stop taking half of it",
            Change::Straggler => "one rank at 70 % of its speed",
            Change::Drift => "bandwidth −30 % over 400 calls",
        }
    }

    /// Whether there is anything to see.
    pub fn is_real(self) -> bool {
        !matches!(self, Change::None | Change::Pauses | Change::Knobs)
    }

    fn bytes(self) -> u64 {
        if self == Change::Latency { 16 << 10 } else { 64 << 20 }
    }

    fn wanders(self) -> bool {
        matches!(self, Change::Knobs | Change::Bandwidth50Knobs)
    }

    /// The conditions so many calls after the change, and before it for negative ones.
    fn conditions(self, since: i64) -> Conditions {
        let (calm, done) = (Conditions::CALM, since >= 0);
        let part = (since.max(0) as f64 / f64::from(AFTER)).min(1.0);
        match self {
            Change::LoadOff if !done => Conditions { load: 0.5, ..calm },
            Change::LoadOff | Change::None | Change::Pauses | Change::Knobs => calm,
            _ if !done => calm,
            Change::Bandwidth20 => Conditions { bandwidth: 0.8, ..calm },
            Change::Bandwidth50 | Change::Bandwidth50Knobs => Conditions { bandwidth: 0.5, ..calm },
            Change::Latency => Conditions { latency: 1.5, ..calm },
            Change::LoadOn => Conditions { load: 0.5, ..calm },
            Change::Straggler => Conditions { speed: 0.7, ..calm },
            Change::Drift => Conditions { bandwidth: 1.0 - 0.3 * part, ..calm },
        }
    }
}

/// What came of many series.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Median ln(time after ÷ before), without noise.
    pub shift: f64,
    /// Calls from the change to the alarm, 1 for the first call; none where it was missed.
    pub delays: Vec<Option<u32>>,
    calm_calls: u32,
    false_alarms: u32,
}

impl Outcome {
    /// Median delay.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The delay that one in ten exceeds.
    pub fn p90(&self) -> f64 {
        self.quantile(0.9)
    }

    /// % of changes that were not seen within 400 calls.
    pub fn missed(&self) -> f64 {
        let missed = self.delays.iter().filter(|delay| delay.is_none()).count();
        100.0 * missed as f64 / self.delays.len().max(1) as f64
    }

    /// Alarms while nothing had changed, per 1,000 calls.
    pub fn false_per_1000(&self) -> f64 {
        1000.0 * f64::from(self.false_alarms) / f64::from(self.calm_calls.max(1))
    }

    fn quantile(&self, q: f64) -> f64 {
        let mut delays: Vec<u32> = self.delays.iter().map(|delay| delay.unwrap_or(AFTER)).collect();
        delays.sort_unstable();
        let at = (delays.len().saturating_sub(1)) as f64 * q;
        delays.get(at.round() as usize).map_or(f64::NAN, |&delay| f64::from(delay))
    }
}

/// A cluster in the nominal weather of its network.
#[derive(Debug)]
pub struct Place {
    cluster: Cluster,
    nodes: u32,
    constants: ConstantsFile,
    weather: Weather,
}

impl Place {
    /// Reads the cluster.
    pub fn load((_, cluster, nodes): PlaceName) -> Result<Self, ClusterError> {
        let (cluster, constants) = (Cluster::load(cluster)?, ConstantsFile::full());
        let weathers = constants.nominal().weather;
        let sockets = cluster.inter.as_ref().is_some_and(|inter| inter.link == InterLink::Tcp);
        let weather = match (nodes, sockets) {
            (1, _) => weathers.node,
            (_, true) => weathers.socket,
            (_, false) => weathers.rdma,
        };
        Ok(Place { cluster, nodes, constants, weather })
    }

    /// The same change in many worlds.
    pub fn study(
        &self,
        change: Change,
        jitter: f64,
        worlds: u64,
        seed: u64,
    ) -> Result<Outcome, ClusterError> {
        let mut outcome = Outcome::default();
        let mut shifts = Vec::new();
        for world in 0..worlds {
            shifts.push(self.series(change, jitter, seed * 1_000_003 + world, &mut outcome)?);
        }
        shifts.sort_by(f64::total_cmp);
        outcome.shift = shifts[shifts.len() / 2];
        Ok(outcome)
    }

    /// One series; answers with the noise-free shift.
    fn series(
        &self,
        change: Change,
        jitter: f64,
        seed: u64,
        outcome: &mut Outcome,
    ) -> Result<f64, ClusterError> {
        let world = World::draw(&self.constants, seed);
        let simulator = Simulator::new(&self.cluster, self.nodes, &CommOptions::default(), &world)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let weather = Weather { jitter: self.weather.jitter * jitter, ..self.weather };
        let mut weather = WeatherState::new(&weather, 1, ChaCha8Rng::seed_from_u64(!seed));
        let (collective, bytes) = (Collective::AllReduce, change.bytes());
        let settings = settings(&simulator, bytes, change.wanders(), &mut rng);
        let mut trigger = Trigger::new(TriggerConfig::default(), 1);
        let mut alarm = None;
        for call in 0..BEFORE + AFTER {
            let since = i64::from(call) - i64::from(BEFORE);
            let (realised, predicted) = settings[rng.random_range(0..settings.len())];
            let conditions = change.conditions(since);
            let truth = micros(&simulator, &conditions, &Call::of(collective, bytes, &realised));
            let measured = weather.luck().apply(truth, simulator.modes(bytes, &realised));
            let pause = change == Change::Pauses && rng.random::<f64>() < PAUSES.0;
            let measured = if pause { measured + truth * PAUSES.1 } else { measured };
            let key = Key::new(0, collective, bytes);
            let fired = trigger.observe(key, Ran::of(&realised), measured, predicted).fired;
            let calm = since < 0 || !change.is_real();
            outcome.calm_calls += u32::from(calm);
            outcome.false_alarms += u32::from(calm && fired);
            if fired && !calm && alarm.is_none() {
                alarm = Some(since as u32 + 1);
            }
        }
        outcome.delays.push(alarm);
        let time = |since| {
            let call = Call::of(collective, bytes, &settings[0].0);
            micros(&simulator, &change.conditions(since), &call)
        };
        Ok((time(i64::from(AFTER)) / time(-1)).ln())
    }
}

/// The true time of a call in these conditions.
fn micros(simulator: &Simulator, conditions: &Conditions, call: &Call) -> f64 {
    simulator.micros_of(&simulator.fabric().under(conditions), call) + conditions.stall
}

/// NCCL's own setting, or some at random, each with NCCL's prediction.
fn settings(simulator: &Simulator, bytes: u64, wanders: bool, rng: &mut ChaCha8Rng) -> Vec<(Realised, f64)> {
    let table = simulator.communicator().cost_table(Collective::AllReduce, bytes, 1);
    let predicted = |realised: &Realised| table.get(realised.pair).map_or(1.0, f64::from);
    let own = simulator.own(Collective::AllReduce, bytes).map(|setting| setting.realised);
    let mut chosen: Vec<Realised> = own.into_iter().collect();
    if wanders {
        let all = simulator.settings(Collective::AllReduce, bytes);
        chosen.extend((1..WANDERS).map(|_| all[rng.random_range(0..all.len())].realised));
    }
    chosen.into_iter().map(|realised| (realised, predicted(&realised))).collect()
}
