//! The meeting of ranks over TCP: rank 0 listens, every other brings what it found and waits for the outcome.
//!
//! Everything is bounded: a rank that never comes, and one that comes and says nothing, cost the time that was given
//! and no more. Whoever else comes by is sent away, ranks of another job with a word why, and the meeting goes on.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::checkup::Checkup;
use super::job::Job;
use super::message::{self, Found, MARK, Outcome};
use super::verdict::ranks_in_words;
use crate::launcher::{Place, Rendezvous};

/// Between two tries of a rank whose rank 0 is not there yet, and two looks of rank 0.
const PAUSE: Duration = Duration::from_millis(20);
/// A try that gets no answer at all.
const TRY: Duration = Duration::from_secs(2);
/// Rank 0 may have begun later than we, and is as patient.
const GRACE: Duration = Duration::from_secs(5);

/// Strangers that are named where ranks are missing; the others are counted.
const NAMED: usize = 3;

/// Rank 0's place, open.
pub struct Meeting {
    listener: TcpListener,
    job: Job,
}

/// Everybody came.
pub struct Gathered {
    /// What they found, by rank.
    pub checkups: Vec<Checkup>,
    waiting: Vec<TcpStream>,
}

/// Opens the meeting: for this machine alone where that is its name, else on all addresses. A host's own name often
/// leads to an address on which nobody else reaches it.
pub fn open(rendezvous: &Rendezvous, job: Job) -> Result<Meeting> {
    let Rendezvous { host, port } = rendezvous;
    let listener = match host.as_str() {
        "localhost" | "127.0.0.1" | "::1" => TcpListener::bind((host.as_str(), *port)),
        // Both kinds of addresses, where the machine has both.
        _ => TcpListener::bind(("::", *port)).or_else(|_| TcpListener::bind(("0.0.0.0", *port))),
    };
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    let listener = listener.with_context(|| {
        format!("rank 0 cannot listen on {rendezvous}; give another port with --rendezvous HOST:PORT")
    })?;
    Ok(Meeting { listener, job })
}

impl Meeting {
    /// Waits for all other ranks.
    pub fn gather(self, place: &Place, own: Checkup, timeout: Duration) -> Result<Gathered> {
        let until = Instant::now() + timeout;
        open_more_files();
        let (found, arrivals) = mpsc::channel();
        let mut guests = Guests::default();
        let mut failure = None;
        while guests.came.len() + 1 < place.ranks as usize && failure.is_none() && Instant::now() < until {
            if let Err(error) = self.let_in(&found, until) {
                failure = Some(error.context(format!(
                    "rank 0 has heard {} of {} other ranks and can let in no more; raise its limits (ulimit -n, ulimit -u)",
                    guests.came.len(),
                    place.ranks - 1
                )));
                continue;
            }
            match arrivals.recv_timeout(PAUSE) {
                Ok((read, stream)) => failure = guests.admit(place, &self.job, read, stream).err(),
                Err(_) => continue,
            }
        }
        let failure = failure.or_else(|| guests.missing(place, timeout));
        let (mut checkups, waiting): (Vec<_>, Vec<_>) = guests.came.into_values().unzip();
        checkups.insert(0, own);
        let gathered = Gathered { checkups, waiting };
        match failure {
            None => Ok(gathered),
            Some(error) => {
                gathered.tell(&Outcome::Failed(format!("{error:#}")));
                Err(error)
            }
        }
    }

    /// Lets in all who are at the door, each of whom then says in a thread of its own who it is.
    fn let_in(&self, found: &Sender<(Found, TcpStream)>, until: Instant) -> Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(()),
                    // One that has left before it was let in.
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                    _ => return Err(error.into()),
                },
            };
            let found = found.clone();
            let patience = until.saturating_duration_since(Instant::now()).max(PAUSE);
            // One that says nothing keeps nobody else waiting.
            thread::Builder::new().spawn(move || {
                if let Ok(read) = listen(&stream, patience) {
                    let _ = found.send((read, stream));
                }
            })?;
        }
    }
}

/// Every rank is a socket until all have come, and usual limits are for fewer: takes what may be taken. Where that is not
/// enough either, whoever is let in next says so.
fn open_more_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

impl Gathered {
    /// Tells everybody. One that has gone does not want to know.
    pub fn tell(&self, outcome: &Outcome) {
        for stream in &self.waiting {
            let _ = message::send(stream, outcome);
        }
    }
}

fn listen(stream: &TcpStream, patience: Duration) -> io::Result<Found> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(TRY))?;
    message::receive(stream)
}

/// Who has come.
#[derive(Default)]
struct Guests {
    /// Ranks of this job.
    came: BTreeMap<u32, (Checkup, TcpStream)>,
    /// What was said to the first of those that are not.
    strangers: Vec<String>,
    /// How many those were.
    turned_away: usize,
}

impl Guests {
    /// Takes in what a rank brings, or turns away one that is not of this job. An error is what no rank that comes later can
    /// mend.
    fn admit(&mut self, place: &Place, job: &Job, read: Found, stream: TcpStream) -> Result<()> {
        let rank = read.checkup["rank"].as_u64().unwrap_or_default();
        if let Some(why) = stranger(place, job, &read) {
            let _ = message::send(&stream, &Outcome::Failed(why.clone()));
            self.turned_away += 1;
            if self.strangers.len() < NAMED {
                self.strangers.push(why);
            }
            return Ok(());
        }
        let mark = &read.mark;
        let checkup = (mark == MARK).then(|| serde_json::from_value::<Checkup>(read.checkup));
        let wrong = match checkup {
            Some(Ok(checkup)) => match self.came.entry(checkup.rank) {
                Entry::Vacant(free) => {
                    free.insert((checkup, stream));
                    return Ok(());
                }
                Entry::Occupied(_) => format!("two processes are rank {rank}: one launcher must start all"),
            },
            Some(Err(error)) => format!("what rank {rank} says is not understood: {error}"),
            None => {
                format!(
                    "rank {rank} speaks \"{mark}\" and rank 0 \"{MARK}\": install the same version everywhere"
                )
            }
        };
        let _ = message::send(&stream, &Outcome::Failed(wrong.clone()));
        bail!("{wrong}");
    }

    /// Who has not come, and who has come instead.
    fn missing(&self, place: &Place, timeout: Duration) -> Option<anyhow::Error> {
        let missing: Vec<u32> = (1..place.ranks).filter(|rank| !self.came.contains_key(rank)).collect();
        if missing.is_empty() {
            return None;
        }
        let strangers = self.strangers.iter().map(|why| format!("; turned away: {why}"));
        let more = self.turned_away - self.strangers.len();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Some(anyhow!(
            "{} did not come within {} s; start the doctor on all {} ranks, give more --timeout, or look at one rank with \
             --ranks 1{}{more}",
            ranks_in_words(&missing),
            timeout.as_secs(),
            place.ranks,
            strangers.collect::<String>()
        ))
    }
}

/// Why a rank is none of this job, if it is none.
fn stranger(place: &Place, job: &Job, read: &Found) -> Option<String> {
    let Found { ranks, checkup, .. } = read;
    let rank = checkup["rank"].as_u64().unwrap_or_default();
    let remedy = "give each job another --rendezvous";
    if let Some(difference) = job.differs(&read.job) {
        return Some(format!("rank {rank} of {ranks} is of another job ({difference}): {remedy}"));
    }
    if *ranks != place.ranks || rank == 0 || rank >= u64::from(*ranks) {
        let believes = format!("rank {rank} believes in {ranks} ranks, rank 0 in {}", place.ranks);
        return Some(format!("{believes}: one launcher must start all; {remedy}"));
    }
    None
}

/// Brings what this rank found to rank 0 and waits for the outcome.
pub fn report(
    rendezvous: &Rendezvous,
    place: &Place,
    job: Job,
    checkup: &Checkup,
    timeout: Duration,
) -> Result<Outcome> {
    let stream = connect(rendezvous, timeout)?;
    let found = Found { mark: MARK.to_owned(), job, ranks: place.ranks, checkup };
    stream.set_read_timeout(Some(timeout + GRACE))?;
    let outcome = message::send(&stream, &found).and_then(|()| message::receive(&stream));
    outcome.with_context(|| format!("rank 0 at {rendezvous} does not answer; look at what it says"))
}

fn connect(rendezvous: &Rendezvous, timeout: Duration) -> Result<TcpStream> {
    let until = Instant::now() + timeout;
    loop {
        let failed = match attempt(rendezvous) {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if Instant::now() >= until {
            let seconds = timeout.as_secs();
            return Err(failed).with_context(|| {
                format!(
                    "rank 0 was not at {rendezvous} within {seconds} s; give --rendezvous or more --timeout"
                )
            });
        }
        thread::sleep(PAUSE);
    }
}

fn attempt(rendezvous: &Rendezvous) -> io::Result<TcpStream> {
    let mut last = ErrorKind::AddrNotAvailable.into();
    for address in (rendezvous.host.as_str(), rendezvous.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TRY) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
