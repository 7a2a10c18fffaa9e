//! The connections that a schedule uses, and the resources of the machine that each shares with others.

use std::collections::HashMap;

use crate::machine::{Machine, Wiring};
use crate::schedule::Schedule;
use crate::sketch::Sketch;
use crate::stop::{Stop, Turns};

/// Something of limited rate that several connections share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// A NIC, sending.
    NicOut(u32),
    /// A NIC, receiving.
    NicIn(u32),
    /// A GPU's PCIe port, towards NICs.
    PcieOut(u32),
    /// A GPU's PCIe port, from NICs.
    PcieIn(u32),
    /// A GPU's links into its node, sending.
    PortOut(u32),
    /// A GPU's links into its node, receiving.
    PortIn(u32),
    /// The links between two GPUs.
    Pair(u32, u32),
}

impl Resource {
    /// What it carries on a machine, GB/s.
    pub fn rate(self, machine: &Machine) -> f64 {
        match self {
            Resource::NicOut(nic) | Resource::NicIn(nic) => machine.nics[nic as usize].rate,
            Resource::PcieOut(_) | Resource::PcieIn(_) => machine.pcie,
            Resource::PortOut(_) | Resource::PortIn(_) => machine.port,
            Resource::Pair(from, to) => machine.local_rate(from, to),
        }
    }

    /// What the connection from one rank to another uses.
    pub fn of(machine: &Machine, sketch: &Sketch, from: u32, to: u32) -> Vec<Resource> {
        use Resource::{NicIn, NicOut, Pair, PcieIn, PcieOut, PortIn, PortOut};
        if machine.together(from, to) {
            return match machine.wiring {
                _ if machine.over_pcie => vec![PcieOut(from), PcieIn(to), PortOut(from), PortIn(to)],
                Wiring::Switched => vec![PortOut(from), PortIn(to)],
                Wiring::Pairs(_) => vec![PortOut(from), PortIn(to), Pair(from, to)],
            };
        }
        let nic = |rank: u32| sketch.nic_of[rank as usize];
        let out = nic(from).map(NicOut).into_iter().chain(nic(to).map(NicIn));
        out.chain([PcieOut(from), PcieIn(to)]).collect()
    }
}

/// One connection.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Who sends.
    pub from: u32,
    /// Who receives.
    pub to: u32,
    /// Whether it leaves the node.
    pub remote: bool,
    /// Its resources, as indices.
    pub resources: Vec<u32>,
    /// Its sends, in order.
    pub sends: Vec<u32>,
}

/// All connections of a schedule.
#[derive(Debug, Clone)]
pub struct Connections {
    /// The connections, in the order of their first send.
    pub all: Vec<Connection>,
    /// The connection of each send.
    pub of_send: Vec<u32>,
    /// The resources.
    pub resources: Vec<Resource>,
    /// What each carries, GB/s.
    pub rates: Vec<f64>,
}

impl Connections {
    /// The connections of a schedule on a machine; none where it is to stop.
    pub fn new(stop: Stop<'_>, machine: &Machine, sketch: &Sketch, schedule: &Schedule) -> Option<Self> {
        let mut turns = Turns::new(stop);
        let mut found =
            Connections { all: Vec::new(), of_send: Vec::new(), resources: Vec::new(), rates: Vec::new() };
        let (mut places, mut known) = (HashMap::new(), HashMap::new());
        for (send, number) in schedule.sends.iter().zip(0..) {
            if turns.ends() {
                return None;
            }
            let place = *places.entry((send.from, send.to)).or_insert_with(|| {
                let resources = Resource::of(machine, sketch, send.from, send.to);
                let resources = resources.into_iter().map(|resource| {
                    *known.entry(resource).or_insert_with(|| {
                        found.resources.push(resource);
                        found.rates.push(resource.rate(machine));
                        found.resources.len() as u32 - 1
                    })
                });
                found.all.push(Connection {
                    from: send.from,
                    to: send.to,
                    remote: !machine.together(send.from, send.to),
                    resources: resources.collect(),
                    sends: Vec::new(),
                });
                found.all.len() as u32 - 1
            });
            found.all[place as usize].sends.push(number);
            found.of_send.push(place);
        }
        Some(found)
    }
}
