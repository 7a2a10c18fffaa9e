//! What an algorithm must keep, and where it does not.

use std::fmt;

use super::Placement;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// It says that it runs in place, out of place or both.
    Placed,
    /// A block is in a channel that there is.
    Channel,
    /// A step reads and writes inside its buffers.
    InBounds,
    /// A step that sends or receives is in a block with that peer, and the peer exists.
    Peer,
    /// A connection of a channel belongs to one block on each side.
    OneBlock,
    /// A dependency names a step of another block that says others wait for it.
    Dependency,
    /// What is received is what was sent: as many chunks.
    Match,
    /// Nothing is read that was never written.
    Defined,
    /// Only contributions to the same chunk are added.
    SameChunk,
    /// No contribution is added twice.
    AddedOnce,
    /// A step waits for whoever wrote or reads what it touches.
    Ordered,
    /// Every step is reached.
    Progress,
    /// Every message is received.
    Received,
    /// In the end every rank has what the collective promises.
    Result,
}

impl Rule {
    /// What the rule says.
    pub const fn says(self) -> &'static str {
        match self {
            Rule::Placed => "it runs in place, out of place or both",
            Rule::Channel => "a thread block is in a channel below nchannels",
            Rule::InBounds => "a step reads and writes inside its buffers",
            Rule::Peer => "a step that sends or receives is in a block with that peer",
            Rule::OneBlock => "a connection of a channel belongs to one block on each side",
            Rule::Dependency => "a dependency names a step that exists and says that others wait for it",
            Rule::Match => "a step receives as many chunks as were sent",
            Rule::Defined => "nothing is read that was never written",
            Rule::SameChunk => "only contributions to the same chunk are added",
            Rule::AddedOnce => "no contribution is added twice",
            Rule::Ordered => "a step waits for whoever wrote or reads what it touches",
            Rule::Progress => "no step waits for ever (deadlock)",
            Rule::Received => "every message is received",
            Rule::Result => "in the end every rank has what the collective promises",
        }
    }
}

/// The first rule that an algorithm breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rule.
    pub rule: Rule,
    /// How it ran; none where it says of neither that it can.
    pub placement: Option<Placement>,
    /// The rank.
    pub rank: u32,
    /// The thread block; none where it shows in the end only.
    pub block: Option<u32>,
    /// The step; for a rule about the end, the chunk.
    pub step: u32,
}

impl Fault {
    /// The rule, with how it ran where that is not in place.
    pub fn says(&self) -> String {
        let says = self.rule.says();
        if self.placement == Some(Placement::OutOfPlace) {
            format!("out of place: {says}")
        } else {
            says.to_owned()
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Some(block) => write!(f, "rank {}, thread block {block}, step {}: ", self.rank, self.step)?,
            None => write!(f, "rank {}, at the end, chunk {}: ", self.rank, self.step)?,
        }
        f.write_str(&self.says())
    }
}

impl std::error::Error for Fault {}
