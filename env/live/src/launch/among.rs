//! Ranks whose processes another launcher has started, one for each, all with the same words.
//!
//! Rank 0's process is the coordinator. Every process starts the worker of its rank beside itself, for variables of
//! NCCL must be there before it is loaded, and some of them are read once in the life of a process.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::{Recipe, Site};
use crate::crew::{Child, Door, Limits, LiveError, log_tail};

/// How often an interrupt and the worker are looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// So much longer than the coordinator a silent worker is borne with: its end is not to come before it is named.
const MERCY: Duration = Duration::from_secs(4);

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
    let failed = |why| LiveError::Start { rank: among.rank, why };
    let (mut pulse, theirs) = Pulse::pair().map_err(failed)?;
    let started = site.spawn(recipe, among.rank, &among.address(), &among.secret, theirs);
    let mut child = started.map_err(failed)?;
    let left = |child: &Child, how| LiveError::Left { rank: among.rank, how, log: log_tail(&child.log) };
    loop {
        match child.process.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(left(&child, status.to_string())),
            None if stop() => {
                child.end();
                return Err(LiveError::Stopped);
            }
            None => {}
        }
        if let Some(seconds) = pulse.silent(&recipe.limits) {
            child.end();
            return Err(left(&child, format!("silent for {seconds} s, stopped?")));
        }
    }
}

/// What is heard of a worker by who started it. One that is stopped does not notice that its coordinator is gone, and nobody
/// else would end it.
struct Pulse {
    stream: UnixStream,
    /// Whether it has beaten yet.
    heard: bool,
    /// For how long it has not, counted in glances: time in which nobody looked is not held against it.
    silence: Duration,
}

impl Pulse {
    /// With the end that its worker has as its standard input.
    fn pair() -> std::io::Result<(Self, Stdio)> {
        let (stream, theirs) = UnixStream::pair()?;
        stream.set_read_timeout(Some(GLANCE))?;
        let pulse = Pulse { stream, heard: false, silence: Duration::ZERO };
        Ok((pulse, Stdio::from(std::os::fd::OwnedFd::from(theirs))))
    }

    /// Listens for a glance; for how many seconds it has said nothing, where that is too long.
    fn silent(&mut self, limits: &Limits) -> Option<u64> {
        match self.stream.read(&mut [0; 64]) {
            Ok(0) => {
                // It has closed it, and is about to end.
                thread::sleep(GLANCE);
                self.silence += GLANCE;
            }
            Ok(_) => (self.heard, self.silence) = (true, Duration::ZERO),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.silence += GLANCE,
        }
        let limit = if self.heard { limits.silence } else { limits.gather } + MERCY;
        (self.silence > limit).then_some(self.silence.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn who_beats_is_borne_with_and_who_does_no_more_is_not() {
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let mut pulse = Pulse { stream, heard: false, silence: Duration::ZERO };
        let limits = Limits { silence: Duration::ZERO, gather: 2 * MERCY, ..Limits::default() };
        let glances = (MERCY.as_millis() / GLANCE.as_millis()) as u32;
        let mut silent = |times: u32| (0..times).find_map(|_| pulse.silent(&limits));
        assert_eq!(silent(2 * glances), None, "it may take its time to start");
        theirs.write_all(b".").unwrap();
        assert_eq!(silent(1 + glances), None);
        theirs.write_all(b"...").unwrap();
        assert_eq!(silent(1 + glances), None);
        assert_eq!(silent(1), Some(MERCY.as_secs()));
    }
}
