//! Synthesised schedules on one communicator: which calls have one, what it is predicted to take, and what it
//! really takes in a world.
//!
//! A schedule runs over the same links as NCCL's ring. So whatever a world does to the ring (constants, load,
//! drift, neighbours, wiring), beyond what a launch costs, it does to the schedule; the launch is the world's own.

use std::sync::Arc;

use dynamiccl_spec::{Algorithm, Collective, CostTable, Knobs, Pair, Protocol};

use crate::cluster::Cluster;
use crate::model::{Call, Constants, Fabric};
use crate::nccl::{Communicator, Realised};
use crate::schedules::{Scheduled, Schedules, Timetable};
use crate::sim::Simulator;

/// The least that a ring is taken to spend on its links, µs: a ratio of two times must not be one of roundings.
const LEAST: f64 = 0.1;

/// Who makes schedules for a runtime that is there, and the constants that everybody knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Making<'a> {
    /// Who makes them.
    pub schedules: &'a dyn Schedules,
    /// The model's constants as they are.
    pub constants: &'a Constants,
}

/// The schedules of one communicator.
#[derive(Debug, Clone)]
pub(crate) struct Carrier {
    timetable: Arc<dyn Timetable>,
    /// The links with nominal constants, calm and with nothing beside.
    nominal: Fabric,
}

/// The schedule of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Offer {
    scheduled: Scheduled,
    /// NCCL's ring for the same call.
    ring: Realised,
    /// µs that it spends on nominal links.
    nominal: f64,
    /// µs that the schedule is predicted to take, launch included.
    pub predicted: f32,
}

impl Carrier {
    /// The schedules of a communicator of a cluster; none where nobody makes any.
    pub fn new(making: &Making<'_>, cluster: &Cluster, communicator: &Communicator) -> Option<Self> {
        let (nodes, local) = (communicator.nodes(), communicator.ranks_per_node());
        let timetable = making.schedules.of(cluster, nodes, local)?;
        let nominal = Fabric::new(cluster, nodes, local, communicator.nvls_heads(), making.constants);
        Some(Carrier { timetable, nominal })
    }

    /// The schedule of a call that NCCL would launch by itself; none where there is none. Several operations in one
    /// launch are NCCL's alone.
    pub fn offer(
        &self,
        communicator: &Communicator,
        table: &CostTable,
        collective: Collective,
        bytes: u64,
        pipelined: u32,
    ) -> Option<Offer> {
        if pipelined > 1 || bytes == 0 {
            return None;
        }
        let ring = communicator.realise(collective, bytes, table, &ring(table)?)?;
        let scheduled = self.timetable.at(collective, bytes)?;
        let nominal = spent(&self.nominal, self.nominal.time(&Call::of(collective, bytes, &ring)), &ring);
        let predicted = (launch(&self.nominal, scheduled.protocol) + scheduled.micros) as f32;
        Some(Offer { scheduled, ring, nominal, predicted })
    }
}

impl Offer {
    /// The true time of the schedule on these links.
    pub fn micros(&self, simulator: &Simulator, fabric: &Fabric, collective: Collective, bytes: u64) -> f64 {
        let ring = simulator.micros_of(fabric, &Call::of(collective, bytes, &self.ring));
        let slower = spent(fabric, ring, &self.ring) / self.nominal;
        launch(fabric, self.scheduled.protocol) + self.scheduled.micros * slower
    }
}

/// NCCL's ring in the protocol that NCCL predicts to be the fastest.
fn ring(table: &CostTable) -> Option<Knobs> {
    let rings = Protocol::ALL.iter().map(|&protocol| Pair::new(Algorithm::Ring, protocol));
    let known = rings.filter_map(|pair| Some((pair, table.get(pair)?)));
    let fastest = known.reduce(|best, other| if other.1 < best.1 { other } else { best })?;
    Some(Knobs { pair: Some(fastest.0), ..Knobs::OWN })
}

/// µs that a ring spends beyond its launch.
fn spent(fabric: &Fabric, micros: f64, ring: &Realised) -> f64 {
    (micros - launch(fabric, ring.pair.protocol)).max(LEAST)
}

/// µs from a launch to the first poll.
fn launch(fabric: &Fabric, protocol: Protocol) -> f64 {
    fabric.call.launch[protocol.id()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::CommOptions;
    use crate::model::{Conditions, ConstantsFile};
    use crate::world::World;

    /// The same for every call but one.
    #[derive(Debug)]
    struct Flat(f64);

    impl Timetable for Flat {
        fn at(&self, collective: Collective, _: u64) -> Option<Scheduled> {
            let there = collective != Collective::Reduce;
            there.then_some(Scheduled { micros: self.0, protocol: Protocol::LL })
        }
    }

    impl Schedules for Flat {
        fn of(&self, _: &Cluster, nodes: u32, _: u32) -> Option<Arc<dyn Timetable>> {
            (nodes < 8).then(|| Arc::new(Flat(self.0)) as Arc<dyn Timetable>)
        }
    }

    fn on(nodes: u32, world: &World) -> (Simulator, Option<Carrier>) {
        let cluster = Cluster::load("dgx_a100").unwrap();
        let simulator = Simulator::new(&cluster, nodes, &CommOptions::default(), world).unwrap();
        let constants = ConstantsFile::full().nominal();
        let making = Making { schedules: &Flat(500.0), constants: &constants };
        let carrier = Carrier::new(&making, &cluster, simulator.communicator());
        (simulator, carrier)
    }

    fn offer(
        simulator: &Simulator,
        carrier: &Carrier,
        collective: Collective,
        pipelined: u32,
    ) -> Option<Offer> {
        let communicator = simulator.communicator();
        let table = communicator.cost_table(collective, 1 << 26, pipelined);
        carrier.offer(communicator, &table, collective, 1 << 26, pipelined)
    }

    #[test]
    fn in_the_nominal_world_a_schedule_takes_what_is_predicted() {
        let (simulator, carrier) = on(2, &World::nominal(&ConstantsFile::full()));
        let offer = offer(&simulator, &carrier.unwrap(), Collective::AllGather, 1).unwrap();
        let micros = offer.micros(&simulator, simulator.fabric(), Collective::AllGather, 1 << 26);
        assert_eq!(micros as f32, offer.predicted);
        assert!((505.0..507.0).contains(&micros), "{micros}");
    }

    #[test]
    fn load_slows_it_as_it_slows_the_ring_and_a_world_has_its_own_launch() {
        let world = World::draw(&ConstantsFile::full(), 5);
        let (simulator, carrier) = on(2, &world);
        let offer = offer(&simulator, &carrier.unwrap(), Collective::AllGather, 1).unwrap();
        let of = |conditions: &Conditions| {
            let fabric = simulator.fabric().under(conditions);
            let ring = simulator.micros_of(&fabric, &Call::of(Collective::AllGather, 1 << 26, &offer.ring));
            let schedule = offer.micros(&simulator, &fabric, Collective::AllGather, 1 << 26);
            (ring - launch(&fabric, offer.ring.pair.protocol), schedule - launch(&fabric, Protocol::LL))
        };
        let (calm, loaded) = (of(&Conditions::CALM), of(&Conditions { load: 0.5, ..Conditions::CALM }));
        assert!(loaded.0 > 1.5 * calm.0);
        assert!((loaded.1 / calm.1 - loaded.0 / calm.0).abs() < 1e-9);
        assert_ne!(launch(simulator.fabric(), Protocol::LL), 5.87);
    }

    #[test]
    fn there_is_none_for_other_machines_other_calls_and_grouped_launches() {
        let nominal = World::nominal(&ConstantsFile::full());
        assert!(on(8, &nominal).1.is_none());
        let (simulator, carrier) = on(2, &nominal);
        let carrier = carrier.unwrap();
        assert!(offer(&simulator, &carrier, Collective::Reduce, 1).is_none());
        assert!(offer(&simulator, &carrier, Collective::AllReduce, 2).is_none());
        assert!(offer(&simulator, &carrier, Collective::AllReduce, 1).is_some());
        let none = CostTable::default();
        assert!(carrier.offer(simulator.communicator(), &none, Collective::AllReduce, 1 << 20, 1).is_none());
    }
}
