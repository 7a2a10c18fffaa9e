//! A connection whose other host may be gone without a word.

use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

const TCP: c_int = 6;
const USER_TIMEOUT: c_int = 18;

unsafe extern "C" {
    fn setsockopt(socket: c_int, level: c_int, option: c_int, value: *const c_void, length: c_uint) -> c_int;
}

/// Lets the kernel break a connection of which nothing that was sent has arrived for so long; by itself it tries for a
/// quarter of an hour.
pub fn give_up_after(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    let millis = c_uint::try_from(limit.as_millis()).unwrap_or(c_uint::MAX);
    let (value, length) = (std::ptr::from_ref(&millis).cast(), size_of::<c_uint>() as c_uint);
    // SAFETY: the stream is open, and the option takes a number of this length.
    match unsafe { setsockopt(stream.as_raw_fd(), TCP, USER_TIMEOUT, value, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_kernel_takes_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        give_up_after(&stream, Duration::from_secs(20)).unwrap();
    }
}
