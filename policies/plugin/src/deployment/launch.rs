//! What NCCL reads once per process, before any communicator: threads of a block and the buffer's size.
//!
//! A policy chooses threads for a process, not for a call, and no communicator is there yet to ask it about;
//! so the choice is written down, where every rank reads the same.

use dynamiccl_spec::Bytes;
use serde::Deserialize;

/// NCCL takes whole warps, and no block has more.
const THREADS: std::ops::RangeInclusive<u32> = 64..=640;
const WARP: u32 = 32;
/// NCCL keeps eight steps in a buffer, and its size in 32 bits.
const BUFFER: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 30;
const PAGE: u64 = 4096;

/// What a launch sets; what is none stays NCCL's own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Launch {
    /// Threads of a block (`NCCL_NTHREADS`).
    pub threads: Option<u32>,
    /// Bytes of the Simple protocol's buffer (`NCCL_BUFFSIZE`), as in "4M".
    pub buffer: Option<String>,
}

impl Launch {
    /// Whether NCCL would take it as it is.
    pub fn check(&self) -> Result<(), String> {
        if let Some(threads) = self.threads
            && !(THREADS.contains(&threads) && threads.is_multiple_of(WARP))
        {
            return Err(format!("threads = {threads}: give a multiple of 32 from 64 to 640"));
        }
        self.buffer_bytes().map(drop)
    }

    /// The buffer's bytes.
    pub fn buffer_bytes(&self) -> Result<Option<u64>, String> {
        let Some(text) = &self.buffer else { return Ok(None) };
        let read = text.parse().ok().map(|Bytes(bytes)| bytes);
        let fitting = read.filter(|bytes| BUFFER.contains(bytes) && bytes.is_multiple_of(PAGE));
        let wrong = || format!("buffer = \"{text}\": give a multiple of 4K from 64K to 1G, as in \"4M\"");
        fitting.map(Some).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(threads: Option<u32>, buffer: Option<&str>) -> Launch {
        Launch { threads, buffer: buffer.map(str::to_owned) }
    }

    #[test]
    fn what_nccl_takes_is_taken() {
        assert_eq!(launch(None, None).check(), Ok(()));
        for threads in [64, 96, 128, 256, 512, 640] {
            assert_eq!(launch(Some(threads), None).check(), Ok(()));
        }
        assert_eq!(launch(None, Some("4M")).buffer_bytes(), Ok(Some(4 << 20)));
        assert_eq!(launch(None, Some("65536")).buffer_bytes(), Ok(Some(65536)));
    }

    #[test]
    fn what_nccl_would_bend_is_refused() {
        for threads in [0, 32, 65, 100, 672, u32::MAX] {
            let said = launch(Some(threads), None).check().unwrap_err();
            assert!(said.contains(&threads.to_string()) && said.contains("64 to 640"), "{said}");
        }
        for buffer in ["", "0", "4 elephants", "2G", "65537", "-4M", "1K"] {
            let said = launch(None, Some(buffer)).check().unwrap_err();
            assert!(said.contains("64K to 1G"), "{buffer}: {said}");
        }
    }
}
