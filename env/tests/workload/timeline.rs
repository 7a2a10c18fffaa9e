//! When the calls of all stages happen: programs merged by who waits for whom.
//!
//! One rank stands for each stage, because replicas and tensor-parallel ranks do the same at the same
//! time. A transfer starts when both of its ends are there, a collective over stages when all are; a
//! communicator carries one call at a time. How long a call takes is the caller's to say. Programs of stages that do not
//! fit each other show here, for somebody then waits for ever.

use std::collections::{BTreeMap, VecDeque};

use dynamiccl_env::workload::{Group, Phase, Planned, Program, Recipe, iteration};
use dynamiccl_spec::Role;

/// A call with its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// The stage whose rank makes it.
    pub stage: u8,
    /// µs since the iteration began, when everybody that takes part is there.
    pub start: f64,
    /// µs since the iteration began.
    pub end: f64,
    /// The call.
    pub planned: Planned,
}

/// Every call of an iteration, by the time at which it starts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// The calls. Both ends of a transfer, and every stage of a collective over stages, are listed.
    pub events: Vec<Event>,
    /// µs until the last stage is done.
    pub length: f64,
}

/// Times of one synchronising iteration on all stages.
pub fn timeline(recipe: &Recipe, flops_per_us: f64, duration: impl Fn(&Planned) -> f64) -> Timeline {
    let stages = 0..recipe.layout.pp as u8;
    let programs: Vec<Program> =
        stages.map(|stage| iteration(recipe, stage, true, flops_per_us).unwrap()).collect();
    merge(&programs, duration).unwrap()
}

/// Times of any programs, one for each stage in order; else who waits for ever.
pub fn merge(programs: &[Program], duration: impl Fn(&Planned) -> f64) -> Result<Timeline, String> {
    let mut merger = Merger::new(programs);
    while merger.round(&duration) {}
    merger.finish()
}

/// One stage's rank.
struct Rank<'a> {
    program: &'a Program,
    next: usize,
    /// Until when its own work has come.
    clock: f64,
    /// Start and end of each call, once known.
    times: Vec<Option<(f64, f64)>>,
    /// Until when each communicator is busy.
    busy: BTreeMap<Group, f64>,
}

struct Merger<'a> {
    ranks: Vec<Rank<'a>>,
    /// Sends on their way from one stage to another: position and time of issue.
    sent: BTreeMap<(u8, u8), VecDeque<(usize, f64)>>,
    /// Until when each direction between two stages is busy.
    link: BTreeMap<(u8, u8), f64>,
}

impl<'a> Merger<'a> {
    fn new(programs: &'a [Program]) -> Self {
        let rank = |program: &'a Program| Rank {
            program,
            next: 0,
            clock: 0.0,
            times: vec![None; program.calls.len()],
            busy: BTreeMap::new(),
        };
        Merger { ranks: programs.iter().map(rank).collect(), sent: BTreeMap::new(), link: BTreeMap::new() }
    }

    /// Lets every stage go on as far as it can; whether any did.
    fn round(&mut self, duration: &impl Fn(&Planned) -> f64) -> bool {
        let mut moved = false;
        for stage in 0..self.ranks.len() {
            while self.advance(stage, duration) {
                moved = true;
            }
            moved |= self.meet(stage, duration);
        }
        moved
    }

    /// Makes the next call of a stage, unless it must wait for another stage.
    fn advance(&mut self, stage: usize, duration: &impl Fn(&Planned) -> f64) -> bool {
        let Some((call, issue)) = self.ranks[stage].issue() else { return false };
        if call.is_transfer() {
            return match call.role {
                Role::ActivationRecv => self.receive(stage, &call, issue, duration),
                _ => self.send(stage, &call, issue),
            };
        }
        if call.group.spans_stages() {
            return false;
        }
        let rank = &mut self.ranks[stage];
        let start = issue.max(rank.busy.get(&call.group).copied().unwrap_or(0.0));
        let end = start + duration(&call).max(0.0);
        rank.busy.insert(call.group, end);
        rank.made((start, end), if call.blocking { end } else { issue });
        true
    }

    fn send(&mut self, stage: usize, call: &Planned, issue: f64) -> bool {
        let peer = call.peer.unwrap_or(u8::MAX);
        let rank = &mut self.ranks[stage];
        self.sent.entry((stage as u8, peer)).or_default().push_back((rank.next, issue));
        rank.next += 1;
        rank.clock = issue;
        true
    }

    fn receive(
        &mut self,
        stage: usize,
        call: &Planned,
        issue: f64,
        duration: &impl Fn(&Planned) -> f64,
    ) -> bool {
        let from = call.peer.unwrap_or(u8::MAX);
        let way = (from, stage as u8);
        let Some((at, sent)) = self.sent.get_mut(&way).and_then(VecDeque::pop_front) else { return false };
        let free = self.link.get(&way).copied().unwrap_or(0.0);
        let start = issue.max(sent).max(free);
        let end = start + duration(call).max(0.0);
        self.link.insert(way, end);
        self.ranks[usize::from(from)].times[at] = Some((start, end));
        self.ranks[stage].made((start, end), end);
        true
    }

    /// Makes a collective over stages that `stage` waits for, if all that take part wait for it.
    fn meet(&mut self, stage: usize, duration: &impl Fn(&Planned) -> f64) -> bool {
        let Some((call, _)) = self.ranks[stage].issue().filter(|(call, _)| call.crosses_stages()) else {
            return false;
        };
        let members = match call.group {
            Group::Embedding => vec![0, self.ranks.len() - 1],
            _ => (0..self.ranks.len()).collect(),
        };
        let issued = members.iter().map(|&member| {
            let same = |next: &Planned| next.crosses_stages() && next.group == call.group;
            self.ranks[member].issue().filter(|(next, _)| same(next)).map(|(_, issue)| issue)
        });
        let Some(issued) = issued.collect::<Option<Vec<f64>>>() else { return false };
        let start = issued.into_iter().fold(0.0, f64::max);
        let end = start + duration(&call).max(0.0);
        members.into_iter().for_each(|member| self.ranks[member].made((start, end), end));
        true
    }

    fn finish(self) -> Result<Timeline, String> {
        let mut length = 0.0f64;
        let mut events = Vec::new();
        for (stage, rank) in self.ranks.iter().enumerate() {
            let stuck = (rank.next < rank.program.calls.len()).then_some(rank.next);
            if let Some(call) = stuck.or_else(|| rank.times.iter().position(Option::is_none)) {
                return Err(deadlock(stage, call, &rank.program.calls[call]));
            }
            let times = rank.times.iter().flatten();
            length = times.clone().fold(length.max(rank.clock + rank.program.tail), |l, t| l.max(t.1));
            let event = |(planned, &(start, end)): (&Planned, &(f64, f64))| Event {
                stage: stage as u8,
                start,
                end,
                planned: *planned,
            };
            events.extend(rank.program.calls.iter().zip(times).map(event));
        }
        // A stable sort keeps the order of a program where calls start together.
        events.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.stage.cmp(&b.stage)));
        Ok(Timeline { events, length })
    }
}

impl Rank<'_> {
    /// The next call and when it is issued; nothing at the end, or while an earlier call's end is open.
    fn issue(&self) -> Option<(Planned, f64)> {
        let call = *self.program.calls.get(self.next)?;
        let mut issue = self.clock + call.window;
        if let Some(needed) = call.needs {
            issue = issue.max(self.times.get(needed as usize).copied().flatten()?.1);
        }
        let before = self.next.checked_sub(1).map(|at| self.program.calls[at].phase);
        if call.phase == Phase::Optimizer && before != Some(Phase::Optimizer) {
            for time in &self.times[..self.next] {
                issue = issue.max((*time)?.1);
            }
        }
        Some((call, issue))
    }

    fn made(&mut self, times: (f64, f64), clock: f64) {
        self.times[self.next] = Some(times);
        self.next += 1;
        self.clock = clock;
    }
}

fn deadlock(stage: usize, call: usize, planned: &Planned) -> String {
    let micro_batch = planned.micro_batch.map_or(String::new(), |i| format!(", micro-batch {i}"));
    let what = format!("{} of {}{micro_batch}", planned.collective, planned.group);
    format!("stage {stage} waits for ever at its call {call} ({what})")
}
