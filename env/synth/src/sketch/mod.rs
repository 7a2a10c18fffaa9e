//! A sketch: which connections a synthesizer may use, and which NIC each rank's traffic takes.
//!
//! A synthesizer that gives every connection its full rate sends each chunk over a shared NIC once for every
//! GPU behind it; a sketch without the redundant connections keeps it from doing so (TuCCL, section III-B).

mod file;
mod prune;

use dynamiccl_spec::words::word_enum;

use crate::machine::Machine;

word_enum! {
    /// Which connections between nodes a sketch keeps.
    Mode, "sketch", {
        /// Every rank with every other.
        Full => "full",
        /// All ranks on NICs of one group with each other.
        All => "all",
        /// The i-th rank of a NIC with the i-th rank of the other NICs of its group.
        Pair => "pair",
        /// One rank of a NIC sends, another receives.
        Relay => "relay",
    }
}

/// Connections and NICs.
#[derive(Debug, Clone, PartialEq)]
pub struct Sketch {
    /// What it is called.
    pub name: String,
    /// How it was made.
    pub mode: Mode,
    /// Connections, in order.
    pub links: Vec<(u32, u32)>,
    /// The NIC of each rank; none where a node has none.
    pub nic_of: Vec<Option<u32>>,
}

impl Sketch {
    /// The sketch of a machine.
    pub fn new(machine: &Machine, mode: Mode) -> Sketch {
        let nic_of = prune::bind(machine);
        let mut links = machine.local_links();
        links.extend(prune::remote_links(machine, mode, &nic_of));
        links.sort_unstable();
        links.dedup();
        Sketch { name: mode.name().to_owned(), mode, links, nic_of }
    }

    /// The same with every connection turned round.
    pub fn reversed(&self) -> Sketch {
        let mut links: Vec<_> = self.links.iter().map(|&(from, to)| (to, from)).collect();
        links.sort_unstable();
        Sketch { name: self.name.clone(), mode: self.mode, links, nic_of: self.nic_of.clone() }
    }

    /// Whether it has a connection.
    pub fn has(&self, from: u32, to: u32) -> bool {
        self.links.binary_search(&(from, to)).is_ok()
    }

    /// What one connection carries alone, GB/s.
    pub fn rate(&self, machine: &Machine, from: u32, to: u32) -> f64 {
        if machine.together(from, to) {
            return machine.local_rate(from, to);
        }
        let nic = |rank: u32| self.nic_of[rank as usize].map_or(0.0, |nic| machine.nics[nic as usize].rate);
        nic(from).min(nic(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_env::cluster::Cluster;

    fn sketch(cluster: &str, nodes: u32, mode: Mode) -> (Machine, Sketch) {
        let cluster = Cluster::load(cluster).unwrap();
        let machine = Machine::from_cluster(&cluster, nodes, cluster.gpus_per_node).unwrap();
        let sketch = Sketch::new(&machine, mode);
        (machine, sketch)
    }

    fn remote(machine: &Machine, sketch: &Sketch) -> Vec<(u32, u32)> {
        sketch.links.iter().copied().filter(|&(from, to)| !machine.together(from, to)).collect()
    }

    #[test]
    fn modes_keep_ever_fewer_connections_between_nodes() {
        let count = |mode| {
            let (machine, sketch) = sketch("aws_p4d", 2, mode);
            remote(&machine, &sketch).len()
        };
        // 8 GPUs on 4 NICs in each of two nodes.
        assert_eq!([Mode::Full, Mode::All, Mode::Pair, Mode::Relay].map(count), [128, 32, 16, 8]);
    }

    #[test]
    fn gpus_take_the_nic_of_their_switch() {
        let (machine, sketch) = sketch("aws_p4d", 2, Mode::Pair);
        for (gpu, nic) in machine.gpus.iter().zip(&sketch.nic_of) {
            let nic = &machine.nics[nic.unwrap() as usize];
            assert_eq!((nic.node, nic.place.as_slice()), (gpu.node, gpu.place.as_slice()));
        }
    }

    #[test]
    fn many_nodes_keep_the_number_of_neighbours_small_and_everybody_reachable() {
        let (machine, sketch) = sketch("dgx_a100", 40, Mode::Pair);
        let mut neighbours = vec![0; machine.ranks()];
        remote(&machine, &sketch).iter().for_each(|&(from, _)| neighbours[from as usize] += 1);
        assert!(neighbours.iter().all(|&count| (2..=16).contains(&count)), "{neighbours:?}");
    }

    #[test]
    fn a_reversed_sketch_turned_again_is_the_same() {
        let (_, sketch) = sketch("aws_p4d", 3, Mode::Relay);
        assert_ne!(sketch.reversed(), sketch);
        assert_eq!(sketch.reversed().reversed(), sketch);
    }
}
