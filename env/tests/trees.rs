//! How NCCL's two trees get in each other's way while they fill, worked out instead of measured: every rank has one
//! thread that sends and receives for all channels in turn. Holds the first value of `hop.*.overlap`, which
//! public tables say little about, to that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dynamiccl_env::model::{Constants, ConstantsFile};

/// A rank's place in a tree: who is above it, and who is below.
#[derive(Clone, Default)]
struct Place {
    up: Option<usize>,
    down: Vec<usize>,
}

/// NCCL's binary tree: odd ranks are leaves, and a rank's lowest set bit is its height.
fn tree(ranks: usize) -> Vec<Place> {
    let mut places = vec![Place::default(); ranks];
    for rank in 1..ranks {
        let bit = 1 << rank.trailing_zeros();
        let above = (rank ^ bit) | (bit << 1);
        let up = if above < ranks { above } else { rank ^ bit };
        places[rank].up = Some(up);
        places[up].down.push(rank);
    }
    places
}

/// The second tree is the first one mirrored, or shifted by a rank where their number is odd.
fn second_tree(ranks: usize) -> Vec<Place> {
    let turned = |rank: usize| if ranks % 2 == 1 { (rank + 1) % ranks } else { ranks - 1 - rank };
    let first = tree(ranks);
    let mut places = vec![Place::default(); ranks];
    for (rank, place) in first.iter().enumerate() {
        places[turned(rank)] =
            Place { up: place.up.map(turned), down: place.down.iter().copied().map(turned).collect() };
    }
    places
}

/// What a thread has to do for one message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Send { to: usize, up: bool },
    Receive { up: bool },
}

/// µs until one chunk of every channel has been up and down its tree, where a thread needs `busy` µs for each message
/// and the message `wire` µs more.
fn filled(ranks: usize, channels: usize, busy: u64, wire: u64) -> u64 {
    let trees = [tree(ranks), second_tree(ranks)];
    let mut awaited: Vec<Vec<usize>> =
        (0..channels).map(|at| trees[at % 2].iter().map(|place| place.down.len()).collect()).collect();
    let mut queue = BinaryHeap::new();
    let mut arrivals = 0;
    let mut push = |queue: &mut BinaryHeap<_>, at: u64, rank: usize, channel: usize, work: Work| {
        arrivals += 1;
        queue.push(Reverse((at, arrivals, rank, channel, work)));
    };
    for channel in 0..channels {
        for (rank, place) in trees[channel % 2].iter().enumerate().filter(|(_, place)| place.down.is_empty())
        {
            let to = place.up.expect("a leaf has a parent");
            push(&mut queue, 0, rank, channel, Work::Send { to, up: true });
        }
    }
    let mut free = vec![0; ranks];
    let mut last = 0;
    while let Some(Reverse((at, _, rank, channel, work))) = queue.pop() {
        let done = at.max(free[rank]) + busy;
        free[rank] = done;
        let place = &trees[channel % 2][rank];
        match work {
            Work::Send { to, up } => push(&mut queue, done + wire, to, channel, Work::Receive { up }),
            Work::Receive { up } => {
                last = last.max(done);
                if up {
                    awaited[channel][rank] -= 1;
                }
                match place.up {
                    _ if awaited[channel][rank] > 0 => {}
                    Some(to) if up => push(&mut queue, done, rank, channel, Work::Send { to, up }),
                    _ => place.down.iter().for_each(|&to| {
                        push(&mut queue, done, rank, channel, Work::Send { to, up: false });
                    }),
                }
            }
        }
    }
    last
}

/// By how much of its own time every further channel delays the first, over rank counts and wires.
fn overlaps(channels: usize) -> Vec<f64> {
    let cases = (2..=32).flat_map(|ranks| [0, 12, 24, 48].map(|wire| (ranks, wire)));
    cases
        .map(|(ranks, wire)| {
            let [all, one] = [channels, 1].map(|channels| filled(ranks, channels, 24, wire) as f64);
            (all / one - 1.0) / (channels - 1) as f64
        })
        .collect()
}

#[test]
fn a_tree_of_two_hosts_takes_four_messages_in_a_row() {
    assert_eq!(filled(2, 1, 24, 6), 2 * (24 + 6 + 24));
}

#[test]
fn a_rank_inside_one_tree_is_a_leaf_of_the_other() {
    for ranks in (4..=64).step_by(2) {
        let (first, second) = (tree(ranks), second_tree(ranks));
        let inside = (0..ranks).filter(|&rank| first[rank].down.len() > 1 && second[rank].down.len() > 1);
        assert_eq!(inside.count(), 0, "{ranks} ranks");
    }
}

#[test]
fn two_trees_fill_side_by_side_and_four_channels_wait_as_the_constants_say() {
    let two = overlaps(2).into_iter().fold(0.0, f64::max);
    assert!(two < 0.05, "{two}");
    let four = overlaps(4);
    let four = four.iter().sum::<f64>() / four.len() as f64;
    let start: ConstantsFile =
        toml::from_str(include_str!("../examples/fit_constants/start.toml")).expect("constants");
    let start: Constants = start.nominal();
    assert!((four - start.hop.tcp.overlap).abs() < 0.02, "{four} against {}", start.hop.tcp.overlap);
}
