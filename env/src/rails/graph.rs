//! One iteration as a graph: compute and calls of all stages, and what each waits for.
//!
//! One rank stands for each stage, because replicas do the same at the same time and rails are alike. Receives
//! are posted ahead, so a transfer waits for its sender only. Nothing here knows circuits.

use dynamiccl_spec::Collective;

use crate::workload::{Group, Phase};

/// A moment that something waits for: the beginning of a stage's iteration (0 up to the number of stages),
/// then the end of each piece of work.
pub type Moment = u32;

/// What circuits of a port can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// Replicas of a stage.
    Data,
    /// Stages of a pipeline.
    Pipeline,
}

impl Axis {
    /// The axis whose circuits a group needs; none for a group inside a server.
    pub fn of(group: Group) -> Option<Axis> {
        match group {
            Group::Data | Group::ExpertData => Some(Axis::Data),
            Group::Pipeline | Group::Embedding => Some(Axis::Pipeline),
            Group::Tensor | Group::Context | Group::Expert => None,
        }
    }
}

/// A call over a rail.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The circuits that it needs.
    pub axis: Axis,
    /// The stages that take part.
    pub stages: Box<[u8]>,
    /// What is called.
    pub collective: Collective,
    /// Bytes as NCCL counts them.
    pub bytes: u64,
    /// Ranks of its communicator.
    pub size: u32,
    /// Its communicator, or one direction between two stages: what carries one call at a time.
    pub line: u32,
    /// Where in the iteration it lies.
    pub phase: Phase,
}

/// What takes time.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// µs on a stage, calls inside the server included.
    Compute(f64),
    /// A call over a rail.
    Call(Call),
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// Whose ends it waits for.
    pub after: Box<[Moment]>,
    /// µs after them until it is launched.
    pub gap_us: f64,
    /// What is done.
    pub work: Work,
}

/// The work of one iteration, each piece after all that it waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Number of stages.
    pub stages: usize,
    /// All work.
    pub ops: Vec<Op>,
    /// The moment at which each stage is done.
    pub done: Vec<Moment>,
    /// Number of lines.
    pub lines: u32,
}

impl Graph {
    /// The moment at which a piece of work ends.
    pub fn end_of(&self, op: usize) -> usize {
        self.stages + op
    }

    /// The call of a piece of work, if it is one.
    pub fn call(&self, op: usize) -> Option<&Call> {
        match &self.ops[op].work {
            Work::Call(call) => Some(call),
            Work::Compute(_) => None,
        }
    }
}
