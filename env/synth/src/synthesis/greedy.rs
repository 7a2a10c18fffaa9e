//! Link–chunk matching in time-expanded steps: whenever a link is free, it takes a chunk that its beginning
//! has and its end neither has nor is getting. Chunks are bits, so that a match is a few words.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::belief::Belief;
use super::{Assume, Recipe, Spread, Task};
use crate::bits::{Bits, first_from};
use crate::error::SynthError;
use crate::machine::Machine;
use crate::sketch::Sketch;
use crate::stop::Stop;

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Links that waited for a step to begin may start.
    Step,
    /// A link is free again.
    Free(u32),
    /// A chunk has come over a link.
    Arrived { link: u32, chunk: u32 },
}

/// Spreads every chunk from its owner to all ranks.
pub fn spread(
    stop: Stop<'_>,
    machine: &Machine,
    sketch: &Sketch,
    belief: &Belief,
    task: &Task,
    recipe: &Recipe,
) -> Result<Vec<Spread>, SynthError> {
    let mut matching = Matching::new(machine, belief, task, recipe);
    matching.run(stop)?;
    let all = task.total() as usize;
    match (0..task.ranks as usize).find(|&rank| matching.have.count(rank) < all) {
        None => Ok(matching.sends),
        Some(rank) => {
            let chunk = (0..all).find(|&chunk| !matching.have.has(rank, chunk)).unwrap_or(0) as u32;
            Err(SynthError::Unreached { sketch: sketch.name.clone(), rank: rank as u32, chunk })
        }
    }
}

struct Matching<'a> {
    machine: &'a Machine,
    belief: &'a Belief,
    local: bool,
    /// Whether links between nodes start in step with each other.
    in_step: bool,
    deferred: Vec<u32>,
    next_step: u64,
    total: usize,
    words: usize,
    /// Chunks that a rank has; has or is getting; that some rank of a node has or is getting.
    have: Bits,
    coming: Bits,
    in_node: Bits,
    /// Links out of a rank.
    out: Vec<Vec<u32>>,
    /// Whether a link, or something shared, is busy.
    busy: Vec<bool>,
    shared_busy: Vec<bool>,
    /// Links that wait for something shared, and whether each waits for that or for a step.
    waiting: Vec<Vec<u32>>,
    waits: Vec<bool>,
    /// Nodes that have a chunk or are getting it.
    copies: Vec<u32>,
    /// Links to look at now, and whether each is among them.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    random: ChaCha8Rng,
    now: u64,
    sends: Vec<Spread>,
}

impl<'a> Matching<'a> {
    fn new(machine: &'a Machine, belief: &'a Belief, task: &Task, recipe: &Recipe) -> Self {
        let (ranks, total) = (task.ranks as usize, task.total() as usize);
        let mut have = Bits::new(ranks, total);
        let mut in_node = Bits::new(machine.nodes(), total);
        for chunk in 0..task.total() {
            have.set(task.owner(chunk) as usize, chunk as usize);
            in_node.set(machine.node(task.owner(chunk)) as usize, chunk as usize);
        }
        Matching {
            machine,
            belief,
            local: recipe.local,
            in_step: recipe.assume == Assume::Nic,
            deferred: Vec::new(),
            next_step: 0,
            total,
            words: total.div_ceil(64),
            coming: have.clone(),
            have,
            in_node,
            out: belief.out(task.ranks),
            busy: vec![false; belief.links.len()],
            shared_busy: vec![false; belief.shared],
            waiting: vec![Vec::new(); belief.shared],
            waits: vec![false; belief.links.len()],
            copies: vec![1; total],
            dirty: (0..belief.links.len() as u32).collect(),
            is_dirty: vec![true; belief.links.len()],
            events: BinaryHeap::new(),
            random: ChaCha8Rng::seed_from_u64(recipe.seed),
            now: 0,
            sends: Vec::with_capacity(total * ranks),
        }
    }

    fn run(&mut self, stop: Stop<'_>) -> Result<(), SynthError> {
        self.match_dirty();
        while let Some(Reverse((time, event))) = self.events.pop() {
            if stop() {
                return Err(SynthError::Stopped);
            }
            self.now = time;
            self.happen(event);
            while let Some(&Reverse((next, event))) = self.events.peek().filter(|next| next.0.0 == time) {
                debug_assert_eq!(next, time);
                self.events.pop();
                self.happen(event);
            }
            self.match_dirty();
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step => {
                let mut deferred = std::mem::take(&mut self.deferred);
                for &link in &deferred {
                    self.waits[link as usize] = false;
                    self.mark(link);
                }
                deferred.clear();
                self.deferred = deferred;
            }
            Event::Free(link) => {
                self.busy[link as usize] = false;
                self.mark(link);
                for shared in self.belief.links[link as usize].shared.into_iter().flatten() {
                    self.shared_busy[shared as usize] = false;
                    let mut waiting = std::mem::take(&mut self.waiting[shared as usize]);
                    for &link in &waiting {
                        self.waits[link as usize] = false;
                        self.mark(link);
                    }
                    waiting.clear();
                    self.waiting[shared as usize] = waiting;
                }
            }
            Event::Arrived { link, chunk } => {
                let to = self.belief.links[link as usize].to as usize;
                self.have.set(to, chunk as usize);
                for place in 0..self.out[to].len() {
                    let link = self.out[to][place];
                    if !self.busy[link as usize] && !self.waits[link as usize] {
                        self.mark(link);
                    }
                }
            }
        }
    }

    #[inline]
    fn mark(&mut self, link: u32) {
        if !std::mem::replace(&mut self.is_dirty[link as usize], true) {
            self.dirty.push(link);
        }
    }

    /// Looks at every link that may have something to do, near ones first, in random order.
    fn match_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for last in (1..dirty.len()).rev() {
            let other = self.below(last + 1);
            dirty.swap(last, other);
        }
        for &link in dirty.iter().filter(|&&link| !self.belief.links[link as usize].remote) {
            self.is_dirty[link as usize] = false;
            self.match_link(link);
        }
        dirty.retain(|&link| self.belief.links[link as usize].remote);
        self.match_remote(&mut dirty);
        dirty.clear();
        self.dirty = dirty;
    }

    /// Looks at links between nodes. Where NICs are known to be shared, all start in step with each other and
    /// at one distance of nodes after the other, so that every distance gives each NIC exactly one partner.
    fn match_remote(&mut self, dirty: &mut [u32]) {
        if self.in_step && !dirty.is_empty() {
            let nodes = self.machine.nodes() as u32;
            let turn = self.below(nodes as usize) as u32;
            let distance = |link: &u32| {
                let link = &self.belief.links[*link as usize];
                self.machine.node(link.to) + nodes - self.machine.node(link.from)
            };
            dirty.sort_by_key(|link| (distance(link) + turn) % nodes);
        }
        for &link in dirty.iter() {
            self.is_dirty[link as usize] = false;
            let past = if self.in_step { self.now % self.belief.links[link as usize].busy } else { 0 };
            if past == 0 {
                self.match_link(link);
            } else {
                self.defer(link, self.now - past + self.belief.links[link as usize].busy);
            }
        }
    }

    /// Looks at a link again when the next step begins.
    fn defer(&mut self, link: u32, step: u64) {
        if self.deferred.is_empty() || self.next_step > step {
            self.next_step = step;
            self.events.push(Reverse((step, Event::Step)));
        }
        self.waits[link as usize] = true;
        self.deferred.push(link);
    }

    fn match_link(&mut self, number: u32) {
        let link = &self.belief.links[number as usize];
        if self.busy[number as usize] {
            return;
        }
        let taken = link.shared.into_iter().flatten().find(|&shared| self.shared_busy[shared as usize]);
        if let Some(shared) = taken {
            if !std::mem::replace(&mut self.waits[number as usize], true) {
                self.waiting[shared as usize].push(number);
            }
            return;
        }
        let Some(chunk) = self.pick(number) else { return };
        self.busy[number as usize] = true;
        for shared in link.shared.into_iter().flatten() {
            self.shared_busy[shared as usize] = true;
        }
        self.coming.set(link.to as usize, chunk);
        if link.remote {
            self.copies[chunk] += 1;
        }
        self.in_node.set(self.machine.node(link.to) as usize, chunk);
        let (free, chunk) = (self.now + link.busy, chunk as u32);
        self.events.push(Reverse((free, Event::Free(number))));
        self.events.push(Reverse((free + link.hop, Event::Arrived { link: number, chunk })));
        self.sends.push(Spread {
            start: self.now,
            end: free + link.hop,
            chunk,
            from: link.from,
            to: link.to,
        });
    }

    /// A random number below a count.
    fn below(&mut self, count: usize) -> usize {
        ((u64::from(self.random.next_u32()) * count as u64) >> 32) as usize
    }

    /// A chunk for a link: the first from a random place on; between nodes that know of NICs the one that
    /// fewest nodes have, so that none is left for the end.
    fn pick(&mut self, number: u32) -> Option<usize> {
        let start = self.below(self.total);
        let link = &self.belief.links[number as usize];
        let (have, coming) = (self.have.row(link.from as usize), self.coming.row(link.to as usize));
        if !link.remote || !self.local {
            return first_from(start, self.words, |word| have[word] & !coming[word]);
        }
        let node = self.in_node.row(self.machine.node(link.to) as usize);
        let new = |word: usize| have[word] & !coming[word] & !node[word];
        if !self.in_step {
            return first_from(start, self.words, new);
        }
        let mut rarest = None;
        let from = start / 64;
        for word in (from..self.words).chain(0..from) {
            let mut bits = new(word);
            while bits != 0 {
                let chunk = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if rarest.is_none_or(|(copies, _)| self.copies[chunk] < copies) {
                    rarest = Some((self.copies[chunk], chunk));
                }
            }
        }
        rarest.map(|(_, chunk)| chunk)
    }
}
