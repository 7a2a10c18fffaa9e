//! Online tuners on the calls of a simulated communicator.

use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::job::Shown;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_policies::random::Random;
use dynamiccl_spec::math::exp;
use dynamiccl_spec::{Collective, Decision, Knobs, Measured, Query, Tuner};

/// Spread of one call's ln time.
const JITTER: f64 = 0.03;

/// A communicator on which calls are made and measured.
pub struct Bench {
    asking: Asking,
    simulator: Simulator,
}

/// What came of some calls of one kind.
pub struct Calls {
    /// The decisions.
    pub decisions: Vec<Decision>,
    /// The true time of each, µs.
    pub micros: Vec<f64>,
    /// The true time of NCCL's own choice, µs.
    pub own: f64,
}

impl Bench {
    /// A communicator in a world.
    pub fn new(cluster: &str, nodes: u32, world: u64) -> Self {
        let cluster = Cluster::load(cluster).unwrap();
        let world = World::draw(&ConstantsFile::load("full").unwrap(), world);
        let options = CommOptions::default();
        Bench {
            asking: Asking::new(&cluster, nodes, &options, Shown::NOTHING).unwrap(),
            simulator: Simulator::new(&cluster, nodes, &options, &world).unwrap(),
        }
    }

    /// The true time of the fastest setting of a call, µs.
    pub fn best(&self, (collective, bytes): (Collective, u64)) -> f64 {
        self.simulator.best(collective, bytes).expect("a tuned call").micros
    }

    /// Asks about a call of a kind: the query, and the true time of knobs.
    pub fn ask<R>(
        &self,
        (collective, bytes): (Collective, u64),
        ask: impl FnOnce(&Query<'_>, &dyn Fn(&Knobs) -> f64) -> R,
    ) -> R {
        let asked = self.asking.call(collective, bytes, 1);
        let micros = |knobs: &Knobs| {
            let realised = self.asking.realise(&asked, knobs).expect("tuners choose what is available");
            self.simulator.micros(collective, bytes, &realised)
        };
        ask(&self.asking.query(&asked), &micros)
    }

    /// Makes `count` calls of a kind with a tuner that is told what each took, or nothing.
    pub fn calls(&self, tuner: &mut dyn Tuner, call: (Collective, u64), count: usize, told: bool) -> Calls {
        let mut noise = Random::of(call.1, call.0.id() as u64);
        self.ask(call, |query, micros| {
            let mut calls = Calls { decisions: Vec::new(), micros: Vec::new(), own: micros(&query.own()) };
            for _ in 0..count {
                let mut measured = |knobs: &Knobs| micros(knobs) * exp(JITTER * noise.normal());
                let decision = tuner.decide(query, &mut |knobs| told.then(|| measured(knobs)));
                if told {
                    let micros = measured(&decision.knobs);
                    tuner.learn(query, &Measured { knobs: decision.knobs, micros });
                }
                let took = micros(&decision.knobs);
                calls.decisions.push(decision);
                calls.micros.push(took);
            }
            calls
        })
    }
}
