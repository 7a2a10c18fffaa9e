//! What no schedule can beat, and how much of the links a schedule uses.

use dynamiccl_spec::Collective;

use crate::connections::Resource;
use crate::execute::Executor;
use crate::machine::{BYTES_PER_US, Machine};
use crate::sketch::Sketch;

/// µs below which the collective cannot come: what must pass a node's NICs and a GPU's ports, at full rate.
///
/// Phases of an AllReduce follow each other, so their bounds add up. On one node the NICs do not count.
pub fn lower_bound(machine: &Machine, collective: Collective, bytes: u64) -> f64 {
    let bytes = bytes as f64;
    let ranks = machine.ranks() as f64;
    let through =
        |share: f64, rate: f64| if share > 0.0 { bytes * share / (rate * BYTES_PER_US) } else { 0.0 };
    let mut most: f64 = 0.0;
    for node in 0..machine.nodes() as u32 {
        let inside = machine.ranks_of(node).count() as f64 / ranks;
        let nics: f64 = machine.nics_of(node).map(|nic| machine.nics[nic as usize].rate).sum();
        let outside = if machine.nodes() > 1 { 1.0 - inside } else { 0.0 };
        let share = match collective {
            // Whoever is root, all of it must leave or enter some node that is not the root's.
            _ if outside == 0.0 => 0.0,
            Collective::Broadcast | Collective::Reduce => 1.0,
            // What comes from outside enters, what is inside leaves: two directions of one NIC.
            _ => outside.max(inside),
        };
        most = most.max(through(share, nics));
    }
    // A GPU's own ways in: its links and its PCIe port together.
    let ways = machine.port + if machine.over_pcie || machine.nodes() == 1 { 0.0 } else { machine.pcie };
    let share = if collective.is_rooted() { 1.0 } else { (ranks - 1.0) / ranks };
    let once = most.max(through(share, ways));
    if collective == Collective::AllReduce { 2.0 * once } else { once }
}

/// How much of the links' capacity × time a schedule uses, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilisation {
    /// Of all NICs, sending.
    pub nic: f64,
    /// Of the connections of the sketch, each alone at its full rate, on average.
    pub link: f64,
    /// Of the GPUs' links inside nodes, sending.
    pub port: f64,
}

/// The utilisation of a schedule that takes so many µs.
pub fn utilisation(
    machine: &Machine,
    sketch: &Sketch,
    run: &Executor<'_>,
    bytes: u64,
    micros: f64,
) -> Utilisation {
    let (mut nic, mut port) = (0.0, 0.0);
    for (resource, bytes) in run.loads(bytes) {
        match resource {
            Resource::NicOut(_) => nic += bytes,
            Resource::PortOut(_) => port += bytes,
            _ => {}
        }
    }
    let of = |bytes: f64, rate: f64| if rate > 0.0 { bytes / (rate * BYTES_PER_US * micros) } else { 0.0 };
    let links =
        run.connection_bytes(bytes).map(|(from, to, bytes)| of(bytes, sketch.rate(machine, from, to)));
    Utilisation {
        nic: of(nic, machine.nics.iter().map(|nic| nic.rate).sum()),
        link: links.sum::<f64>() / sketch.links.len().max(1) as f64,
        port: of(port, machine.port * machine.ranks() as f64),
    }
}
