//! One call that a job will make, and the program of one rank.

use dynamiccl_spec::{Collective, Role};

use super::group::Group;

/// Where in an iteration a call lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// The pipeline fills: forward passes only.
    WarmUp,
    /// One forward, one backward.
    Steady,
    /// The pipeline empties: backward passes, and what their gradients still need.
    CoolDown,
    /// The step itself; it waits for everything before it.
    Optimizer,
}

/// One call of one rank, with the compute around it.
///
/// A rank that makes its calls one after the other needs about Σ `window` + [`Planned::exposed`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planned {
    /// The communicator.
    pub group: Group,
    /// What is called.
    pub collective: Collective,
    /// Bytes as NCCL counts them: allgather and reducescatter count every rank's part.
    pub bytes: u64,
    /// What it is for.
    pub role: Role,
    /// The stage of the rank that calls.
    pub stage: u8,
    /// Class of its coflow, 0 (goes last) to 7 (goes first); none where nobody has set one.
    pub priority: Option<u8>,
    /// µs of compute on this rank since the previous call was issued.
    pub window: f64,
    /// µs of compute that go on while this call may still run and could hide it; they are part of
    /// later calls' windows. 0 where the rank waits for the call at once.
    pub beside: f64,
    /// Calls that are launched together with this one, itself included.
    pub pipelined: u32,
    /// The other stage of a send or receive between stages.
    pub peer: Option<u8>,
    /// The micro-batch that it belongs to, where it belongs to one.
    pub micro_batch: Option<u32>,
    /// Where in the iteration it lies.
    pub phase: Phase,
    /// Whether the rank waits for it at once.
    pub blocking: bool,
    /// Position of an earlier call that must be done before this one is issued.
    pub needs: Option<u32>,
}

/// What one rank does in one iteration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Its calls, in the order in which they are issued.
    pub calls: Vec<Planned>,
    /// µs of compute after the last call.
    pub tail: f64,
}

impl Planned {
    /// A call that stands by itself, for which its rank waits.
    pub fn alone(collective: Collective, bytes: u64, role: Role) -> Self {
        Planned {
            group: Group::Data,
            collective,
            bytes,
            role,
            stage: 0,
            priority: None,
            window: 0.0,
            beside: 0.0,
            pipelined: 1,
            peer: None,
            micro_batch: None,
            phase: Phase::Steady,
            blocking: true,
            needs: None,
        }
    }

    /// The part of a duration that no compute hides.
    pub fn exposed(&self, duration: f64) -> f64 {
        (duration - self.beside).max(0.0)
    }

    /// Whether it is one end of a transfer between stages.
    pub fn is_transfer(&self) -> bool {
        self.group == Group::Pipeline && self.collective == Collective::SendRecv
    }

    /// Whether it is a collective over stages.
    pub fn crosses_stages(&self) -> bool {
        self.group.spans_stages() && self.collective != Collective::SendRecv
    }
}

impl Program {
    /// µs of compute in the whole iteration.
    pub fn compute(&self) -> f64 {
        self.calls.iter().map(|call| call.window).sum::<f64>() + self.tail
    }

    /// Fills in what compute could hide each call, now that all windows are known.
    ///
    /// A call may run until the rank needs its result, until the same communicator is used for the same
    /// collective again, or until the optimizer, which waits for everything.
    pub(super) fn hide(mut self) -> Self {
        for at in 0..self.calls.len() {
            if self.calls[at].blocking {
                continue;
            }
            let this = self.calls[at];
            let mut beside = 0.0;
            let mut open = true;
            for later in &self.calls[at + 1..] {
                beside += later.window;
                let same = later.group == this.group && later.collective == this.collective;
                let waits = later.phase == Phase::Optimizer && this.phase != Phase::Optimizer;
                if later.needs == Some(at as u32) || same || waits {
                    open = false;
                    break;
                }
            }
            self.calls[at].beside = if open { beside + self.tail } else { beside };
        }
        self
    }
}
