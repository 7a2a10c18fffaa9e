//! What a program that measures sees of the library in its own process: a table of two functions of ours, beside
//! those of NCCL's interfaces. It works in the driven mode only; a job has no use for it.

use std::ffi::c_int;

use dynamiccl_spec::ids::{PAIRS, PROTOCOLS};

use super::guard::guarded;
use super::{NAME, Name, assert_table};
use crate::tuner::driven;

/// What has happened since the last order. `dynamiccl-host` has the same.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Seen {
    /// Calls.
    calls: u64,
    /// Those that could not get what was ordered.
    refused: u64,
    /// Bytes of the last.
    bytes: u64,
    /// The version of NCCL's interface.
    interface: u32,
    /// `ncclFunc_t` of the last.
    collective: i32,
    /// The pair whose entry was written, −1 for none.
    pair: i32,
    /// Channels that were asked for, 0 for NCCL's own.
    channels: i32,
    /// The chunk size that was asked for, by its number.
    chunk: i32,
    /// NCCL's own table of the last.
    table: [f32; PAIRS],
}

const _: () = assert!(size_of::<Seen>() == 128);

/// `dynamicclDriver_v1`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    name: Name,
    order: extern "C" fn(u64) -> c_int,
    seen: unsafe extern "C" fn(*mut Seen) -> c_int,
}
assert_table!(Table: name order seen);

/// What a program that measures looks for.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static dynamicclDriver_v1: Table = Table { name: NAME, order, seen };

/// Gives an order: 1 where it is one, 0 where it is not.
extern "C" fn order(bits: u64) -> c_int {
    guarded("order", || c_int::from(driven::give(bits)), || 0)
}

/// Writes what has happened: 1 where there was a call, 0 where there was none.
///
/// # Safety
/// The pointer is null or leads to what can be written.
unsafe extern "C" fn seen(to: *mut Seen) -> c_int {
    let work = || {
        // SAFETY: the caller's promise.
        let (Some(to), Some(seen)) = (unsafe { to.as_mut() }, driven::seen()) else { return 0 };
        let answer = seen.answer;
        let mut table = [0.0; PAIRS];
        let rows = seen.last.table.known.0.iter();
        table.chunks_exact_mut(PROTOCOLS).zip(rows).for_each(|(to, row)| to.copy_from_slice(row));
        *to = Seen {
            calls: seen.calls,
            refused: seen.refused,
            bytes: seen.last.bytes,
            interface: seen.interface,
            collective: seen.last.collective as i32,
            pair: answer.entry().map_or(-1, |(pair, _)| pair as i32),
            channels: answer.channels().unwrap_or(0),
            chunk: answer.chunk() as i32,
            table,
        };
        1
    };
    guarded("seen", work, || 0)
}
