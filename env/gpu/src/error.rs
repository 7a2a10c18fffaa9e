//! What can go wrong, in the libraries' own words.

use std::ffi::OsString;

/// Why something failed.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// A library is not there.
    #[error("{}: {why}; {remedy}", name.display())]
    Closed {
        /// What was opened.
        name: OsString,
        /// What the dynamic linker says.
        why: libloading::Error,
        /// What helps.
        remedy: &'static str,
    },
    /// A library lacks a function.
    #[error("{library} has no {symbol}: it is older than we can use ({why})")]
    Lacks {
        /// The library.
        library: &'static str,
        /// The function.
        symbol: &'static str,
        /// What the dynamic linker says.
        why: libloading::Error,
    },
    /// CUDA refuses.
    #[error("{call}: {name} ({code}): {text}")]
    Cuda {
        /// What was called.
        call: &'static str,
        /// CUDA's name of the error.
        name: String,
        /// Its number.
        code: i32,
        /// CUDA's words.
        text: String,
    },
    /// NCCL refuses.
    #[error("{call}: {name} ({code}): {text}")]
    Nccl {
        /// What was called.
        call: &'static str,
        /// NCCL's name of the error.
        name: &'static str,
        /// Its number.
        code: i32,
        /// NCCL's words, with its last warning.
        text: String,
    },
    /// A device that there is not.
    #[error("GPU {asked}: this process sees {there} (CUDA_VISIBLE_DEVICES?)")]
    NoDevice {
        /// What was asked for.
        asked: u32,
        /// How many there are.
        there: u32,
    },
    /// More is asked for than a buffer holds.
    #[error("{call}: {asked} bytes of a buffer of {there}")]
    Beyond {
        /// What was called.
        call: &'static str,
        /// Bytes asked for.
        asked: usize,
        /// Bytes there.
        there: usize,
    },
    /// NCCL's library has another release than the functions that we use are from.
    #[error("NCCL {found} is too old: {needed} or newer is needed")]
    TooOld {
        /// What is there.
        found: String,
        /// What is needed.
        needed: &'static str,
    },
}

impl GpuError {
    /// Whether NCCL says that the fault is another rank's.
    pub fn is_remote(&self) -> bool {
        matches!(self, GpuError::Nccl { code: 6 | 2, .. })
    }
}
