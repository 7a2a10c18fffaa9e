//! From the programs of all stages to one graph.

use std::collections::{BTreeMap, VecDeque};

use dynamiccl_spec::{Collective, Role};

use super::fabric::Link;
use super::graph::{Axis, Call, Graph, Moment, Op, Work};
use super::timing::Timing;
use crate::workload::{Group, Layout, Phase, Planned, Program};

/// Weaves the programs of all stages together. Programs that the generator has written never wait for each
/// other for ever; of others, what waits is left out. With `hoist`, parameters are gathered as soon as an
/// iteration begins, which a framework could do and a control plane cannot.
pub fn weave(programs: &[Program], layout: &Layout, timing: &Timing, scale_up: &Link, hoist: bool) -> Graph {
    let mut loom = Loom { hoist, ..Loom::new(programs, layout, timing, scale_up) };
    while loom.round() {}
    loom.finish()
}

/// How far a stage's program has come.
struct Thread<'a> {
    program: &'a Program,
    next: usize,
    /// Whether the compute before the next call is woven in.
    computed: bool,
    /// What its next work waits for.
    clock: Vec<Moment>,
    /// The end of each call so far.
    ends: Vec<Moment>,
}

struct Loom<'a> {
    threads: Vec<Thread<'a>>,
    layout: &'a Layout,
    timing: &'a Timing,
    scale_up: &'a Link,
    ops: Vec<Op>,
    /// Transfers on their way, by sender and receiver.
    sent: BTreeMap<(u8, u8), VecDeque<Moment>>,
    lines: BTreeMap<(Group, u8, u8), u32>,
    hoist: bool,
}

impl<'a> Loom<'a> {
    fn new(programs: &'a [Program], layout: &'a Layout, timing: &'a Timing, scale_up: &'a Link) -> Self {
        let thread = |(stage, program)| Thread {
            program,
            next: 0,
            computed: false,
            clock: vec![stage as Moment],
            ends: Vec::new(),
        };
        let threads = programs.iter().enumerate().map(thread).collect();
        Loom {
            threads,
            layout,
            timing,
            scale_up,
            ops: Vec::new(),
            sent: BTreeMap::new(),
            lines: BTreeMap::new(),
            hoist: false,
        }
    }

    /// Lets every stage go on as far as it can; whether any did.
    fn round(&mut self) -> bool {
        let mut moved = false;
        for stage in 0..self.threads.len() {
            while self.advance(stage) {
                moved = true;
            }
            moved |= self.meet(stage);
        }
        moved
    }

    /// Weaves the next call of a stage in, unless it must wait for another stage.
    fn advance(&mut self, stage: usize) -> bool {
        let Some(call) = self.compute_before(stage) else { return false };
        if call.crosses_stages() {
            return false;
        }
        if call.is_transfer() {
            return self.transfer(stage, &call);
        }
        let hoisted = self.hoist && call.collective == Collective::AllGather;
        let clock = &self.threads[stage].clock;
        let after = if hoisted { vec![stage as Moment] } else { clock.clone() };
        let end = match Axis::of(call.group) {
            None => {
                let micros = self.scale_up.latency_us + call.bytes as f64 / (self.scale_up.gb_per_s * 1e3);
                self.push(after, 0.0, Work::Compute(micros))
            }
            Some(axis) => self.push_call(after, axis, &[stage as u8], &call),
        };
        self.made(stage, &call, end);
        true
    }

    /// Weaves in the compute before a stage's next call, once, and gives that call.
    fn compute_before(&mut self, stage: usize) -> Option<Planned> {
        let thread = &mut self.threads[stage];
        let call = *thread.program.calls.get(thread.next)?;
        if std::mem::replace(&mut thread.computed, true) {
            return Some(call);
        }
        let steps = call.phase == Phase::Optimizer;
        // The step's own compute is the timing's, where the paper lets it be fitted.
        if call.window > 0.0 && !steps {
            let after = std::mem::take(&mut self.threads[stage].clock);
            let end = self.push(after, 0.0, Work::Compute(call.window));
            self.threads[stage].clock = vec![end];
        }
        let thread = &mut self.threads[stage];
        thread.clock.extend(call.needs.map(|at| thread.ends[at as usize]));
        if steps {
            thread.clock.extend(&thread.ends);
        }
        Some(call)
    }

    fn transfer(&mut self, stage: usize, call: &Planned) -> bool {
        let (own, peer) = (stage as u8, call.peer.unwrap_or(u8::MAX));
        if call.role == Role::ActivationRecv {
            let Some(end) = self.sent.get_mut(&(peer, own)).and_then(VecDeque::pop_front) else {
                return false;
            };
            self.threads[stage].clock.push(end);
            self.made(stage, call, end);
            return true;
        }
        let after = self.threads[stage].clock.clone();
        let end = self.push_call(after, Axis::Pipeline, &[own, peer], call);
        self.sent.entry((own, peer)).or_default().push_back(end);
        self.made(stage, call, end);
        true
    }

    /// Weaves in a collective over stages, if all that take part have come to it.
    fn meet(&mut self, stage: usize) -> bool {
        let Some(call) = self.compute_before(stage).filter(Planned::crosses_stages) else { return false };
        let last = self.threads.len() as u8 - 1;
        let members = if call.group == Group::Embedding { vec![0, last] } else { (0..=last).collect() };
        let mut after = Vec::new();
        for &member in &members {
            let next = self.compute_before(usize::from(member));
            if next.is_none_or(|next| !next.crosses_stages() || next.group != call.group) {
                return false;
            }
            after.extend(&self.threads[usize::from(member)].clock);
        }
        let end = self.push_call(after, Axis::Pipeline, &members, &call);
        for member in members {
            self.made(usize::from(member), &call, end);
        }
        true
    }

    fn push_call(&mut self, after: Vec<Moment>, axis: Axis, stages: &[u8], call: &Planned) -> Moment {
        let key = (call.group, stages[0], *stages.last().unwrap_or(&0));
        let fresh = self.lines.len() as u32;
        let line = *self.lines.entry(key).or_insert(fresh);
        // What the host waits for, it also launches late; what is prefetched waits in a queue already.
        let gap_us = if call.blocking && !call.is_transfer() { self.timing.gap_us } else { 0.0 };
        let mut stages: Box<[u8]> = stages.into();
        stages.sort_unstable();
        let size = if call.is_transfer() { 2 } else { self.layout.size(call.group) };
        let Planned { collective, bytes, phase, .. } = *call;
        self.push(after, gap_us, Work::Call(Call { axis, stages, collective, bytes, size, line, phase }))
    }

    fn push(&mut self, mut after: Vec<Moment>, gap_us: f64, work: Work) -> Moment {
        after.sort_unstable();
        after.dedup();
        self.ops.push(Op { after: after.into(), gap_us, work });
        (self.threads.len() + self.ops.len() - 1) as Moment
    }

    /// Notes the end of a stage's next call, for which it may wait at once.
    fn made(&mut self, stage: usize, call: &Planned, end: Moment) {
        let thread = &mut self.threads[stage];
        thread.ends.push(end);
        (thread.next, thread.computed) = (thread.next + 1, false);
        if call.blocking && !call.is_transfer() {
            if self.hoist {
                thread.clock.push(end);
            } else {
                thread.clock = vec![end];
            }
        }
    }

    fn finish(mut self) -> Graph {
        let stages = self.threads.len();
        let mut done = Vec::new();
        for stage in 0..stages {
            let thread = &mut self.threads[stage];
            let mut after = std::mem::take(&mut thread.clock);
            after.extend(&thread.ends);
            done.push(self.push(after, 0.0, Work::Compute(self.timing.optimizer_us)));
        }
        Graph { stages, ops: self.ops, done, lines: self.lines.len() as u32 }
    }
}
