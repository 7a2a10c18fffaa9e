//! One rank: connects to the coordinator, and does what it is asked until the connection closes.
//!
//! It beats while it works. Whatever goes wrong is said over the connection, with what was being done, and the
//! coordinator decides; a worker whose coordinator is gone ends at once, even if a library of it hangs.

mod data;
mod errors;
mod heart;
mod rank;

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use dynamiccl_gpu::{die_with_parent, give_up_after, leave, parent};

pub use errors::WorkerError;

use crate::launch::secret;
use crate::message::{Answer, Challenge, Hello, Reply, Request, Welcome};
use crate::proof::{Side, proof, proves};
use crate::wire::{Reader, Writer};
use heart::Doing;
use rank::Rank;

/// Where the coordinator is: its variable.
pub const ADDRESS: &str = "DYNAMICCL_LIVE_ADDRESS";
/// What only workers of a run know: its variable, for a command line can be read by others.
pub const SECRET: &str = "DYNAMICCL_LIVE_SECRET";
/// The rank: its variable.
pub const RANK: &str = "DYNAMICCL_LIVE_RANK";
/// The GPU by its number in the worker's process: its variable.
pub const DEVICE: &str = "DYNAMICCL_LIVE_DEVICE";
/// The process that started a worker: its variable.
pub const PARENT: &str = "DYNAMICCL_LIVE_PARENT";

/// How many seconds the coordinator is looked for, which may start after its workers: its variable.
pub const WAIT: &str = "DYNAMICCL_LIVE_WAIT";

/// A coordinator that takes nothing for so long is gone with its host. It gives ranks up sooner itself.
const GONE: Duration = Duration::from_secs(20);
/// How long one try to reach it may take.
const TRY: Duration = Duration::from_secs(5);
/// Exit code of a worker whose coordinator is gone.
const ABANDONED: i32 = 3;

/// Who a worker is, and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Where the coordinator is.
    pub address: String,
    /// What only workers of this run know.
    pub secret: String,
    /// The rank.
    pub rank: u32,
    /// Its GPU.
    pub device: u32,
    /// The process that started it, with which it ends.
    pub parent: Option<i32>,
    /// How long the coordinator is looked for.
    pub wait: Duration,
}

impl Identity {
    /// Reads it from variables.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, WorkerError> {
        let need = |name: &'static str| get(name).ok_or(WorkerError::Unset(name));
        let whole = |name: &'static str| -> Result<u32, WorkerError> {
            let value = need(name)?;
            value.parse().map_err(|_| WorkerError::Number(name, value))
        };
        Ok(Identity {
            address: need(ADDRESS)?,
            secret: need(SECRET)?,
            rank: whole(RANK)?,
            device: whole(DEVICE)?,
            parent: get(PARENT).and_then(|parent| parent.parse().ok()),
            wait: Duration::from_secs(whole(WAIT)?.into()),
        })
    }
}

/// Is a worker until it is asked to end.
pub fn run(identity: &Identity) -> Result<(), WorkerError> {
    if let Some(started_by) = identity.parent {
        die_with_parent();
        if parent() != started_by {
            leave(ABANDONED);
        }
    }
    heart::pulse();
    let until = Instant::now() + identity.wait;
    let stream = connect(&identity.address, until)?;
    let broken = |error: std::io::Error| WorkerError::Unreachable(identity.address.clone(), error);
    stream.set_nodelay(true).map_err(broken)?;
    give_up_after(&stream, GONE).map_err(broken)?;
    let writer = Arc::new(stream.try_clone().and_then(Writer::new).map_err(broken)?);
    // It may come at the last moment, and then say hello to others first.
    let mut reader = Reader::until(stream, until + GONE);
    let met = greet(identity, &writer, &mut reader).and_then(|known| reader.be_patient().map(|()| known));
    if !met.map_err(broken)? {
        return Err(WorkerError::Impostor(identity.address.clone()));
    }
    let ended = Arc::new(AtomicBool::new(false));
    let requests = listen(reader, Arc::clone(&ended));
    let doing = Arc::new(Doing::starting());
    let of_heart = Arc::clone(&ended);
    heart::start(Arc::clone(&doing), Arc::clone(&writer), move || abandoned(&of_heart));
    serve(identity, (&requests, &ended), &doing, &writer)
}

/// Proves the secret, and whether who is there knows it, too.
fn greet(identity: &Identity, writer: &Writer, reader: &mut Reader) -> io::Result<bool> {
    let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "it has closed the connection");
    let challenge: Challenge = reader.next()?.ok_or_else(gone)?;
    let mut hello = Hello {
        proof: String::new(),
        nonce: secret()?,
        rank: identity.rank,
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let said = hello.said(&challenge);
    hello.proof = proof(&identity.secret, Side::Worker, &said.each_ref().map(String::as_str));
    writer.send(&hello)?;
    let welcome: Welcome = reader.next()?.ok_or_else(gone)?;
    Ok(proves(&welcome.proof, &identity.secret, Side::Coordinator, &[&hello.nonce]))
}

/// Does one request after the other.
fn serve(
    identity: &Identity,
    (requests, ended): (&mpsc::Receiver<Request>, &AtomicBool),
    doing: &Arc<Doing>,
    writer: &Writer,
) -> Result<(), WorkerError> {
    let mut rank = Rank::new(identity.rank, identity.device, Arc::clone(doing));
    for request in requests {
        let last = request == Request::End;
        let reply = match rank.answer(request) {
            Ok(answer) => Reply::Done(answer),
            Err(error) => {
                Reply::Failed { doing: doing.text(), why: error.to_string(), remote: error.is_remote() }
            }
        };
        let failed = matches!(reply, Reply::Failed { .. });
        // The coordinator may close the connection as soon as it hears of it.
        ended.store(last && !failed, Ordering::SeqCst);
        doing.watch(rank.communicator().map_or(Weak::new(), Arc::downgrade));
        doing.rest();
        if writer.send(&reply).is_err() {
            leave(ABANDONED);
        }
        if last && !failed {
            debug_assert_eq!(reply, Reply::Done(Answer::Ended));
            return Ok(());
        }
    }
    // The thread that reads ends the process when the connection closes; it cannot end without.
    leave(ABANDONED)
}

/// Reads requests until the connection closes, and then ends the process, whatever it does; well where its work has `ended`.
fn listen(mut reader: Reader, ended: Arc<AtomicBool>) -> mpsc::Receiver<Request> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(Some(request)) = reader.next() {
            if send.send(request).is_err() {
                return;
            }
        }
        abandoned(&ended)
    });
    receive
}

/// Ends the process, whose coordinator is gone; well where its work has `ended`.
fn abandoned(ended: &AtomicBool) -> ! {
    leave(if ended.load(Ordering::SeqCst) { 0 } else { ABANDONED })
}

fn connect(address: &str, until: Instant) -> Result<TcpStream, WorkerError> {
    loop {
        match try_all(address) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > until => {
                return Err(WorkerError::Unreachable(address.to_owned(), error));
            }
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Tries every address that a name has; a host that does not answer at all costs no more than a try.
fn try_all(address: &str) -> io::Result<TcpStream> {
    let mut why = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for one in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&one, TRY) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error,
        }
    }
    Err(why)
}
