//! What a schedule really takes: connections in flight share NICs, ports and links fairly, moment by moment.
//!
//! A connection carries its sends in order, tile after tile; a send waits for what its rank must have
//! received first. This is the truth that synthesizers only believe to know. Of many equal tiles the first
//! few are followed and the rest continued, never faster than any shared rate allows.

mod run;

use crate::backend::Backend;
use crate::connections::{Connections, Resource};
use crate::machine::{BYTES_PER_US, Machine};
use crate::schedule::Schedule;
use crate::sketch::Sketch;
use crate::stop::{NEVER, Stop};
use run::Run;

/// Tiles that are followed.
pub const TILES: u32 = 4;
/// How much of a chain without sharing is not counted: a run takes events together that are hardly apart.
const SLACK: f64 = 1e-3;

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

/// How a chunk is cut.
struct Tiled {
    /// Tiles that are followed, and those beyond.
    followed: f64,
    rest: f64,
    /// Bytes on the wire of one tile, and of all.
    wire_bytes: f64,
    all_wire_bytes: f64,
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
        Executor::new_unless(NEVER, machine, sketch, schedule).expect("nobody stops it")
    }

    /// The same; none where it is to stop.
    pub fn new_unless(
        stop: Stop<'_>,
        machine: &'a Machine,
        sketch: &Sketch,
        schedule: &Schedule,
    ) -> Option<Self> {
        let connections = Connections::new(stop, machine, sketch, schedule)?;
        let needs = schedule.needs_unless(stop)?;
        let mut needed_by = vec![Vec::new(); needs.len()];
        for (needed, number) in needs.iter().zip(0_u32..) {
            needed.iter().for_each(|&send| needed_by[send as usize].push(number));
        }
        let mut ends = vec![0; machine.ranks()];
        for connection in &connections.all {
            ends[connection.from as usize] += 1;
            ends[connection.to as usize] += 1;
        }
        Some(Executor {
            machine,
            schedule: schedule.clone(),
            connections,
            needs: needs.iter().map(|needed| needed.len() as u16).collect(),
            needed_by,
            // One block may carry both ends.
            blocks: ends.into_iter().max().unwrap_or(0_usize).div_ceil(2),
        })
    }

    /// µs of a collective of so many bytes.
    pub fn micros(&self, bytes: u64, backend: &Backend) -> f64 {
        self.run(bytes, backend, TILES, false).micros
    }

    /// The same where it is no more than a limit; a run that takes longer, or is to stop, is not followed to its end.
    pub fn micros_within(&self, stop: Stop<'_>, limit: f64, bytes: u64, backend: &Backend) -> Option<f64> {
        let outcome = self.follow(stop, &self.tiled(bytes, backend, TILES), backend, limit, false)?;
        (outcome.micros <= limit).then_some(outcome.micros)
    }

    /// µs that a run cannot be below, found without running: every connection as fast as if it were alone, and
    /// every resource at its full rate all the time.
    pub fn least(&self, bytes: u64, backend: &Backend) -> f64 {
        let tiled = self.tiled(bytes, backend, TILES);
        let chain = self.chain(tiled.wire_bytes, backend) * (1.0 - SLACK);
        chain.max(self.floor(tiled.all_wire_bytes, backend))
    }

    /// Runs it, following so many tiles, with its flows where wanted.
    pub fn run(&self, bytes: u64, backend: &Backend, most_tiles: u32, flows: bool) -> Outcome {
        let tiled = self.tiled(bytes, backend, most_tiles);
        self.follow(NEVER, &tiled, backend, f64::INFINITY, flows).expect("nothing takes longer than for ever")
    }

    fn tiled(&self, bytes: u64, backend: &Backend, most_tiles: u32) -> Tiled {
        let chunk = self.schedule.chunk_bytes(bytes);
        let tiles = (chunk / f64::from(backend.channels) / backend.tile()).ceil().max(1.0);
        let followed = f64::from(most_tiles.max(1)).min(tiles);
        let (wire_bytes, all_wire_bytes) = (chunk / tiles * backend.wire(), chunk * backend.wire());
        Tiled { followed, rest: tiles - followed, wire_bytes, all_wire_bytes }
    }

    fn follow(
        &self,
        stop: Stop<'_>,
        tiled: &Tiled,
        backend: &Backend,
        limit: f64,
        flows: bool,
    ) -> Option<Outcome> {
        let mut run = Run::new(self, backend, tiled.wire_bytes, tiled.followed as usize);
        run.flows = flows.then(Vec::new);
        if !run.finish(stop, limit) {
            return None;
        }
        let last = run.finished[run.finished.len() - 1];
        let micros = (last + tiled.rest * run.pace()).max(self.floor(tiled.all_wire_bytes, backend));
        Some(Outcome { micros, flows: run.flows.unwrap_or_default() })
    }

    /// µs until one tile has arrived everywhere where nothing is shared.
    fn chain(&self, wire_bytes: f64, backend: &Backend) -> f64 {
        let latency = self.latencies(backend);
        let takes: Vec<f64> = (self.connections.all.iter().zip(self.alone(backend)))
            .map(|(connection, alone)| {
                latency[usize::from(connection.remote)] + wire_bytes / (alone * BYTES_PER_US)
            })
            .collect();
        let mut ready = vec![0.0_f64; self.needs.len()];
        let mut free = vec![0.0_f64; takes.len()];
        for (send, &connection) in self.connections.of_send.iter().enumerate() {
            let connection = connection as usize;
            let arrives = ready[send].max(free[connection]) + takes[connection];
            free[connection] = arrives;
            self.needed_by[send].iter().for_each(|&by| ready[by as usize] = arrives.max(ready[by as usize]));
        }
        free.into_iter().fold(0.0, f64::max)
    }

    /// µs before a transfer begins, inside a node and between nodes.
    fn latencies(&self, backend: &Backend) -> [f64; 2] {
        [false, true].map(|remote| backend.latency(self.machine, remote))
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
