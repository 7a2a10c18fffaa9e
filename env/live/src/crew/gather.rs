//! How workers and their coordinator find each other.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::fault::{LiveError, What};
use super::log::tail;
use super::member::{Child, Event, Member};
use super::{Crew, GLANCE, Limits, event_of};
use crate::launch::secret;
use crate::message::{Challenge, Hello, Reply, Welcome};
use crate::proof::{Side, proof, proves};
use crate::wire::{Reader, Writer};

/// How long a stranger may take to say who it is.
const COURTESY: Duration = Duration::from_secs(5);

/// Where workers knock, with the secret that lets them in.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    secret: String,
}

impl Door {
    /// Opens at a host's port; 0 for any.
    pub fn open(host: &str, port: u16, secret: String) -> Result<Self, LiveError> {
        let meet = |why| LiveError::Meet { address: format!("{host}:{port}"), why };
        let listener = TcpListener::bind((host, port)).map_err(meet)?;
        listener.set_nonblocking(true).map_err(meet)?;
        Ok(Door { listener, secret })
    }

    /// Where it is.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What lets a worker in.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The next worker, if one knocks; whoever does not know the secret is sent away.
    fn next(&self) -> Option<(Hello, Writer, Reader)> {
        let (stream, _) = self.listener.accept().ok()?;
        let open = || -> io::Result<(Writer, Reader)> {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            Ok((Writer::new(stream.try_clone()?)?, Reader::until(stream, Instant::now() + COURTESY)))
        };
        let (stream, mut reader) = open().ok()?;
        let hello = self.greet(&stream, &mut reader)?;
        reader.be_patient().ok()?;
        Some((hello, stream, reader))
    }

    /// Asks who knocks to prove that it knows the secret, and proves the same.
    fn greet(&self, writer: &Writer, reader: &mut Reader) -> Option<Hello> {
        let challenge = Challenge { nonce: secret().ok()? };
        writer.send(&challenge).ok()?;
        let hello: Hello = reader.next().ok()??;
        let said = hello.said(&challenge);
        let known = proves(&hello.proof, &self.secret, Side::Worker, &said.each_ref().map(String::as_str));
        if !known || hello.version != env!("CARGO_PKG_VERSION") {
            return None;
        }
        let proof = proof(&self.secret, Side::Coordinator, &[&hello.nonce]);
        writer.send(&Welcome { proof }).ok()?;
        Some(hello)
    }
}

/// Waits until all workers are there. `children` are those that this process has started, by rank; others come by
/// themselves.
pub fn gather(
    door: &Door,
    ranks: u32,
    mut children: Vec<Option<Child>>,
    limits: Limits,
    stop: Box<dyn Fn() -> bool + Send>,
) -> Result<Crew, LiveError> {
    let (send, events) = mpsc::channel();
    let mut came: Vec<Option<Arrived>> = (0..ranks).map(|_| None).collect();
    let until = Instant::now() + limits.gather;
    while came.iter().any(Option::is_none) {
        if let Some((hello, stream, reader)) = door.next() {
            if let Some(place) = came.get_mut(hello.rank as usize).filter(|place| place.is_none()) {
                listen(hello.rank as usize, reader, send.clone());
                *place = Some(Arrived { pid: hello.pid, stream });
            }
            continue;
        }
        let trouble = if stop() { Some(LiveError::Stopped) } else { early_death(&mut children, &came) };
        let late = (Instant::now() > until).then(|| missing(&came, &children, &limits));
        if let Some(error) = trouble.or(late) {
            children.iter_mut().flatten().for_each(Child::end);
            return Err(error);
        }
        thread::sleep(GLANCE / 5);
    }
    let members = came.into_iter().flatten().zip(children).enumerate();
    let members = members
        .map(|(rank, (Arrived { pid, stream }, child))| Member::new(rank as u32, pid, stream, child))
        .collect();
    Ok(Crew { members, events, limits, stop, looked: Instant::now() })
}

struct Arrived {
    pid: u32,
    stream: Writer,
}

/// Reads what a worker says for as long as it does.
fn listen(rank: usize, mut reader: Reader, events: Sender<(usize, Event)>) {
    thread::spawn(move || {
        let why = loop {
            match reader.next::<Reply>() {
                Ok(Some(reply)) => {
                    if events.send((rank, event_of(reply))).is_err() {
                        return;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        // Nobody listens any more where the crew is gone.
        let _ = events.send((rank, Event::Closed(why)));
    });
}

/// A process that ended before it came.
fn early_death(children: &mut [Option<Child>], came: &[Option<Arrived>]) -> Option<LiveError> {
    let waiting = children.iter_mut().enumerate().filter(|(rank, _)| came[*rank].is_none());
    for (rank, child) in waiting {
        let Some(child) = child else { continue };
        if let Ok(Some(status)) = child.process.try_wait() {
            let what = What::Died(status.to_string());
            let (doing, log) = ("starting".to_owned(), tail(&child.log));
            return Some(LiveError::Fault(super::Fault { rank: rank as u32, what, doing, log }));
        }
    }
    None
}

fn missing(came: &[Option<Arrived>], children: &[Option<Child>], limits: &Limits) -> LiveError {
    let missing: Vec<u32> = (0..came.len()).filter(|&rank| came[rank].is_none()).map(|r| r as u32).collect();
    let first = missing.first().and_then(|&rank| children.get(rank as usize)).and_then(Option::as_ref);
    let log = first.map_or(String::new(), |child| tail(&child.log));
    LiveError::Missing { missing, seconds: limits.gather.as_secs(), log }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    const SECRET: &str = "what only ranks of a run know";

    /// Knocks with a secret; what the door makes of it.
    fn knock(secret_of_worker: &str, rank_said: u32) -> Option<u32> {
        let door = Door::open("127.0.0.1", 0, SECRET.to_owned()).unwrap();
        let stream = TcpStream::connect(door.address().unwrap()).unwrap();
        let secret_of_worker = secret_of_worker.to_owned();
        let worker = thread::spawn(move || {
            let writer = Writer::new(stream.try_clone().unwrap()).unwrap();
            let mut reader = Reader::until(stream, Instant::now() + COURTESY);
            let challenge: Challenge = reader.next().unwrap().unwrap();
            let (nonce, version) = ("n".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
            let mut hello = Hello { proof: String::new(), nonce, rank: 1, pid: 7, version };
            let said = hello.said(&challenge);
            hello.proof = proof(&secret_of_worker, Side::Worker, &said.each_ref().map(String::as_str));
            hello.rank = rank_said;
            let line = serde_json::to_string(&hello).unwrap();
            assert!(!line.contains(&secret_of_worker), "{line}");
            writer.send(&hello).unwrap();
            let welcome: Option<Welcome> = reader.next().unwrap_or_default();
            welcome.is_some_and(|welcome| proves(&welcome.proof, SECRET, Side::Coordinator, &["n"]))
        });
        let until = Instant::now() + COURTESY;
        let came = loop {
            match door.next() {
                None if !worker.is_finished() && Instant::now() < until => {}
                came => break came.map(|(hello, ..)| hello.rank),
            }
        };
        assert_eq!(worker.join().unwrap(), came.is_some(), "who is let in is told so, by somebody who may");
        came
    }

    #[test]
    fn who_cannot_prove_the_secret_is_sent_away() {
        assert_eq!(knock(SECRET, 1), Some(1));
        assert_eq!(knock("another secret", 1), None);
        assert_eq!(knock(SECRET, 2), None, "a proof is of one rank");
    }
}
