//! Proves an algorithm by running it: messages in bounded queues, steps that wait for each other, and who
//! has contributed to every place of memory.
//!
//! One run stands for all: every block and message carries a vector clock, so that two steps that touch one
//! place without either waiting for the other are found even where this run had them in the right order.

use std::collections::{HashMap, VecDeque};

use super::rules::{Fault, Rule};
use super::value::{Layout, Value};
use super::{Algorithm, Placement, Step};

/// Messages that a connection holds: as few as any protocol's buffer.
pub const SLOTS: usize = 2;

/// What each block had seen of every other.
type Clock = Vec<u32>;

/// Chunks under way.
struct Message {
    values: Vec<Value>,
    clock: Clock,
}

/// A place of memory with who touched it.
#[derive(Clone, Default)]
struct Cell {
    value: Option<Value>,
    writer: Option<(usize, u32)>,
    readers: Vec<(usize, u32)>,
}

/// A thread block under way.
struct Thread<'a> {
    rank: u32,
    id: u32,
    channel: u32,
    send: Option<u32>,
    recv: Option<u32>,
    steps: &'a [Step],
    next: usize,
    clock: Clock,
    /// The clock after each step that is done.
    done: Vec<Clock>,
}

struct Machine<'a> {
    layout: Layout<'a>,
    threads: Vec<Thread<'a>>,
    /// The thread of a block.
    places: HashMap<(u32, u32), usize>,
    memory: Vec<Vec<Cell>>,
    queues: HashMap<(u32, u32, u32), VecDeque<Message>>,
    slots: usize,
}

/// Proves an algorithm in every way in which it says that it runs, or gives the first rule that it breaks.
/// `slots` is what a connection holds.
pub fn run(algorithm: &Algorithm, slots: usize) -> Result<(), Fault> {
    if algorithm.placements().next().is_none() {
        return Err(Fault { rule: Rule::Placed, placement: None, rank: 0, block: None, step: 0 });
    }
    algorithm.placements().try_for_each(|placement| run_placed(algorithm, placement, slots))
}

fn run_placed(algorithm: &Algorithm, placement: Placement, slots: usize) -> Result<(), Fault> {
    let mut machine = Machine::new(algorithm, placement, slots.max(1))?;
    loop {
        let mut moved = false;
        for thread in 0..machine.threads.len() {
            while machine.step(thread)? {
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    machine.finish()
}

impl<'a> Machine<'a> {
    fn new(algorithm: &'a Algorithm, placement: Placement, slots: usize) -> Result<Self, Fault> {
        let layout = Layout::new(algorithm, placement);
        let cells = |rank| {
            let values: Vec<Option<Value>> = layout.start(rank);
            values.into_iter().map(|value| Cell { value, ..Cell::default() }).collect()
        };
        let memory = (0..algorithm.programs.len() as u32).map(cells).collect();
        let count: usize = algorithm.programs.iter().map(|program| program.blocks.len()).sum();
        let (mut threads, mut places) = (Vec::with_capacity(count), HashMap::new());
        for (program, rank) in algorithm.programs.iter().zip(0..) {
            for block in &program.blocks {
                places.insert((rank, block.id), threads.len());
                threads.push(Thread {
                    rank,
                    id: block.id,
                    channel: block.channel,
                    send: block.send,
                    recv: block.recv,
                    steps: &block.steps,
                    next: 0,
                    clock: vec![0; count],
                    done: Vec::new(),
                });
            }
        }
        let machine = Machine { layout, threads, places, memory, queues: HashMap::new(), slots };
        machine.check(algorithm.channels)?;
        Ok(machine)
    }

    /// What can be seen without running.
    fn check(&self, channels: u32) -> Result<(), Fault> {
        let mut owners = HashMap::new();
        for (thread, at) in self.threads.iter().zip(0..) {
            let fault = |rule, step| Fault { step, ..self.fault(rule, at) };
            if thread.channel >= channels {
                return Err(fault(Rule::Channel, 0));
            }
            for (sends, peer) in [(true, thread.send), (false, thread.recv)] {
                let Some(peer) = peer else { continue };
                if peer as usize >= self.memory.len() || peer == thread.rank {
                    return Err(fault(Rule::Peer, 0));
                }
                if owners.insert((thread.rank, sends, peer, thread.channel), thread.id).is_some() {
                    return Err(fault(Rule::OneBlock, 0));
                }
            }
            for (step, number) in thread.steps.iter().zip(0..) {
                if (step.op.sends() && thread.send.is_none()) || (step.op.receives() && thread.recv.is_none())
                {
                    return Err(fault(Rule::Peer, number));
                }
                if let Some((block, after)) = step.after {
                    let other = self.places.get(&(thread.rank, block)).map(|&other| &self.threads[other]);
                    let awaited = other.and_then(|other| other.steps.get(after as usize));
                    if block == thread.id || !awaited.is_some_and(|step| step.awaited) {
                        return Err(fault(Rule::Dependency, number));
                    }
                }
            }
        }
        Ok(())
    }

    fn fault(&self, rule: Rule, thread: usize) -> Fault {
        let thread = &self.threads[thread];
        let placement = Some(self.layout.placement());
        Fault { rule, placement, rank: thread.rank, block: Some(thread.id), step: thread.next as u32 }
    }

    /// Makes a block's next step, if nothing keeps it from it.
    fn step(&mut self, at: usize) -> Result<bool, Fault> {
        let thread = &self.threads[at];
        let (rank, channel) = (thread.rank, thread.channel);
        let Some(step) = thread.steps.get(thread.next) else { return Ok(false) };
        let mut clock = thread.clock.clone();
        if let Some((block, after)) = step.after {
            let other = &self.threads[self.places[&(rank, block)]];
            let Some(done) = other.done.get(after as usize) else { return Ok(false) };
            merge(&mut clock, done);
        }
        let out = thread.send.filter(|_| step.op.sends()).map(|to| (rank, to, channel));
        let full = |key| self.queues.get(&key).is_some_and(|queue: &VecDeque<_>| queue.len() >= self.slots);
        if out.is_some_and(full) {
            return Ok(false);
        }
        let mut received = None;
        if step.op.receives() {
            let from = thread.recv.map_or(rank, |from| from);
            let Some(queue) = self.queues.get_mut(&(from, rank, channel)) else { return Ok(false) };
            let Some(message) = queue.pop_front() else { return Ok(false) };
            merge(&mut clock, &message.clock);
            if message.values.len() != step.count as usize {
                return Err(self.fault(Rule::Match, at));
            }
            received = Some(message.values);
        }
        let number = self.threads[at].next as u32 + 1;
        clock[at] = number;
        let values = self.work(at, step, received, &clock)?;
        if let Some(key) = out {
            self.queues.entry(key).or_default().push_back(Message { values, clock: clock.clone() });
        }
        let thread = &mut self.threads[at];
        thread.next += 1;
        thread.done.push(clock.clone());
        thread.clock = clock;
        Ok(true)
    }

    /// Does what a step says to memory; gives what it has at hand to send.
    fn work(
        &mut self,
        at: usize,
        step: &Step,
        received: Option<Vec<Value>>,
        clock: &Clock,
    ) -> Result<Vec<Value>, Fault> {
        use super::Op;
        let mut values = Vec::with_capacity(step.count as usize);
        for part in 0..step.count as i32 {
            let source = |machine: &mut Self| machine.look(at, step.source, part, clock);
            let arrived = received.as_ref().map(|received| received[part as usize].clone());
            let value = match (step.op, arrived) {
                (Op::Nop, _) => return Ok(values),
                (Op::Send | Op::Copy, _) => source(self)?,
                (Op::Reduce, _) => {
                    let (added, old) = (source(self)?, self.look(at, step.target, part, clock)?);
                    self.add(at, &old, &added)?
                }
                (Op::RecvReduceSend | Op::RecvReduceCopy | Op::RecvReduceCopySend, Some(arrived)) => {
                    let old = source(self)?;
                    self.add(at, &old, &arrived)?
                }
                (_, Some(arrived)) => arrived,
                (_, None) => return Err(self.fault(Rule::Defined, at)),
            };
            if !matches!(step.op, Op::Send | Op::RecvReduceSend) {
                self.keep(at, step.target, part, value.clone(), clock)?;
            }
            values.push(value);
        }
        Ok(values)
    }

    fn add(&self, at: usize, old: &Value, new: &Value) -> Result<Value, Fault> {
        if !old.alike(new) {
            return Err(self.fault(Rule::SameChunk, at));
        }
        if old.meets(new) {
            return Err(self.fault(Rule::AddedOnce, at));
        }
        Ok(old.joined(new))
    }

    fn cell(
        &mut self,
        at: usize,
        (buffer, offset): (super::Buffer, i32),
        part: i32,
    ) -> Result<&mut Cell, Fault> {
        let rank = self.threads[at].rank;
        let at_part = if offset < 0 { None } else { offset.checked_add(part) };
        let place = at_part.and_then(|at| self.layout.place(rank, buffer, at));
        let place = place.ok_or_else(|| self.fault(Rule::InBounds, at))?;
        Ok(&mut self.memory[rank as usize][place])
    }

    fn look(
        &mut self,
        at: usize,
        place: (super::Buffer, i32),
        part: i32,
        clock: &Clock,
    ) -> Result<Value, Fault> {
        let cell = self.cell(at, place, part)?;
        let ordered = cell.writer.is_none_or(|touch| before(touch, clock));
        let value = cell.value.clone();
        cell.readers.retain(|touch| touch.0 != at);
        cell.readers.push((at, clock[at]));
        if !ordered {
            return Err(self.fault(Rule::Ordered, at));
        }
        value.ok_or_else(|| self.fault(Rule::Defined, at))
    }

    fn keep(
        &mut self,
        at: usize,
        place: (super::Buffer, i32),
        part: i32,
        value: Value,
        clock: &Clock,
    ) -> Result<(), Fault> {
        let cell = self.cell(at, place, part)?;
        let touched = cell.readers.iter().chain(&cell.writer).all(|&touch| before(touch, clock));
        *cell = Cell { value: Some(value), writer: Some((at, clock[at])), readers: Vec::new() };
        if touched { Ok(()) } else { Err(self.fault(Rule::Ordered, at)) }
    }

    fn finish(&self) -> Result<(), Fault> {
        let placement = Some(self.layout.placement());
        if let Some(stuck) = self.threads.iter().position(|thread| thread.next < thread.steps.len()) {
            return Err(self.fault(Rule::Progress, stuck));
        }
        let unread = self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(key, _)| *key).min();
        if let Some((from, _, channel)) = unread {
            let sends =
                |thread: &&Thread| thread.rank == from && thread.channel == channel && thread.send.is_some();
            let block = self.threads.iter().find(sends).map(|thread| thread.id);
            return Err(Fault { rule: Rule::Received, placement, rank: from, block, step: 0 });
        }
        for rank in 0..self.memory.len() as u32 {
            for ((place, expected), chunk) in self.layout.end(rank).into_iter().zip(0..) {
                if self.memory[rank as usize][place].value.as_ref() != Some(&expected) {
                    return Err(Fault { rule: Rule::Result, placement, rank, block: None, step: chunk });
                }
            }
        }
        Ok(())
    }
}

/// Whether something that a block did is known to whoever has this clock.
fn before((block, step): (usize, u32), clock: &Clock) -> bool {
    clock[block] >= step
}

fn merge(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}
