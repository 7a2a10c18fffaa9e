//! The moments of one run: who moves at which rate, until when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Executor, Flow};
use crate::backend::Backend;
use crate::machine::BYTES_PER_US;
use crate::stop::{Stop, Turns};

/// µs within which events are one.
const TOGETHER: f64 = 1e-6;

/// Where a connection stands.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Its next entry: tile by tile, send by send.
    next: u32,
    state: State,
    /// Bytes left, and bytes per µs, since when.
    left: f64,
    rate: f64,
    since: f64,
    /// Counts changes, so that an event of an old rate is known as old.
    change: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its next send has not what it needs, or there is none.
    Idle,
    /// On the way to begin.
    Starting,
    /// Moves bytes.
    Moving,
}

/// One run of a schedule.
pub(super) struct Run<'a> {
    of: &'a Executor<'a>,
    wire_bytes: f64,
    tiles: usize,
    latency: [f64; 2],
    alone: Vec<f64>,
    lines: Vec<Line>,
    /// Needs not met yet, by tile and send.
    unmet: Vec<u16>,
    /// Moving connections on each resource.
    moving: Vec<Vec<u32>>,
    changed: Vec<u32>,
    is_changed: Vec<bool>,
    /// Time as ordered bits, connection, change.
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    now: f64,
    left_of_tile: Vec<usize>,
    /// When each tile was done.
    pub(super) finished: Vec<f64>,
    /// What has moved, where that is wanted.
    pub(super) flows: Option<Vec<Flow>>,
}

impl<'a> Run<'a> {
    /// A run of so many tiles of so many bytes each.
    pub(super) fn new(of: &'a Executor<'a>, backend: &Backend, wire_bytes: f64, tiles: usize) -> Self {
        let line = Line { next: 0, state: State::Idle, left: 0.0, rate: 0.0, since: 0.0, change: 0 };
        let (count, resources, sends) =
            (of.connections.all.len(), of.connections.rates.len(), of.needs.len());
        Run {
            of,
            wire_bytes,
            tiles,
            latency: of.latencies(backend),
            alone: of.alone(backend).collect(),
            lines: vec![line; count],
            unmet: of.needs.repeat(tiles),
            moving: vec![Vec::new(); resources],
            changed: Vec::new(),
            is_changed: vec![false; resources],
            events: BinaryHeap::new(),
            now: 0.0,
            left_of_tile: vec![sends; tiles],
            finished: vec![0.0; tiles],
            flows: None,
        }
    }

    /// Follows every send to its end; gives up, and says so, once that would be after the limit or it is to stop.
    pub(super) fn finish(&mut self, stop: Stop<'_>, limit: f64) -> bool {
        let mut turns = Turns::new(stop);
        for connection in 0..self.lines.len() {
            self.try_start(connection);
        }
        while let Some(Reverse(event)) = self.events.pop() {
            if self.lines[event.1 as usize].change != event.2 {
                continue;
            }
            self.now = f64::from_bits(event.0);
            if self.now > limit || turns.ends() {
                return false;
            }
            self.happen(event.1 as usize);
            while let Some(&Reverse(next)) = self.events.peek() {
                if f64::from_bits(next.0) > self.now + TOGETHER {
                    break;
                }
                self.events.pop();
                if self.lines[next.1 as usize].change == next.2 {
                    self.happen(next.1 as usize);
                }
            }
            self.share();
        }
        debug_assert!(self.left_of_tile.iter().all(|&left| left == 0), "every send is made");
        true
    }

    /// µs for each further tile, from the later half of those that were followed.
    pub(super) fn pace(&self) -> f64 {
        let half = self.tiles / 2;
        let before = if half == 0 { 0.0 } else { self.finished[half - 1] };
        (self.finished[self.tiles - 1] - before) / (self.tiles - half) as f64
    }

    /// The tile and the send that a connection is at.
    fn at(&self, connection: usize) -> Option<(usize, u32)> {
        let sends = &self.of.connections.all[connection].sends;
        let next = self.lines[connection].next as usize;
        let (tile, place) = (next / sends.len(), next % sends.len());
        (tile < self.tiles).then(|| (tile, sends[place]))
    }

    fn try_start(&mut self, connection: usize) {
        let Some((tile, send)) = self.at(connection) else { return };
        let idle = self.lines[connection].state == State::Idle;
        if idle && self.unmet[tile * self.of.needs.len() + send as usize] == 0 {
            self.lines[connection].state = State::Starting;
            let remote = self.of.connections.all[connection].remote;
            self.later(connection, self.now + self.latency[usize::from(remote)]);
        }
    }

    fn later(&mut self, connection: usize, time: f64) {
        let line = &mut self.lines[connection];
        line.change += 1;
        self.events.push(Reverse((time.to_bits(), connection as u32, line.change)));
    }

    fn happen(&mut self, connection: usize) {
        // What has happened has no event any more.
        self.lines[connection].change += 1;
        if self.lines[connection].state == State::Starting {
            let line = &mut self.lines[connection];
            (line.state, line.left, line.rate, line.since) = (State::Moving, self.wire_bytes, 0.0, self.now);
            for place in 0..self.of.connections.all[connection].resources.len() {
                let resource = self.of.connections.all[connection].resources[place];
                self.moving[resource as usize].push(connection as u32);
                self.mark(resource);
            }
            return;
        }
        self.note_flow(connection);
        for place in 0..self.of.connections.all[connection].resources.len() {
            let resource = self.of.connections.all[connection].resources[place];
            self.moving[resource as usize].retain(|&other| other != connection as u32);
            self.mark(resource);
        }
        let Some((tile, send)) = self.at(connection) else { return };
        self.lines[connection].state = State::Idle;
        self.lines[connection].next += 1;
        self.left_of_tile[tile] -= 1;
        self.finished[tile] = self.now;
        let sends = self.of.needs.len();
        for &user in &self.of.needed_by[send as usize] {
            let unmet = &mut self.unmet[tile * sends + user as usize];
            *unmet -= 1;
            if *unmet == 0 {
                self.try_start(self.of.connections.of_send[user as usize] as usize);
            }
        }
        self.try_start(connection);
    }

    fn mark(&mut self, resource: u32) {
        if !std::mem::replace(&mut self.is_changed[resource as usize], true) {
            self.changed.push(resource);
        }
    }

    /// Gives every connection on a resource that has changed its new share.
    fn share(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        for &resource in &changed {
            self.is_changed[resource as usize] = false;
            for place in 0..self.moving[resource as usize].len() {
                self.share_of(self.moving[resource as usize][place] as usize);
            }
        }
        self.changed = changed;
        self.changed.clear();
    }

    fn share_of(&mut self, connection: usize) {
        let mut rate = self.alone[connection];
        for &resource in &self.of.connections.all[connection].resources {
            let on_it = self.moving[resource as usize].len() as f64;
            rate = rate.min(self.of.connections.rates[resource as usize] / on_it);
        }
        let rate = rate * BYTES_PER_US;
        if rate == self.lines[connection].rate {
            return;
        }
        self.note_flow(connection);
        let line = &mut self.lines[connection];
        line.left = (line.left - line.rate * (self.now - line.since)).max(0.0);
        (line.rate, line.since) = (rate, self.now);
        let end = self.now + line.left / rate;
        self.later(connection, end);
    }

    /// Keeps what a connection has moved at its rate so far, where flows are wanted.
    fn note_flow(&mut self, connection: usize) {
        let line = self.lines[connection];
        let Some((_, send)) = self.at(connection) else { return };
        if let Some(flows) = self.flows.as_mut().filter(|_| line.rate > 0.0 && self.now > line.since) {
            let send = &self.of.schedule.sends[send as usize];
            let rate = line.rate / BYTES_PER_US;
            flows.push(Flow {
                from: send.from,
                to: send.to,
                chunk: send.chunk,
                start: line.since,
                end: self.now,
                rate,
            });
        }
    }
}
