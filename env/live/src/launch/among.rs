//! Ranks whose processes another launcher has started, one for each, all with the same words.
//!
//! Rank 0's process is the coordinator. Every process starts the worker of its rank beside itself, for variables of
//! NCCL must be there before it is loaded, and some of them are read once in the life of a process.

use std::thread;
use std::time::Duration;

use super::{Recipe, Site};
use crate::crew::{Door, LiveError, log_tail};

/// How often an interrupt and the worker are looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Which of the ranks this process is, and where all meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Among {
    /// This rank.
    pub rank: u32,
    /// Which of this machine's ranks it is.
    pub within: u32,
    /// Whether all are known to be on this machine.
    pub here: bool,
    /// Rank 0's machine.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// What only processes of this run know.
    pub secret: String,
}

impl Among {
    /// Where rank 0 is reached.
    pub fn address(&self) -> String {
        let Among { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Rank 0's door: for this machine alone where that is its name, else on all addresses. A host's own name often
    /// leads to an address on which nobody else reaches it.
    pub fn door(&self) -> Result<Door, LiveError> {
        let open = |host: &str| Door::open(host, self.port, self.secret.clone());
        match self.host.as_str() {
            local @ ("localhost" | "127.0.0.1" | "::1") => open(local),
            // Both kinds of addresses, where the machine has both.
            _ => open("::").or_else(|_| open("0.0.0.0")),
        }
    }
}

/// Starts the worker of this rank, which is not rank 0, and waits until it has done its work.
pub fn attend(recipe: &Recipe, among: &Among, stop: impl Fn() -> bool) -> Result<(), LiveError> {
    let site = Site::new(recipe)?;
    let started = site.spawn(recipe, among.rank, &among.address(), &among.secret);
    let mut child = started.map_err(|why| LiveError::Start { rank: among.rank, why })?;
    loop {
        let over = child.process.try_wait().map_err(|why| LiveError::Start { rank: among.rank, why })?;
        match over {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(LiveError::Left {
                    rank: among.rank,
                    how: status.to_string(),
                    log: log_tail(&child.log),
                });
            }
            None if stop() => {
                child.end();
                return Err(LiveError::Stopped);
            }
            None => thread::sleep(GLANCE),
        }
    }
}
