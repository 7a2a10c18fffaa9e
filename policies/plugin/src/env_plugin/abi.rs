//! What NCCL sees of the env plugin: `ncclEnvPlugin_v1` (NCCL 2.28.7) and `ncclEnvPlugin_v2` (2.30.7, which
//! adds the log).
//!
//! Layouts are those of NCCL's `src/include/plugin/env/env_v1.h` and `env_v2.h` at these tags. An answer is
//! never late and never an error; only `init` may refuse, as a tuner's does: a rank with other threads or
//! another buffer than its peers would hang them.

use std::ffi::{CStr, c_char};
use std::ptr;

use super::answers::{self, BUFFER, THREADS};
use super::opening::Handed;
use crate::abi::entry::panicked;
use crate::abi::guard::guarded;
use crate::abi::{INVALID_USAGE, NAME, Name, NcclResult, SUCCESS, assert_table};
use crate::logger::{Logger, RawLogger};
use crate::settings::{environment, strict};

/// NCCL's table of functions, with the `init` of its version.
#[repr(C)]
pub struct Table<Init> {
    name: Name,
    init: Init,
    finalize: extern "C" fn() -> NcclResult,
    get: unsafe extern "C" fn(*const c_char) -> *const c_char,
}

type InitV1 = unsafe extern "C" fn(u8, u8, u8, *const c_char) -> NcclResult;
type InitV2 = unsafe extern "C" fn(u8, u8, u8, *const c_char, Option<RawLogger>) -> NcclResult;

assert_table!(Table<InitV1>: name init finalize get);
assert_table!(Table<InitV2>: name init finalize get);

/// What NCCL 2.28.7 to 2.30.6 look for.
#[unsafe(export_name = "ncclEnvPlugin_v1")]
pub static V1: Table<InitV1> = Table { name: NAME, init: init_v1, finalize, get };

/// What NCCL 2.30.7 and newer look for.
#[unsafe(export_name = "ncclEnvPlugin_v2")]
pub static V2: Table<InitV2> = Table { name: NAME, init: init_v2, finalize, get };

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *mut c_char;
}

unsafe extern "C" fn init_v1(_: u8, _: u8, _: u8, _: *const c_char) -> NcclResult {
    init(Logger::NOWHERE)
}

unsafe extern "C" fn init_v2(_: u8, _: u8, _: u8, _: *const c_char, logger: Option<RawLogger>) -> NcclResult {
    // SAFETY: NCCL's logger lives as long as NCCL.
    init(unsafe { Logger::new(logger) })
}

fn init(logger: Logger) -> NcclResult {
    let work = || {
        let handed = match Handed::read(environment) {
            Ok(handed) => handed,
            Err(error) if strict(environment) => {
                logger.fail(&format!(
                    "{error}. This rank would run with other threads or buffers than its peers, and they would \
                     hang: it stops. Mend it, or set DYNAMICCL_MODE=off on all ranks"
                ));
                return INVALID_USAGE;
            }
            Err(error) => {
                logger.fail(&format!("{error}. DYNAMICCL_STRICT=0: NCCL's own threads and buffers"));
                Handed::default()
            }
        };
        THREADS.set(handed.threads);
        BUFFER.set(handed.buffer);
        for (variable, value) in [("NCCL_NTHREADS", handed.threads), ("NCCL_BUFFSIZE", handed.buffer)] {
            if let Some(value) = value {
                logger.info(&format!("env plugin: {variable}={value} unless the user has set it"));
            }
        }
        SUCCESS
    };
    let otherwise = || {
        THREADS.set(None);
        BUFFER.set(None);
        panicked(logger, "env plugin")
    };
    guarded("env init", work, otherwise)
}

extern "C" fn finalize() -> NcclResult {
    let work = || {
        THREADS.set(None);
        BUFFER.set(None);
    };
    guarded("env finalize", work, || ());
    SUCCESS
}

unsafe extern "C" fn get(name: *const c_char) -> *const c_char {
    if name.is_null() {
        return ptr::null();
    }
    // SAFETY: NCCL's string. What comes back lives in the environment, as it does without us.
    let set = unsafe { getenv(name) };
    if !set.is_null() {
        return set;
    }
    let work = || {
        // SAFETY: NCCL's string.
        let ours = answers::to(unsafe { CStr::from_ptr(name) }.to_bytes()).and_then(|answer| answer.get());
        ours.map_or(ptr::null(), |digits| digits.as_ptr().cast())
    };
    guarded("env get", work, ptr::null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault;

    #[test]
    fn a_panic_stops_a_rank_that_begins_and_is_nothing_later() {
        // SAFETY: strings of C, or null.
        unsafe {
            assert!(fault::with("env init", || {
                assert_eq!((V1.init)(2, 28, 9, ptr::null()), INVALID_USAGE);
            }));
            assert!(fault::with("env init", || {
                assert_eq!((V2.init)(2, 30, 7, ptr::null(), None), INVALID_USAGE);
            }));
            assert!(fault::with("env get", || assert!((V1.get)(c"NCCL_NTHREADS".as_ptr()).is_null())));
        }
        assert!(fault::with("env finalize", || assert_eq!((V2.finalize)(), SUCCESS)));
    }
}
