//! Lines of JSON over TCP.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No line of ours is longer; a stranger's may be.
const LONGEST: u64 = 1 << 20;

/// The side that is written to, by several threads.
#[derive(Debug)]
pub struct Writer(Mutex<TcpStream>);

impl Writer {
    /// Over this connection.
    pub fn new(stream: TcpStream) -> Self {
        Writer(Mutex::new(stream))
    }

    /// Sends a message.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}

/// The side that is read from.
#[derive(Debug)]
pub struct Reader(BufReader<TcpStream>);

impl Reader {
    /// Over this connection.
    pub fn new(stream: TcpStream) -> Self {
        Reader(BufReader::new(stream))
    }

    /// Waits as long as it takes from now on.
    pub fn be_patient(&self) -> io::Result<()> {
        self.0.get_ref().set_read_timeout(None)
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

    #[test]
    fn messages_arrive_and_ends_are_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut reader = Reader::new(TcpStream::connect(address).unwrap());
        let (stream, _) = listener.accept().unwrap();
        let writer = Writer::new(stream);
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
