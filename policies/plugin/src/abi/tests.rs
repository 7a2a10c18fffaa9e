//! Panics in every entry point of every version, called as NCCL calls them.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::ptr::null_mut;

use super::*;
use crate::fault;
use crate::logger::RawLogger;

thread_local! {
    static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Takes what our lines are made of; variadic functions cannot be written in Rust, and where we run they are
/// called like others.
unsafe extern "C" fn listen(
    level: c_int,
    _: c_ulong,
    _: *const c_char,
    _: c_int,
    format: *const c_char,
    text: *const c_char,
) {
    // SAFETY: both are strings that end.
    let [format, text] = [format, text].map(|string| unsafe { CStr::from_ptr(string) });
    assert_eq!(format, c"%s");
    if level == 2 {
        WARNINGS.with_borrow_mut(|all| all.push(text.to_string_lossy().into_owned()));
    }
}

fn logger() -> Option<RawLogger> {
    type Listen = unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, *const c_char);
    // SAFETY: see `listen`.
    Some(unsafe { std::mem::transmute::<Listen, RawLogger>(listen) })
}

fn warnings() -> Vec<String> {
    WARNINGS.take()
}

const VERSIONS: std::ops::RangeInclusive<u32> = 2..=7;
const TABLE: [[f32; 3]; 7] = {
    let mut table = [[-1.0; 3]; 7];
    table[0] = [30.0, 31.0, 32.0];
    table[1] = [33.0, 34.0, 35.0];
    table
};

fn init(version: u32, context: &mut *mut c_void) -> NcclResult {
    let (ranks, nodes, none) = (16, 2, null_mut());
    // SAFETY: as NCCL would.
    unsafe {
        match version {
            2 => (v2::TABLE.init)(ranks, nodes, logger(), context),
            3 => (v3::TABLE.init)(ranks, nodes, logger(), context),
            4 => (v4::TABLE.init)(ranks, nodes, logger(), context),
            5 => (v5::TABLE.init)(context, 7, ranks, nodes, logger(), none, null_mut()),
            6 => (v6::TABLE.init)(context, 7, ranks, nodes, logger(), none, null_mut()),
            _ => (v7::TABLE.init)(context, 7, ranks, nodes, logger(), none, null_mut()),
        }
    }
}

/// The table and the channels after a call.
fn coll_info(version: u32, context: *mut c_void, bytes: usize) -> (NcclResult, [[f32; 3]; 7], [c_int; 3]) {
    let mut table = TABLE;
    let mut set = [-5, -5, 0];
    let [algorithm, protocol, channels] = &mut set;
    let entries = (&raw mut table).cast();
    // SAFETY: as NCCL would.
    let result = unsafe {
        match version {
            2 => (v2::TABLE.get_coll_info)(context, 4, bytes, 0, 0, 1, algorithm, protocol, channels),
            3 => (v3::TABLE.get_coll_info)(context, 4, bytes, 1, entries, 7, 3, channels),
            4 => (v4::TABLE.get_coll_info)(context, 4, bytes, 1, entries, 7, 3, 0, channels),
            5 => (v5::TABLE.get_coll_info)(context, 4, bytes, 1, entries, 7, 3, 0, channels),
            6 => (v6::TABLE.get_coll_info)(context, 4, bytes, 1, entries, 7, 3, 0, channels),
            _ => (v7::TABLE.get_coll_info)(context, 4, bytes, 1, entries, 7, 3, 0, channels),
        }
    };
    (result, table, set)
}

fn cleanup(version: u32, context: *mut c_void) -> NcclResult {
    // SAFETY: as NCCL would.
    unsafe {
        match version {
            2 => (v2::TABLE.destroy)(context),
            3 => (v3::TABLE.destroy)(context),
            4 => (v4::TABLE.destroy)(context),
            5 => (v5::TABLE.finalize)(context),
            6 => (v6::TABLE.finalize)(context),
            _ => (v7::TABLE.finalize)(context),
        }
    }
}

#[test]
fn a_panic_at_init_stops_a_rank_whose_peers_would_hang() {
    for version in VERSIONS {
        // Whatever is there, nobody may take it for a context of ours.
        let mut context = std::ptr::dangling_mut();
        assert!(fault::with("init", || assert_eq!(init(version, &mut context), INVALID_USAGE)));
        assert!(context.is_null());
        assert_eq!(warnings().len(), 1, "v{version}");
        // Whoever goes on all the same has no context.
        assert_eq!(coll_info(version, context, 1 << 20), (SUCCESS, TABLE, [-5, -5, 0]));
        assert_eq!(cleanup(version, context), SUCCESS);
    }
}

#[test]
fn a_panic_at_a_call_leaves_its_table_and_warns_once() {
    for version in VERSIONS {
        let mut context = null_mut();
        assert_eq!(init(version, &mut context), SUCCESS);
        assert!(!context.is_null());
        for bytes in [1 << 20, 1 << 21] {
            assert!(fault::with("getCollInfo", || {
                assert_eq!(coll_info(version, context, bytes), (SUCCESS, TABLE, [-5, -5, 0]));
            }));
        }
        assert_eq!(warnings().len(), 1, "v{version}");
        assert_eq!(cleanup(version, context), SUCCESS);
    }
}

/// In the middle of a decision, while it holds the lock: what is decided afterwards is what would have been.
#[test]
fn a_panic_while_deciding_spoils_nothing() {
    for version in 3..=7 {
        let (mut context, mut untouched) = (null_mut(), null_mut());
        assert_eq!((init(version, &mut context), init(version, &mut untouched)), (SUCCESS, SUCCESS));
        assert!(fault::with("decide", || {
            assert_eq!(coll_info(version, context, 1 << 24), (SUCCESS, TABLE, [-5, -5, 0]));
        }));
        for log in 3..34 {
            let bytes = 1 << log;
            assert_eq!(coll_info(version, context, bytes), coll_info(version, untouched, bytes));
        }
        assert_eq!((cleanup(version, context), cleanup(version, untouched)), (SUCCESS, SUCCESS));
        assert_eq!(warnings().len(), 1);
    }
}

#[test]
fn a_panic_at_a_chunk_leaves_it() {
    for version in [6, 7] {
        let mut context = null_mut();
        assert_eq!(init(version, &mut context), SUCCESS);
        let mut chunk = 1 << 19;
        let chunk_size = if version == 6 { v6::TABLE.get_chunk_size } else { v7::TABLE.get_chunk_size };
        assert!(fault::with("getChunkSize", || {
            // SAFETY: as NCCL would.
            assert_eq!(unsafe { chunk_size(context, 4, 1 << 20, 1, 2, 1, &mut chunk) }, SUCCESS);
        }));
        assert_eq!((chunk, warnings().len()), (1 << 19, 1));
        assert_eq!(cleanup(version, context), SUCCESS);
    }
}

#[test]
fn a_panic_at_the_end_is_none_of_nccls() {
    for version in VERSIONS {
        let mut context = null_mut();
        assert_eq!(init(version, &mut context), SUCCESS);
        assert!(fault::with("cleanup", || assert_eq!(cleanup(version, context), SUCCESS)));
        // The panic came before anything was freed.
        assert_eq!(cleanup(version, context), SUCCESS);
    }
}
