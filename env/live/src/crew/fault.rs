//! What ends a run, and whose fault it is.

use std::fmt;
use std::io;

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A worker failed.
    #[error("{0}")]
    Fault(Fault),
    /// Somebody wanted to stop.
    #[error("stopped")]
    Stopped,
    /// A worker could not be started.
    #[error("rank {rank} cannot be started: {why}")]
    Start {
        /// Its rank.
        rank: u32,
        /// Why.
        why: io::Error,
    },
    /// Nobody can connect.
    #[error("the ranks cannot meet at {address}: {why}")]
    Meet {
        /// Where.
        address: String,
        /// Why.
        why: io::Error,
    },
    /// Some workers never came.
    #[error("{} did not come within {seconds} s{}", ranks(missing), tail(log))]
    Missing {
        /// Those that are missing.
        missing: Vec<u32>,
        /// How long was waited.
        seconds: u64,
        /// The end of the first one's log.
        log: String,
    },
    /// A worker of this rank left before its work was done; the coordinator knows why.
    #[error("rank {rank} left before its work was done ({how}); rank 0 says why{}", tail(log))]
    Left {
        /// The rank.
        rank: u32,
        /// How its process ended.
        how: String,
        /// The end of its log.
        log: String,
    },
    /// Two ranks see different things.
    #[error("{0}")]
    Disagree(String),
    /// A result is wrong.
    #[error("{0}")]
    Wrong(String),
    /// What the run needs is not here.
    #[error("{0}")]
    Lacking(String),
    /// A file cannot be written.
    #[error("{0}")]
    File(String),
}

/// A worker that cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its rank.
    pub rank: u32,
    /// What happened.
    pub what: What,
    /// What it did last.
    pub doing: String,
    /// The end of its log.
    pub log: String,
}

/// What happened to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Its process ended.
    Died(String),
    /// It says nothing any more.
    Silent(u64),
    /// It says why.
    Failed(String),
    /// It says that another rank may be at fault.
    Remote(String),
    /// It finishes no step.
    Stalled(u64),
    /// Nor do others that have come as far, and nobody is behind them.
    AllStalled {
        /// All that hang there, the rank itself among them.
        ranks: Vec<u32>,
        /// For how long.
        seconds: u64,
    },
}

impl What {
    /// The smaller, the nearer to the cause.
    pub fn gravity(&self) -> u32 {
        match self {
            What::Died(_) => 0,
            What::Silent(_) => 1,
            What::Failed(_) => 2,
            What::Remote(_) => 3,
            What::Stalled(_) | What::AllStalled { .. } => 4,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { rank, what, doing, log } = self;
        match what {
            What::Died(how) => write!(f, "rank {rank} died ({how})"),
            What::Silent(seconds) => write!(f, "rank {rank} has said nothing for {seconds} s (stopped?)"),
            What::Failed(why) | What::Remote(why) => write!(f, "rank {rank} failed: {why}"),
            What::Stalled(seconds) => write!(f, "rank {rank} is stuck for {seconds} s"),
            What::AllStalled { ranks: all, seconds } => {
                write!(f, "{} are stuck for {seconds} s, none of them behind another", ranks(all))
            }
        }?;
        let whose =
            if let What::AllStalled { .. } = what { format!("rank {rank}'s") } else { "its".to_owned() };
        write!(f, "; {whose} last call: {doing}{}", tail(log))
    }
}

fn tail(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; the end of its log: {log}") }
}

fn ranks(ranks: &[u32]) -> String {
    let list = ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if ranks.len() == 1 { format!("rank {list}") } else { format!("ranks {list}") }
}
