//! TuCCL's pruning in three stages: bind GPUs to NICs, group NICs over nodes, connect the bound GPUs.

use super::Mode;
use crate::machine::{Machine, Place};

/// Most nodes that a rank has connections to; beyond it the nodes form a graph of powers of two.
const MOST_NODES: usize = 16;

/// Stage 1: the NIC of each rank. The nearest by PCIe, of those the one with fewest ranks.
pub fn bind(machine: &Machine) -> Vec<Option<u32>> {
    let mut load = vec![0_u32; machine.nics.len()];
    let nic_of = machine.gpus.iter().map(|gpu| {
        let nearness = |nic: u32| common(&gpu.place, &machine.nics[nic as usize].place);
        let best =
            machine.nics_of(gpu.node).map(|nic| (usize::MAX - nearness(nic), load[nic as usize], nic)).min();
        best.map(|(_, _, nic)| {
            load[nic as usize] += 1;
            nic
        })
    });
    nic_of.collect()
}

fn common(a: &Place, b: &Place) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Stage 2: NICs of different nodes that belong together: each node's i-th fastest.
fn groups(machine: &Machine) -> Vec<Vec<u32>> {
    let sorted = (0..machine.nodes() as u32).map(|node| {
        let mut nics: Vec<u32> = machine.nics_of(node).collect();
        nics.sort_by(|&a, &b| {
            machine.nics[b as usize].rate.total_cmp(&machine.nics[a as usize].rate).then(a.cmp(&b))
        });
        nics
    });
    let sorted: Vec<Vec<u32>> = sorted.collect();
    let most = sorted.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).map(|i| sorted.iter().filter_map(|nics| nics.get(i).copied()).collect()).collect()
}

/// Stage 3: connections between nodes.
pub fn remote_links(machine: &Machine, mode: Mode, nic_of: &[Option<u32>]) -> Vec<(u32, u32)> {
    let ranks = 0..machine.ranks() as u32;
    if mode == Mode::Full {
        let apart = |from: u32| {
            ranks.clone().filter(move |&to| !machine.together(from, to)).map(move |to| (from, to))
        };
        return ranks.clone().flat_map(apart).collect();
    }
    let bound =
        |nic: u32| ranks.clone().filter(|&rank| nic_of[rank as usize] == Some(nic)).collect::<Vec<_>>();
    let mut links = Vec::new();
    for group in groups(machine) {
        // A NIC that no rank is bound to carries nothing.
        let group: Vec<Vec<u32>> = group.into_iter().map(bound).filter(|ranks| !ranks.is_empty()).collect();
        for (i, from) in group.iter().enumerate() {
            for to in neighbours(i, group.len()).map(|j| &group[j]) {
                links.extend(joined(mode, from, to));
            }
        }
    }
    links
}

/// The places of a group that a place has connections to.
fn neighbours(place: usize, count: usize) -> impl Iterator<Item = usize> {
    let all = 1..count;
    let powers = (0..usize::BITS).map(|bit| 1 << bit).take_while(move |&step| step < count);
    let both = powers.flat_map(move |step| [step, count - step]);
    let steps: Vec<usize> = if count > MOST_NODES + 1 { both.collect() } else { all.collect() };
    steps.into_iter().map(move |step| (place + step) % count)
}

fn joined(mode: Mode, from: &[u32], to: &[u32]) -> Vec<(u32, u32)> {
    match mode {
        Mode::Full | Mode::All => from.iter().flat_map(|&u| to.iter().map(move |&v| (u, v))).collect(),
        // The side with fewer ranks takes several of the other's, so that every rank has a way in and out.
        Mode::Pair => {
            let most = from.len().max(to.len());
            (0..most).map(|i| (from[i % from.len()], to[i % to.len()])).collect()
        }
        Mode::Relay => vec![(from[0], to[to.len() - 1])],
    }
}
