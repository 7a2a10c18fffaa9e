//! The schedules of machines as an environment asks for them: times by collective and size.
//!
//! A time is worked out when it is first asked for and kept; between sizes it is interpolated, so that a question
//! costs next to nothing. The same question has the same answer to the bit, whoever asked first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dynamiccl_env::cluster::{Cluster, InterLink};
use dynamiccl_env::schedules::{Scheduled, Schedules, Timetable};
use dynamiccl_spec::Collective;
use dynamiccl_spec::math::{exp, ln};

use crate::machine::Machine;
use crate::plan::{Choice, best};

/// Most ranks of a machine for which schedules are made.
pub const MOST_RANKS: u32 = 64;
/// The smallest size that is worked out, as a power of two: below it, only latency counts.
const SMALLEST: u32 = 10;
/// Powers of two from one size to the next.
const STEP: u32 = 2;
/// Sizes: 1 KiB to 4 GiB.
const SIZES: usize = 12;

/// Machines that somebody has asked about.
#[derive(Debug, Default)]
pub struct Library {
    known: Mutex<HashMap<Shape, Vec<Shelf>>>,
}

/// The name of a cluster, nodes, and ranks per node.
type Shape = (String, u32, u32);
/// A cluster of that name, and its schedules where it has any.
type Shelf = (Cluster, Option<Arc<Times>>);

/// The schedules of one machine.
#[derive(Debug)]
struct Times {
    machine: Machine,
    choice: Choice,
    /// By collective, then by size.
    worked_out: Vec<OnceLock<Option<Scheduled>>>,
}

impl Library {
    /// One in which nothing is worked out yet.
    pub fn new() -> Self {
        Library::default()
    }

    fn shelf(&self, cluster: &Cluster, nodes: u32, ranks_per_node: u32) -> Option<Arc<Times>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = known.entry((cluster.name.clone(), nodes, ranks_per_node)).or_default();
        if let Some((_, times)) = alike.iter().find(|(other, _)| other == cluster) {
            return times.clone();
        }
        let times = Times::new(cluster, nodes, ranks_per_node).map(Arc::new);
        alike.push((cluster.clone(), times.clone()));
        times
    }
}

impl Schedules for Library {
    fn of(&self, cluster: &Cluster, nodes: u32, ranks_per_node: u32) -> Option<Arc<dyn Timetable>> {
        self.shelf(cluster, nodes, ranks_per_node).map(|times| times as Arc<dyn Timetable>)
    }
}

impl Times {
    /// The schedules of a machine; none where it is too large, or where its network is not one of links.
    fn new(cluster: &Cluster, nodes: u32, ranks_per_node: u32) -> Option<Self> {
        let links = cluster.inter.as_ref().filter(|_| nodes > 1).map(|inter| inter.link);
        // What moves through the memory of one host is bound by its CPUs, of which the executor knows nothing.
        let hosted = matches!(links, Some(InterLink::TcpLoopback | InterLink::TcpVeth));
        let few = u64::from(nodes) * u64::from(ranks_per_node) <= u64::from(MOST_RANKS);
        if hosted || !few {
            return None;
        }
        let machine = Machine::from_cluster(cluster, nodes, ranks_per_node).ok()?;
        let choice = Choice::brief(&machine);
        let worked_out = vec![OnceLock::new(); Collective::TUNED.len() * SIZES];
        Some(Times { machine, choice, worked_out })
    }

    fn point(&self, collective: usize, size: usize) -> Option<Scheduled> {
        let work_out = || {
            let bytes = 1 << (SMALLEST + STEP * size as u32);
            let plan = best(&self.machine, Collective::TUNED[collective], bytes, &self.choice).ok()?;
            Some(Scheduled { micros: plan.micros, protocol: plan.backend.protocol })
        };
        *self.worked_out[collective * SIZES + size].get_or_init(work_out)
    }
}

impl Timetable for Times {
    fn at(&self, collective: Collective, bytes: u64) -> Option<Scheduled> {
        let collective = Collective::TUNED.iter().position(|&tuned| tuned == collective)?;
        let octave = bytes.max(1).ilog2();
        let size = (octave.saturating_sub(SMALLEST) / STEP) as usize;
        if octave < SMALLEST {
            return self.point(collective, 0);
        }
        if size + 1 >= SIZES {
            // Beyond, only rates count.
            let last = self.point(collective, SIZES - 1)?;
            let largest = (1_u64 << (SMALLEST + STEP * (SIZES as u32 - 1))) as f64;
            return Some(Scheduled { micros: last.micros * (bytes as f64 / largest), ..last });
        }
        let low = self.point(collective, size)?;
        let lower = 1_u64 << (SMALLEST + STEP * size as u32);
        if bytes == lower {
            return Some(low);
        }
        let high = self.point(collective, size + 1)?;
        let share = ln(bytes as f64 / lower as f64) / ln(f64::from(1 << STEP));
        let log = ln(low.micros);
        Some(Scheduled { micros: exp(log + share * (ln(high.micros) - log)), ..low })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(name: &str, nodes: u32) -> Option<Arc<dyn Timetable>> {
        let cluster = Cluster::load(name).unwrap();
        Library::new().of(&cluster, nodes, cluster.gpus_per_node)
    }

    #[test]
    fn times_are_the_executors_where_they_are_worked_out_and_between_their_neighbours_elsewhere() {
        let cluster = Cluster::load("dgx_a100").unwrap();
        let times = on("dgx_a100", 1).unwrap();
        let at = |bytes| times.at(Collective::AllGather, bytes).unwrap().micros;
        let machine = Machine::from_cluster(&cluster, 1, 8).unwrap();
        let usual = Choice::usual(&machine);
        let executor = |bytes| best(&machine, Collective::AllGather, bytes, &usual).unwrap().micros;
        assert_eq!(at(1 << 20), executor(1 << 20));
        assert_eq!(at(1), at(1 << 10));
        assert!((at(1 << 20)..at(1 << 22)).contains(&at(3 << 20)));
        assert!((at(2 << 20) / (at(1 << 20) * at(1 << 22)).sqrt() - 1.0).abs() < 1e-9);
        assert!((at(1 << 34) / at(1 << 32) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn who_asks_first_changes_nothing_and_machines_are_kept() {
        let cluster = Cluster::load("dgx1_v100").unwrap();
        let [one, other] = [Library::new(), Library::new()];
        let sizes = [1 << 12, 5 << 20, 1 << 16];
        let asked = |library: &Library, sizes: &mut dyn Iterator<Item = u64>| -> Vec<(u64, u64)> {
            let times = library.of(&cluster, 1, 8).unwrap();
            let mut found: Vec<(u64, u64)> = sizes
                .map(|bytes| (bytes, times.at(Collective::AllReduce, bytes).unwrap().micros.to_bits()))
                .collect();
            found.sort_unstable();
            found
        };
        assert_eq!(asked(&one, &mut sizes.into_iter()), asked(&other, &mut sizes.into_iter().rev()));
        let again = one.shelf(&cluster, 1, 8).unwrap();
        assert!(Arc::ptr_eq(&again, &one.shelf(&cluster, 1, 8).unwrap()));
        let mut slower = cluster.clone();
        slower.intra.bandwidth /= 2.0;
        assert!(!Arc::ptr_eq(&again, &one.shelf(&slower, 1, 8).unwrap()));
    }

    #[test]
    fn large_machines_and_networks_within_a_host_have_none() {
        assert!(on("dgx_h100", 8).is_some() && on("dgx_h100", 16).is_none());
        assert!(on("h200_shared", 2).is_none());
        let few = on("dgx_a100", 1).unwrap();
        assert!(few.at(Collective::SendRecv, 1 << 20).is_none());
    }
}
