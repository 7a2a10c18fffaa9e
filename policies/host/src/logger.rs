//! A log in NCCL's place that keeps what a plugin says.
//!
//! `ncclDebugLogger_t` takes a format and any number of arguments. Rust cannot define such a function; but the
//! plugin's format is always `%s` with one string, and on the machines that NCCL runs on (x86-64 and 64-bit ARM, Linux)
//! arguments of a variadic call stand where those of a plain one stand. Elsewhere plugins get no log.

use std::ffi::{CStr, c_char, c_int, c_ulong};
use std::sync::{Mutex, PoisonError};

/// `ncclDebugLogger_t`.
pub type RawLogger = unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, ...);

/// NCCL_LOG_WARN and NCCL_LOG_INFO.
const WARN: c_int = 2;
const INFO: c_int = 3;
/// NCCL_INIT: how a communicator begins, and not how a call is tuned.
const INIT: c_ulong = 1;
/// Lines that are kept, so that nobody's flood is ours.
const KEPT: usize = 1024;

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// Warnings, each once.
    pub warnings: Vec<String>,
    /// How communicators begin.
    pub infos: Vec<String>,
}

static SAID: Mutex<Said> = Mutex::new(Said { warnings: Vec::new(), infos: Vec::new() });

/// The log to hand to a plugin.
pub fn raw() -> Option<RawLogger> {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        type Plain = unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, *const c_char);
        // SAFETY: see the top of this file.
        Some(unsafe { std::mem::transmute::<Plain, RawLogger>(keep) })
    }
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    None
}

/// Takes what was said since the last time.
pub fn take() -> Said {
    std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps a line.
///
/// # Safety
/// Format and argument are strings; the argument is there if the format is `%s`.
unsafe extern "C" fn keep(
    level: c_int,
    subsystems: c_ulong,
    _source: *const c_char,
    _line: c_int,
    format: *const c_char,
    text: *const c_char,
) {
    // SAFETY: the caller's promise.
    if format.is_null() || unsafe { CStr::from_ptr(format) } != c"%s" || text.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = match level {
        WARN => &mut said.warnings,
        INFO if subsystems & INIT != 0 => &mut said.infos,
        _ => return,
    };
    if lines.len() < KEPT && !lines.contains(&text) {
        lines.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_kept_once() {
        let log = raw().unwrap();
        let say = |level, subsystems, format: &CStr, text: &CStr| {
            // SAFETY: strings.
            unsafe { log(level, subsystems, c"here".as_ptr(), 0, format.as_ptr(), text.as_ptr()) };
        };
        say(WARN, 0xc1, c"%s", c"beware");
        say(WARN, 0xc1, c"%s", c"beware");
        say(INFO, 0xc1, c"%s", c"begins");
        say(INFO, 0x40, c"%s", c"a call");
        say(WARN, 0xc1, c"%d %s", c"another format");
        let said = take();
        assert_eq!((said.warnings, said.infos), (vec!["beware".to_owned()], vec!["begins".to_owned()]));
        assert_eq!(take(), Said::default());
    }
}
