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
    let ways = ways_in(machine);
    let share = if collective.is_rooted() { 1.0 } else { (ranks - 1.0) / ranks };
    let once = most.max(through(share, ways));
    if collective == Collective::AllReduce { 2.0 * once } else { once }
}

/// GB/s of all ways into a GPU: from its node over its links, from others over its PCIe port.
fn ways_in(machine: &Machine) -> f64 {
    match (machine.over_pcie, machine.nodes()) {
        (false, ..=1) => machine.port,
        (false, _) => machine.port + machine.pcie,
        (true, ..=1) => machine.port.min(machine.pcie),
        // Everything passes the PCIe port; what comes from other nodes passes nothing else.
        (true, _) => machine.pcie,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, Mode, Recipe, synthesize};
    use dynamiccl_env::cluster::Cluster;

    const BYTES: u64 = 256 << 20;

    #[test]
    fn over_pcie_nobody_is_faster_either() {
        let cluster = Cluster::load("a40_8_pcie").unwrap();
        for (nodes, ranks, port) in [(2, 4, 0.5), (4, 1, 0.5), (2, 4, 2.0), (1, 4, 0.5), (1, 4, 2.0)] {
            let mut machine = Machine::from_cluster(&cluster, nodes, ranks).unwrap();
            assert!(machine.over_pcie);
            machine.port = port * machine.pcie;
            // NICs must not hide what the ports allow.
            machine.nics.iter_mut().for_each(|nic| nic.rate = 1e3);
            machine.rates.network_channel = 1e3;
            machine.rates.block = 1e3;
            for &collective in &Collective::TUNED {
                let bound = lower_bound(&machine, collective, BYTES);
                for recipe in [Recipe::AWARE, Recipe::DIRECT] {
                    let sketch = Sketch::new(&machine, Mode::Full);
                    let schedule = synthesize(&machine, &sketch, collective, BYTES, &recipe).unwrap();
                    let backend = Backend { channels: 16, ..Backend::default() };
                    let time = Executor::new(&machine, &sketch, &schedule).micros(BYTES, &backend);
                    assert!(time >= bound, "{nodes} x{ranks} {port} {collective}: {time} below {bound}");
                }
            }
        }
    }

    #[test]
    fn the_bound_over_pcie_is_that_of_what_everything_passes() {
        let cluster = Cluster::load("a40_8_pcie").unwrap();
        let ways = |nodes, port| {
            ways_in(&Machine { port, pcie: 20.0, ..Machine::from_cluster(&cluster, nodes, 4).unwrap() })
        };
        assert_eq!([ways(2, 5.0), ways(2, 50.0), ways(1, 5.0), ways(1, 50.0)], [20.0, 20.0, 5.0, 20.0]);
    }
}
