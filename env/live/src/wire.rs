//! Lines of JSON over TCP.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No line of ours is longer; a stranger's may be.
const LONGEST: u64 = 1 << 20;

/// How long the other side may take nothing of what it is sent: all of ours have a thread that only reads.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// The side that is written to, by several threads.
#[derive(Debug)]
pub struct Writer(Mutex<TcpStream>);

impl Writer {
    /// Over this connection.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        Writer::patient(stream, PATIENCE)
    }

    fn patient(stream: TcpStream, limit: Duration) -> io::Result<Self> {
        stream.set_write_timeout(Some(limit))?;
        Ok(Writer(Mutex::new(stream)))
    }

    /// Sends a message. After an error the other side may have half of it: nothing can be sent any more.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}

/// The side that is read from.
#[derive(Debug)]
pub struct Reader(BufReader<Bounded>);

/// A connection that is read from until a moment: who sends a byte now and then does not hold anybody up for longer.
#[derive(Debug)]
struct Bounded {
    stream: TcpStream,
    until: Option<Instant>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
        }
        self.stream.read(buffer)
    }
}

impl Reader {
    /// Over this connection, until a moment.
    pub fn until(stream: TcpStream, until: Instant) -> Self {
        Reader(BufReader::new(Bounded { stream, until: Some(until) }))
    }

    /// Waits as long as it takes from now on.
    pub fn be_patient(&mut self) -> io::Result<()> {
        let bounded = self.0.get_mut();
        bounded.until = None;
        bounded.stream.set_read_timeout(None)
    }

    /// The next message; none where the other side has closed.
    pub fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        let mut line = Vec::new();
        (&mut self.0).take(LONGEST).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(io::Error::new(ErrorKind::InvalidData, "a message was cut off"));
        }
        serde_json::from_slice(&line).map(Some).map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn soon(millis: u64) -> Instant {
        Instant::now() + Duration::from_millis(millis)
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (stream, listener.accept().unwrap().0)
    }

    #[test]
    fn who_sends_byte_after_byte_does_not_hold_a_reader_up() {
        let (mut slow, stream) = connection();
        thread::spawn(move || {
            while slow.write_all(b" ").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let begun = Instant::now();
        assert!(Reader::until(stream, soon(300)).next::<String>().is_err());
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }

    #[test]
    fn who_reads_nothing_does_not_hold_a_writer_up() {
        let (_deaf, stream) = connection();
        let writer = Writer::patient(stream, Duration::from_millis(100)).unwrap();
        let (begun, long) = (Instant::now(), "x".repeat(1 << 20));
        assert!((0..100).any(|_| writer.send(&long).is_err()));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }

    #[test]
    fn messages_arrive_and_ends_are_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut reader = Reader::until(TcpStream::connect(address).unwrap(), soon(10_000));
        let (stream, _) = listener.accept().unwrap();
        let writer = Writer::new(stream).unwrap();
        writer.send(&vec![1, 2]).unwrap();
        writer.send(&"two\nlines").unwrap();
        writer.0.lock().unwrap().write_all(b"\"half").unwrap();
        drop(writer);
        assert_eq!(reader.next::<Vec<i32>>().unwrap(), Some(vec![1, 2]));
        assert_eq!(reader.next::<String>().unwrap().as_deref(), Some("two\nlines"));
        assert!(reader.next::<String>().is_err());
        assert_eq!(reader.next::<String>().unwrap(), None);
    }
}
