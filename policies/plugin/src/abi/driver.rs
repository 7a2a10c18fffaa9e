//! What a program that measures sees of the library in its own process: a table of two functions of ours, beside
//! those of NCCL's interfaces. It works in the driven mode only; a job has no use for it.

use std::ffi::c_int;

use dynamiccl_spec::driven::RawSeen;
use dynamiccl_spec::ids::{PAIRS, PROTOCOLS};

use super::guard::guarded;
use super::{NAME, Name, assert_table};
use crate::tuner::driven;

/// What stands at [`dynamiccl_spec::driven::DRIVER`].
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    name: Name,
    order: extern "C" fn(u64) -> c_int,
    seen: unsafe extern "C" fn(*mut RawSeen) -> c_int,
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
unsafe extern "C" fn seen(to: *mut RawSeen) -> c_int {
    let work = || {
        // SAFETY: the caller's promise.
        let (Some(to), Some(seen)) = (unsafe { to.as_mut() }, driven::seen()) else { return 0 };
        let answer = seen.answer;
        let mut table = [0.0; PAIRS];
        let rows = seen.last.table.known.0.iter();
        table.chunks_exact_mut(PROTOCOLS).zip(rows).for_each(|(to, row)| to.copy_from_slice(row));
        *to = RawSeen {
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
