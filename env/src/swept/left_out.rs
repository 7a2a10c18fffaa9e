//! What of a sweep's file says nothing of any launch.

use std::ops::Add;

/// What of a sweep's file says nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Lines of the calls that are there.
    pub lines: usize,
    /// Whole calls.
    pub calls: usize,
    /// Lines that say what a launch takes that nobody can choose.
    pub chunks: usize,
}

impl Add for LeftOut {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        LeftOut {
            lines: self.lines + other.lines,
            calls: self.calls + other.calls,
            chunks: self.chunks + other.chunks,
        }
    }
}

impl LeftOut {
    /// How much it is and why; nothing where nothing is left out.
    pub(super) fn notes(self) -> Vec<String> {
        let LeftOut { lines, calls, chunks } = self;
        let mut notes = Vec::new();
        if lines > 0 {
            notes.push(format!(
                "left out {lines} of its lines: they ask for channels that are no choice of a policy, for a chunk size before NCCL \
                 2.30, for an algorithm and protocol that were not timed with NCCL's own chunks, or for a setting that NCCL \
                 cannot run there"
            ));
        }
        if calls > 0 {
            notes.push(format!(
                "left out {calls} of its calls: they have no line of NCCL's own choice (algo and proto \"default\"), or no \
                 other that can be chosen"
            ));
        }
        if chunks > 0 {
            notes.push(format!(
                "{chunks} of its lines are of chunk sizes that were not timed with every algorithm, protocol and number of \
                 channels that were timed of their call: those sizes are no choice of a policy there"
            ));
        }
        notes
    }
}
