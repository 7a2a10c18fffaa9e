//! NCCL's own log, so that what we say stands among what NCCL says, under the user's NCCL_DEBUG.
//!
//! NCCL hands its logger to every plugin, or none at all; all interfaces of this library write through this
//! one. It knows nothing of what is said.

use std::ffi::{CStr, CString, c_char, c_int, c_ulong};
use std::io::Write;

/// `ncclDebugLogger_t`: level, subsystems, where it comes from, and a format with its arguments.
pub type RawLogger = unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, ...);

/// NCCL's log, or nowhere where NCCL gave none.
#[derive(Debug, Clone, Copy)]
pub struct Logger(Option<RawLogger>);

/// NCCL_LOG_WARN and NCCL_LOG_INFO.
const WARN: c_int = 2;
const INFO: c_int = 3;

/// NCCL_TUNING, and with it NCCL_INIT and NCCL_ENV: a user who asks for any of these sees our lines.
const TUNING: c_ulong = 0x40;
const SUBSYSTEMS: c_ulong = 0x1 | 0x80 | TUNING;
/// Where NCCL says a line comes from.
const SOURCE: &CStr = c"dynamiccl";
/// What is said is an argument and never the format.
const FORMAT: &CStr = c"%s";

impl Logger {
    /// Says nothing.
    pub const NOWHERE: Logger = Logger(None);

    /// Writes through this logger.
    ///
    /// # Safety
    /// It is NCCL's, or another that takes what `ncclDebugLogger_t` takes, for as long as this is in use.
    pub const unsafe fn new(raw: Option<RawLogger>) -> Self {
        Logger(raw)
    }

    /// Says what nobody may miss: why a job cannot go on, or goes on at its own risk. On the error stream as well, since
    /// NCCL shows its log only to who asks for it.
    pub fn fail(&self, text: &str) {
        self.warn(text);
        complain(&mut std::io::stderr(), text);
    }

    /// Says what a user must know.
    pub fn warn(&self, text: &str) {
        self.say(WARN, SUBSYSTEMS, text);
    }

    /// Says what a user may want to know.
    pub fn info(&self, text: &str) {
        self.say(INFO, SUBSYSTEMS, text);
    }

    /// Says what only a user who asks how calls are tuned wants to know.
    pub fn tuning(&self, text: &str) {
        self.say(INFO, TUNING, text);
    }

    fn say(&self, level: c_int, subsystems: c_ulong, text: &str) {
        let Some(raw) = self.0 else { return };
        let Ok(line) = CString::new(line(text)) else { return };
        // SAFETY: who made this promised what the function takes; all strings end and outlive the call.
        unsafe { raw(level, subsystems, SOURCE.as_ptr(), 0, FORMAT.as_ptr(), line.as_ptr()) };
    }
}

/// Writes a line where somebody may read it. A stream that is closed or full has no reader, and that is no reason
/// to panic, as `eprintln!` would.
pub fn complain(stream: &mut impl Write, text: &str) {
    let _ = writeln!(stream, "{}", line(text));
}

/// A line is text of one line, whatever a path or a value that it quotes may hold.
fn line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("DynamICCL: {plain}")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A stream that nobody reads.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_stream_is_no_reason_to_panic() {
        complain(&mut Closed, "no policy");
        let mut read = Vec::new();
        complain(&mut read, "no policy");
        assert_eq!(read, b"DynamICCL: no policy\n");
    }
}
