//! Small changes as long as they help: two GPUs trade places, a stretch is turned round, one GPU moves; where
//! there are several, two datacentres trade places. From several starts, of which the first is the usual ring.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::table::Table;
use crate::wan::arrangement::Work;
use crate::wan::{Network, Ring, Setting};
use crate::world::draw::shuffle;

/// Rings that the search starts from.
const STARTS: u64 = 4;

/// The best ring that was met, and its ms.
pub fn best(setting: &Setting, table: &mut Table, work: &mut Work) -> (Ring, f64) {
    let climbed = (0..STARTS).map(|start| {
        let mut climb = Climb { setting, table, work };
        climb.up(start_from(&setting.network, start))
    });
    let mut best = (Ring(Vec::new()), f64::INFINITY);
    for found in climbed {
        if found.1 < best.1 {
            best = found;
        }
    }
    best
}

/// The GPUs of each datacentre in an order that only depends on the number of the start.
fn start_from(network: &Network, start: u64) -> Parts {
    let mut rng = ChaCha8Rng::seed_from_u64(start);
    let mut parts: Parts = (0..network.datacentres().len())
        .map(|at| network.gpus_of(at).map(|gpu| gpu as u16).collect::<Vec<u16>>())
        .collect();
    if start > 0 {
        parts.iter_mut().for_each(|part| shuffle(part, &mut rng));
    }
    parts
}

/// GPUs by datacentre, in the order of the ring.
type Parts = Vec<Vec<u16>>;

fn joined(parts: &Parts) -> Ring {
    Ring(parts.concat())
}

/// One climb.
struct Climb<'a> {
    setting: &'a Setting,
    table: &'a mut Table,
    work: &'a mut Work,
}

impl Climb<'_> {
    fn up(&mut self, mut parts: Parts) -> (Ring, f64) {
        let mut ms = self.table.time(&joined(&parts), self.setting, self.work);
        while self.improve(&mut parts, &mut ms) {}
        (joined(&parts), ms)
    }

    /// Makes every change that helps, once; whether there was one.
    fn improve(&mut self, parts: &mut Parts, ms: &mut f64) -> bool {
        let before = *ms;
        for part in 0..parts.len() {
            for (one, other) in pairs(parts[part].len()) {
                for change in [swap, turn, shift] {
                    self.attempt(parts, ms, |parts| change(&mut parts[part], one, other));
                }
            }
        }
        // The first datacentre stays: a ring has no beginning.
        for (one, other) in pairs(parts.len()).filter(|&(one, other)| 0 < one && one < other) {
            self.attempt(parts, ms, |parts| parts.swap(one, other));
        }
        *ms < before
    }

    fn attempt(&mut self, parts: &mut Parts, ms: &mut f64, change: impl Fn(&mut Parts)) {
        let mut changed = parts.clone();
        change(&mut changed);
        // Half of the changes are none.
        if changed == *parts {
            return;
        }
        let ring = joined(&changed);
        if self.setting.schedule.total() * self.table.slowest_of(&ring) >= *ms {
            return;
        }
        let found = self.table.time(&ring, self.setting, self.work);
        if found < *ms {
            (*parts, *ms) = (changed, found);
        }
    }
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count)
        .flat_map(move |one| (0..count).filter(move |&other| other != one).map(move |other| (one, other)))
}

fn swap(part: &mut [u16], one: usize, other: usize) {
    if one < other {
        part.swap(one, other);
    }
}

fn turn(part: &mut [u16], one: usize, other: usize) {
    if one < other {
        part[one..=other].reverse();
    }
}

fn shift(part: &mut [u16], one: usize, other: usize) {
    if one < other {
        part[one..=other].rotate_left(1);
    } else {
        part[other..=one].rotate_right(1);
    }
}
