//! Idle times of a rail between phases of traffic, as §3.1 of "Photonic Rails in ML Datacenters"
//! defines them: from the end of everything in one phase to the first start of the next.

use dynamiccl_env::workload::{Group, Planned};
use dynamiccl_spec::Role;

use crate::timeline::{Event, Timeline};

/// Who talks to whom on a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Circuit {
    /// The kind of communicator.
    pub group: Group,
    /// First and last of its stages: one stage twice for replicas of a stage, neighbours for a transfer.
    pub stages: (u8, u8),
}

/// Consecutive calls over one circuit; a transfer between stages is a phase of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Who talks.
    pub circuit: Circuit,
    /// The first of its calls; of a transfer the sender's.
    pub first: Planned,
    /// µs at which the first of its calls starts.
    pub start: f64,
    /// µs at which the last of them ends.
    pub end: f64,
    /// Bytes of all calls, as NCCL counts them.
    pub bytes: u64,
    /// Number of calls.
    pub calls: u32,
}

/// Idle time before a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// µs at which everything before it has ended.
    pub start: f64,
    /// µs of idle time.
    pub length: f64,
    /// The phase after it.
    pub next: Traffic,
}

impl Timeline {
    /// Phases of the groups that `on_rail` selects, by start.
    pub fn phases(&self, on_rail: impl Fn(Group) -> bool) -> Vec<Traffic> {
        let last = self.events.iter().map(|event| event.stage).max().unwrap_or(0);
        let mut phases: Vec<Traffic> = Vec::new();
        for event in self.events.iter().filter(|event| on_rail(event.planned.group) && stands_for_all(event))
        {
            let planned = event.planned;
            let circuit = circuit(event, last);
            let same = |phase: &&mut Traffic| phase.circuit == circuit && !planned.is_transfer();
            match phases.last_mut().filter(same) {
                Some(phase) => {
                    phase.end = phase.end.max(event.end);
                    phase.bytes += planned.bytes;
                    phase.calls += 1;
                }
                None => phases.push(Traffic {
                    circuit,
                    first: planned,
                    start: event.start,
                    end: event.end,
                    bytes: planned.bytes,
                    calls: 1,
                }),
            }
        }
        phases
    }

    /// Idle times between consecutive phases; phases that overlap have none between them.
    pub fn windows(&self, on_rail: impl Fn(Group) -> bool) -> Vec<Window> {
        let mut windows = Vec::new();
        let mut busy: Option<f64> = None;
        for phase in self.phases(on_rail) {
            if let Some(start) = busy.filter(|&end| end < phase.start) {
                windows.push(Window { start, length: phase.start - start, next: phase });
            }
            busy = Some(busy.map_or(phase.end, |end| end.max(phase.end)));
        }
        windows
    }
}

fn circuit(event: &Event, last: u8) -> Circuit {
    let group = event.planned.group;
    let stages = match event.planned.peer {
        Some(peer) => (event.stage.min(peer), event.stage.max(peer)),
        None if group.spans_stages() => (0, last),
        None => (event.stage, event.stage),
    };
    Circuit { group, stages }
}

/// Whether an event is the one that is counted, where several stages list the same call.
fn stands_for_all(event: &Event) -> bool {
    match event.planned.peer {
        Some(_) => event.planned.role == Role::ActivationSend,
        None => !event.planned.group.spans_stages() || event.stage == 0,
    }
}
