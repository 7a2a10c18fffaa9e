//! Version 6: as version 5, and then, behind `finalize`, the chunk size.

use std::ffi::{c_int, c_void};

use super::constants::{Constants, NvlDomains};
use super::entry::{self, CollInfo, Init};
use super::{NAME, Name, NcclResult, assert_table};
use crate::logger::RawLogger;

/// `ncclTuner_v6_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    name: Name,
    pub(super) init: unsafe extern "C" fn(
        *mut *mut c_void,
        u64,
        usize,
        usize,
        Option<RawLogger>,
        *mut NvlDomains,
        *mut Constants<4>,
    ) -> NcclResult,
    pub(super) get_coll_info: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        usize,
        c_int,
        *mut *mut f32,
        c_int,
        c_int,
        c_int,
        *mut c_int,
    ) -> NcclResult,
    pub(super) finalize: unsafe extern "C" fn(*mut c_void) -> NcclResult,
    pub(super) get_chunk_size:
        unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, c_int, c_int, *mut usize) -> NcclResult,
}
assert_table!(Table: name init get_coll_info finalize get_chunk_size);

/// What NCCL looks for.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v6: Table = TABLE;

pub(super) const TABLE: Table = Table { name: NAME, init, get_coll_info, finalize, get_chunk_size };

unsafe extern "C" fn init(
    context: *mut *mut c_void,
    id: u64,
    ranks: usize,
    nodes: usize,
    logger: Option<RawLogger>,
    domains: *mut NvlDomains,
    _constants: *mut Constants<4>,
) -> NcclResult {
    // SAFETY: as NCCL's header says.
    unsafe { entry::init(&Init { interface: 6, context, ranks, nodes, logger, id: Some(id), domains }) }
}

#[allow(clippy::too_many_arguments)] // NCCL's.
unsafe extern "C" fn get_coll_info(
    context: *mut c_void,
    collective: c_int,
    bytes: usize,
    pipelined: c_int,
    table: *mut *mut f32,
    algorithms: c_int,
    protocols: c_int,
    _registered: c_int,
    channels: *mut c_int,
) -> NcclResult {
    let given = CollInfo { context, collective, bytes, pipelined, table, algorithms, protocols, channels };
    // SAFETY: as NCCL's header says.
    unsafe { entry::coll_info(&given) }
}

unsafe extern "C" fn finalize(context: *mut c_void) -> NcclResult {
    // SAFETY: as NCCL's header says.
    unsafe { entry::cleanup(context) }
}

unsafe extern "C" fn get_chunk_size(
    context: *mut c_void,
    collective: c_int,
    _bytes: usize,
    algorithm: c_int,
    protocol: c_int,
    _channels: c_int,
    chunk: *mut usize,
) -> NcclResult {
    // SAFETY: as NCCL's header says.
    unsafe { entry::chunk_size(context, collective, algorithm, protocol, chunk) }
}
