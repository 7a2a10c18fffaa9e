//! One worker as the coordinator sees it.

use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use super::fault::{Fault, What};
use super::log::tail;
use crate::message::{Answer, Reply, Request};
use crate::wire::{PATIENCE, Writer};

/// How long a process that has closed its connection may take to be gone.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// What is heard of a worker.
#[derive(Debug)]
pub enum Event {
    /// It said something, then.
    Said(Box<Reply>, Instant),
    /// Its connection closed.
    Closed(Option<io::Error>),
}

/// A worker's process on this machine, with its log.
#[derive(Debug)]
pub struct Child {
    /// The process.
    pub process: std::process::Child,
    /// What it prints.
    pub log: PathBuf,
}

impl Child {
    /// Ends it; one that is gone already needs no killing.
    pub fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One worker.
#[derive(Debug)]
pub struct Member {
    rank: u32,
    pid: u32,
    writer: Writer,
    /// None where another launcher has started it.
    child: Option<Child>,
    heard: Instant,
    moved: Instant,
    /// How far it is with what it was asked.
    steps: u64,
    doing: String,
    asked: bool,
    answer: Option<Answer>,
    /// It has said good-bye, and may be gone.
    released: bool,
    what: Option<What>,
}

impl Member {
    /// A worker that has just come.
    pub fn new(rank: u32, pid: u32, writer: Writer, child: Option<Child>) -> Self {
        let (now, doing) = (Instant::now(), "starting".to_owned());
        Member {
            rank,
            pid,
            writer,
            child,
            heard: now,
            moved: now,
            steps: 0,
            doing,
            asked: false,
            answer: None,
            released: false,
            what: None,
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks it something.
    pub fn ask(&mut self, request: &Request) {
        (self.asked, self.answer, self.moved) = (true, None, Instant::now());
        // Until it says more.
        (self.steps, self.doing) = (0, request.to_string());
        match self.writer.send(request) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                self.blame(What::Silent(PATIENCE.as_secs()));
            }
            // A connection that is broken is heard of as closed.
            _ => {}
        }
    }

    /// Whether it has answered what it was asked last.
    pub fn has_answered(&self) -> bool {
        self.answer.is_some()
    }

    /// How far it is with what it was asked; none where it has answered.
    pub fn progress(&self) -> Option<u64> {
        self.asked.then_some(self.steps)
    }

    /// What it has answered.
    pub fn take_answer(&mut self) -> Option<Answer> {
        self.answer.take()
    }

    /// Whether it cannot go on.
    pub fn is_at_fault(&self) -> bool {
        self.what.is_some()
    }

    /// Whether its process is gone.
    pub fn is_dead(&self) -> bool {
        matches!(self.what, Some(What::Died(_)))
    }

    /// Takes what it said.
    pub fn hear(&mut self, event: Event) {
        match event {
            Event::Said(reply, when) => {
                self.heard = self.heard.max(when);
                self.take(*reply, when);
            }
            Event::Closed(_) if self.released => {}
            Event::Closed(why) => {
                let why = why.map_or("its connection closed".to_owned(), |why| why.to_string());
                let how = self.last_status().map_or(why, |status| describe(&status));
                self.blame(What::Died(how));
            }
        }
    }

    fn take(&mut self, reply: Reply, when: Instant) {
        match reply {
            Reply::Beat { steps, doing } => {
                if steps != self.steps {
                    (self.steps, self.moved) = (steps, self.moved.max(when));
                }
                // One that has begun no step has nothing to say of it.
                if steps > 0 {
                    self.doing = doing;
                }
            }
            Reply::Done(answer) => {
                self.released = answer == Answer::Ended;
                (self.answer, self.asked, self.moved) = (Some(answer), false, self.moved.max(when));
            }
            Reply::Failed { doing, why, remote } => {
                self.doing = doing;
                self.blame(if remote { What::Remote(why) } else { What::Failed(why) });
            }
        }
    }

    /// Looks whether it is getting on. That it is gone is heard, after all that it has said before.
    pub fn look(&mut self, silence: Duration, stall: Duration, now: Instant) {
        if self.released {
            return;
        }
        let since = |when: Instant| now.saturating_duration_since(when);
        if since(self.heard) > silence {
            self.blame(What::Silent(since(self.heard).as_secs()));
        } else if self.asked && since(self.moved) > stall {
            self.blame(What::Stalled(since(self.moved).as_secs()));
        }
    }

    /// Leaves time in which nobody listened to it out of what is held against it.
    pub fn excuse(&mut self, away: Duration, now: Instant) {
        self.heard = now.min(self.heard + away);
        self.moved = now.min(self.moved + away);
    }

    /// Keeps what is nearest to the cause.
    fn blame(&mut self, what: What) {
        if self.what.as_ref().is_none_or(|known| what.gravity() < known.gravity()) {
            self.what = Some(what);
        }
    }

    /// What is wrong with it.
    pub fn fault(&self) -> Option<Fault> {
        Some(self.blamed_for(self.what.clone()?))
    }

    /// This, as its fault.
    pub fn blamed_for(&self, what: What) -> Fault {
        let log = self.child.as_ref().map_or(String::new(), |child| tail(&child.log));
        Fault { rank: self.rank, what, doing: self.doing.clone(), log }
    }

    /// Waits until its process has ended by itself.
    pub fn wait(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        while let Some(child) = &mut self.child
            && matches!(child.process.try_wait(), Ok(None))
            && Instant::now() < until
        {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends its process, if it is one of ours.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            child.end();
        }
    }

    fn last_status(&mut self) -> Option<ExitStatus> {
        let until = Instant::now() + LAST_BREATH;
        while let Some(child) = &mut self.child
            && Instant::now() < until
        {
            if let Ok(Some(status)) = child.process.try_wait() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

fn describe(status: &ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(9), _) => "killed by signal 9, SIGKILL".to_owned(),
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "no exit code".to_owned(),
    }
}
