//! The coordinator's side of the workers: asks all at once, collects their answers, and watches over them.
//!
//! Every wait is bounded: a worker that is gone, silent, stuck or wrong ends the run, and the message names its rank,
//! what it did last and the end of its log. Of those that are stuck it names who is behind: the others wait for it. Dropping the crew leaves no process behind.

mod fault;
mod gather;
mod log;
mod member;

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

pub use fault::{Fault, LiveError, What};
pub use gather::{Door, gather};
pub use log::tail as log_tail;
pub use member::{Child, Event};

use crate::message::{Answer, Reply, Request};
use member::Member;

/// How often interrupts and processes are looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// How long others may still say what they know once one has failed: the first to complain is seldom the culprit.
const INQUEST: Duration = Duration::from_millis(1500);

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All workers are there.
    pub gather: Duration,
    /// A worker says nothing at all.
    pub silence: Duration,
    /// A worker finishes no step.
    pub stall: Duration,
    /// The same while libraries, GPU and communicator begin.
    pub begin: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Limits { gather: seconds(60), silence: seconds(8), stall: seconds(20), begin: seconds(120) }
    }
}

/// All workers of a run.
pub struct Crew {
    members: Vec<Member>,
    events: Receiver<(usize, Event)>,
    limits: Limits,
    /// Whether somebody wants to stop.
    stop: Box<dyn Fn() -> bool + Send>,
    /// When workers were looked at last.
    looked: Instant,
}

impl Crew {
    /// Ranks.
    pub fn ranks(&self) -> u32 {
        self.members.len() as u32
    }

    /// The process of a worker.
    pub fn pid(&self, rank: usize) -> u32 {
        self.members[rank].pid()
    }

    /// Asks all workers the same, and gives their answers by rank.
    pub fn ask(&mut self, request: &Request) -> Result<Vec<Answer>, LiveError> {
        let everybody: Vec<usize> = (0..self.members.len()).collect();
        self.ask_some(&everybody, |_| request.clone())
    }

    /// Asks all workers the same, of which an answer of one kind comes, by rank.
    pub fn ask_for<T>(
        &mut self,
        request: &Request,
        kind: impl Fn(Answer) -> Option<T>,
    ) -> Result<Vec<T>, LiveError> {
        let answers = self.ask(request)?.into_iter().enumerate();
        answers.map(|(rank, answer)| kind(answer).ok_or_else(|| misheard(rank))).collect()
    }

    /// Asks some workers, each something of its own.
    pub fn ask_some(
        &mut self,
        ranks: &[usize],
        request: impl Fn(usize) -> Request,
    ) -> Result<Vec<Answer>, LiveError> {
        let mut limit = self.limits.stall;
        for &rank in ranks {
            let request = request(rank);
            if matches!(request, Request::Open(_) | Request::Name | Request::Join(_)) {
                limit = self.limits.begin;
            }
            self.members[rank].ask(&request);
        }
        let answered = self.collect(ranks, limit);
        match answered {
            Ok(()) => Ok(ranks.iter().filter_map(|&rank| self.members[rank].take_answer()).collect()),
            Err(()) => Err(self.inquire()),
        }
    }

    /// Waits until these workers have answered; an error as soon as one cannot any more, or somebody wants to stop.
    fn collect(&mut self, ranks: &[usize], limit: Duration) -> Result<(), ()> {
        while ranks.iter().any(|&rank| !self.members[rank].has_answered()) {
            if (self.stop)() {
                return Err(());
            }
            self.listen(GLANCE);
            self.look(limit);
            if self.members.iter().any(Member::is_at_fault) {
                return Err(());
            }
        }
        Ok(())
    }

    /// Takes what workers say for at most this long.
    fn listen(&mut self, limit: Duration) {
        match self.events.recv_timeout(limit) {
            Ok((rank, event)) => self.members[rank].hear(event),
            Err(RecvTimeoutError::Timeout) => {}
            // Nobody is left to say anything; that they are gone has been heard.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(limit),
        }
    }

    /// Looks whether all workers are getting on. Time in which nobody listened to them, because the coordinator had
    /// other work or no core to run on, is not held against them.
    fn look(&mut self, stall: Duration) {
        let now = Instant::now();
        let away = now.saturating_duration_since(self.looked).saturating_sub(GLANCE);
        self.looked = now;
        for member in &mut self.members {
            member.excuse(away, now);
            member.look(self.limits.silence, stall, now);
        }
    }

    /// Finds out whose fault it is.
    fn inquire(&mut self) -> LiveError {
        if (self.stop)() {
            return LiveError::Stopped;
        }
        let until = Instant::now() + INQUEST;
        while Instant::now() < until && !self.members.iter().any(Member::is_dead) {
            self.listen(GLANCE);
            self.look(Duration::MAX);
        }
        let faults = self.members.iter().filter_map(Member::fault);
        let worst = faults.min_by_key(|fault| (fault.what.gravity(), fault.rank));
        let worst = worst.map(|fault| match fault.what {
            What::Stalled(seconds) => self.hindmost(seconds).unwrap_or(fault),
            _ => fault,
        });
        worst.map_or(LiveError::Stopped, LiveError::Fault)
    }

    /// Who is behind where nobody gets on, whoever was found stuck first: others wait for it. None where nobody is asked.
    fn hindmost(&self, seconds: u64) -> Option<Fault> {
        let least = self.members.iter().filter_map(Member::progress).min()?;
        let behind = (0..self.members.len()).filter(|&at| self.members[at].progress() == Some(least));
        let behind: Vec<usize> = behind.collect();
        let what = match behind[..] {
            [_] => What::Stalled(seconds),
            _ => What::AllStalled { ranks: behind.iter().map(|&rank| rank as u32).collect(), seconds },
        };
        Some(self.members[*behind.first()?].blamed_for(what))
    }

    /// Lets all workers end by themselves.
    pub fn end(&mut self) -> Result<(), LiveError> {
        self.ask_for(&Request::End, |answer| (answer == Answer::Ended).then_some(()))?;
        self.members.iter_mut().for_each(|member| member.wait(self.limits.silence));
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::kill);
    }
}

impl std::fmt::Debug for Crew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crew").field("members", &self.members).finish_non_exhaustive()
    }
}

/// A worker answers something else than it was asked.
pub(crate) fn misheard(rank: usize) -> LiveError {
    LiveError::Disagree(format!("rank {rank} answers something else than it was asked"))
}

/// What a worker said, and when that was heard.
fn event_of(reply: Reply) -> Event {
    Event::Said(Box::new(reply), Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Writer;
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::{self, Sender};
    use std::thread;

    const SILENCE: Duration = Duration::from_millis(400);

    /// A crew of one whose events the test makes up; the connection is kept open.
    fn crew() -> (Crew, Sender<(usize, Event)>, Vec<TcpStream>) {
        crew_of(1, Limits { silence: SILENCE, stall: 4 * SILENCE, ..Limits::default() })
    }

    fn crew_of(ranks: u32, limits: Limits) -> (Crew, Sender<(usize, Event)>, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (send, events) = mpsc::channel();
        let (mut members, mut streams) = (Vec::new(), Vec::new());
        for rank in 0..ranks {
            streams.push(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            members.push(Member::new(rank, 1, Writer::new(listener.accept().unwrap().0).unwrap(), None));
        }
        let crew = Crew { members, events, limits, stop: Box::new(|| false), looked: Instant::now() };
        (crew, send, streams)
    }

    /// What is said of ranks that all are asked to end and have come so far, as their beats say, when none gets on.
    fn stuck(steps: &[u64]) -> String {
        let limits = Limits { stall: SILENCE, silence: 100 * SILENCE, ..Limits::default() };
        let (mut crew, send, _open) = crew_of(steps.len() as u32, limits);
        for (rank, &steps) in steps.iter().enumerate() {
            send.send((rank, event_of(Reply::Beat { steps, doing: format!("step {steps}") }))).unwrap();
        }
        crew.ask(&Request::End).unwrap_err().to_string()
    }

    #[test]
    fn of_ranks_that_are_stuck_the_one_behind_is_named() {
        assert_eq!(stuck(&[8, 7, 8]), "rank 1 is stuck for 0 s; its last call: step 7");
        assert_eq!(stuck(&[8, 8, 0]), "rank 2 is stuck for 0 s; its last call: ncclCommDestroy");
        let together =
            "ranks 0, 1 are stuck for 0 s, none of them behind another; rank 0's last call: step 7";
        assert_eq!(stuck(&[7, 7]), together);
    }

    fn beat() -> (usize, Event) {
        (0, event_of(Reply::Beat { steps: 1, doing: "waiting".to_owned() }))
    }

    #[test]
    fn beats_that_nobody_heard_in_time_are_no_silence() {
        let (mut crew, send, _open) = crew();
        for _ in 0..4 {
            send.send(beat()).unwrap();
            thread::sleep(SILENCE / 2);
        }
        send.send((0, event_of(Reply::Done(Answer::Ended)))).unwrap();
        // What was said long ago is heard before what was said just now.
        crew.members[0].ask(&Request::End);
        assert_eq!(crew.collect(&[0], crew.limits.stall), Ok(()));
    }

    #[test]
    fn an_answer_to_another_question_is_no_answer() {
        let (mut crew, send, _open) = crew();
        send.send((0, event_of(Reply::Done(Answer::Ended)))).unwrap();
        let named = crew.ask_for(&Request::Name, |answer| match answer {
            Answer::Named(id) => Some(id),
            _ => None,
        });
        assert_eq!(named.unwrap_err().to_string(), "rank 0 answers something else than it was asked");
    }

    #[test]
    fn a_worker_that_beats_no_more_is_silent_however_long_the_coordinator_was_away() {
        let (mut crew, send, _open) = crew();
        send.send(beat()).unwrap();
        thread::sleep(3 * SILENCE);
        let asked = Instant::now();
        let error = crew.ask(&Request::End).unwrap_err().to_string();
        assert!(error.contains("rank 0 has said nothing for"), "{error}");
        assert!(asked.elapsed() < SILENCE + INQUEST + 8 * GLANCE, "{:?}", asked.elapsed());
    }
}
