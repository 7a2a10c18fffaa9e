//! What a schedule really takes: connections in flight share NICs, ports and links fairly, moment by moment.
//!
//! A connection carries its sends in order, tile after tile; a send waits for what its rank must have
//! received first. This is the truth that synthesizers only believe to know. Of many equal tiles the first
//! few are followed and the rest continued, never faster than any shared rate allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::backend::Backend;
use crate::connections::{Connections, Resource};
use crate::machine::{BYTES_PER_US, Machine};
use crate::schedule::Schedule;
use crate::sketch::Sketch;

/// Tiles that are followed.
pub const TILES: u32 = 4;
/// µs within which events are one.
const TOGETHER: f64 = 1e-6;

/// A schedule on a machine, ready to run with any backend.
#[derive(Debug, Clone)]
pub struct Executor<'a> {
    machine: &'a Machine,
    schedule: Schedule,
    connections: Connections,
    /// How many sends each needs, and which need it.
    needs: Vec<u16>,
    needed_by: Vec<Vec<u32>>,
    /// Thread blocks of the busiest GPU in one channel.
    blocks: usize,
}

/// A connection that moves bytes at one rate for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Who sends.
    pub from: u32,
    /// Who receives.
    pub to: u32,
    /// The chunk.
    pub chunk: u32,
    /// When it begins, µs.
    pub start: f64,
    /// When it ends, µs.
    pub end: f64,
    /// GB/s.
    pub rate: f64,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// µs from the first send to the last arrival.
    pub micros: f64,
    /// The flows of the tiles that were followed, where they were asked for.
    pub flows: Vec<Flow>,
}

impl<'a> Executor<'a> {
    /// Prepares a schedule.
    pub fn new(machine: &'a Machine, sketch: &Sketch, schedule: &Schedule) -> Self {
        let connections = Connections::new(machine, sketch, schedule);
        let needs = schedule.needs();
        let mut needed_by = vec![Vec::new(); needs.len()];
        for (needed, number) in needs.iter().zip(0_u32..) {
            needed.iter().for_each(|&send| needed_by[send as usize].push(number));
        }
        let mut ends = vec![0; machine.ranks()];
        for connection in &connections.all {
            ends[connection.from as usize] += 1;
            ends[connection.to as usize] += 1;
        }
        Executor {
            machine,
            schedule: schedule.clone(),
            connections,
            needs: needs.iter().map(|needed| needed.len() as u16).collect(),
            needed_by,
            // One block may carry both ends.
            blocks: ends.into_iter().max().unwrap_or(0_usize).div_ceil(2),
        }
    }

    /// µs of a collective of so many bytes.
    pub fn micros(&self, bytes: u64, backend: &Backend) -> f64 {
        self.run(bytes, backend, TILES, false).micros
    }

    /// Runs it, following so many tiles, with its flows where wanted.
    pub fn run(&self, bytes: u64, backend: &Backend, most_tiles: u32, flows: bool) -> Outcome {
        let chunk = self.schedule.chunk_bytes(bytes);
        let tiles = (chunk / f64::from(backend.channels) / backend.tile()).ceil().max(1.0);
        let followed = f64::from(most_tiles.max(1)).min(tiles);
        let mut run = Run::new(self, backend, chunk / tiles * backend.wire(), followed as usize);
        run.flows = flows.then(Vec::new);
        run.finish();
        let last = run.finished[run.finished.len() - 1];
        let rest = (tiles - followed) * run.pace();
        let wire = chunk * backend.wire();
        Outcome { micros: (last + rest).max(self.floor(wire, backend)), flows: run.flows.unwrap_or_default() }
    }

    /// GB/s of each connection alone.
    fn alone(&self, backend: &Backend) -> impl Iterator<Item = f64> {
        let rate = |remote| backend.rate(self.machine, remote, self.blocks);
        let [near, far] = [false, true].map(rate);
        self.connections.all.iter().map(move |connection| if connection.remote { far } else { near })
    }

    /// µs below which no order could come: every resource and connection at its full rate all the time.
    fn floor(&self, wire_bytes: f64, backend: &Backend) -> f64 {
        let mut load = vec![0.0; self.connections.rates.len()];
        let mut most: f64 = 0.0;
        for (connection, alone) in self.connections.all.iter().zip(self.alone(backend)) {
            let bytes = connection.sends.len() as f64 * wire_bytes;
            connection.resources.iter().for_each(|&resource| load[resource as usize] += bytes);
            most = most.max(bytes / (alone * BYTES_PER_US));
        }
        let full =
            load.iter().zip(&self.connections.rates).map(|(bytes, rate)| bytes / (rate * BYTES_PER_US));
        full.fold(most, f64::max)
    }

    /// Bytes over each connection for a buffer of so many bytes.
    pub fn connection_bytes(&self, bytes: u64) -> impl Iterator<Item = (u32, u32, f64)> {
        let chunk = self.schedule.chunk_bytes(bytes);
        self.connections.all.iter().map(move |c| (c.from, c.to, c.sends.len() as f64 * chunk))
    }

    /// Bytes through each resource for a buffer of so many bytes.
    pub fn loads(&self, bytes: u64) -> Vec<(Resource, f64)> {
        let chunk = self.schedule.chunk_bytes(bytes);
        let mut load: Vec<(Resource, f64)> = self.connections.resources.iter().map(|&r| (r, 0.0)).collect();
        for connection in &self.connections.all {
            let bytes = connection.sends.len() as f64 * chunk;
            connection.resources.iter().for_each(|&resource| load[resource as usize].1 += bytes);
        }
        load
    }
}

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

struct Run<'a> {
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
    finished: Vec<f64>,
    flows: Option<Vec<Flow>>,
}

impl<'a> Run<'a> {
    fn new(of: &'a Executor<'a>, backend: &Backend, wire_bytes: f64, tiles: usize) -> Self {
        let line = Line { next: 0, state: State::Idle, left: 0.0, rate: 0.0, since: 0.0, change: 0 };
        let (count, resources, sends) =
            (of.connections.all.len(), of.connections.rates.len(), of.needs.len());
        Run {
            of,
            wire_bytes,
            tiles,
            latency: [false, true].map(|remote| backend.latency(of.machine, remote)),
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

    fn finish(&mut self) {
        for connection in 0..self.lines.len() {
            self.try_start(connection);
        }
        while let Some(Reverse(event)) = self.events.pop() {
            if self.lines[event.1 as usize].change != event.2 {
                continue;
            }
            self.now = f64::from_bits(event.0);
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
    }

    /// µs for each further tile, from the later half of those that were followed.
    fn pace(&self) -> f64 {
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
