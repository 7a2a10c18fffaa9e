//! Functions that several versions of the interface have in common, with the types under which their tables hold
//! them.

use std::ffi::{c_int, c_void};

use super::NcclResult;
use super::constants::{Constants, NvlDomains};
use super::entry::{self, CollInfo, Init};
use crate::logger::RawLogger;

/// `init` up to version 4.
pub type InitInto = unsafe extern "C" fn(usize, usize, Option<RawLogger>, *mut *mut c_void) -> NcclResult;

/// `init` since version 5.
pub type InitById<const COMPCAPS: usize> = unsafe extern "C" fn(
    *mut *mut c_void,
    u64,
    usize,
    usize,
    Option<RawLogger>,
    *mut NvlDomains,
    *mut Constants<COMPCAPS>,
) -> NcclResult;

/// `getCollInfo` since version 4.
pub type GetCollInfo = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    usize,
    c_int,
    *mut *mut f32,
    c_int,
    c_int,
    c_int,
    *mut c_int,
) -> NcclResult;

/// `destroy`, and `finalize` since version 5.
pub type Cleanup = unsafe extern "C" fn(*mut c_void) -> NcclResult;

/// `getChunkSize` since version 6.
pub type GetChunkSize =
    unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, c_int, c_int, *mut usize) -> NcclResult;

pub(super) unsafe extern "C" fn init_into<const INTERFACE: u8>(
    ranks: usize,
    nodes: usize,
    logger: Option<RawLogger>,
    context: *mut *mut c_void,
) -> NcclResult {
    let (interface, domains) = (INTERFACE.into(), std::ptr::null());
    // SAFETY: as NCCL's header says.
    unsafe { entry::init(&Init { interface, context, ranks, nodes, logger, id: None, domains }) }
}

pub(super) unsafe extern "C" fn init<const INTERFACE: u8, const COMPCAPS: usize>(
    context: *mut *mut c_void,
    id: u64,
    ranks: usize,
    nodes: usize,
    logger: Option<RawLogger>,
    domains: *mut NvlDomains,
    _constants: *mut Constants<COMPCAPS>,
) -> NcclResult {
    let interface = INTERFACE.into();
    // SAFETY: as NCCL's header says.
    unsafe { entry::init(&Init { interface, context, ranks, nodes, logger, id: Some(id), domains }) }
}

/// Whether buffers are registered differs between ranks and is not looked at.
#[allow(clippy::too_many_arguments)] // NCCL's.
pub(super) unsafe extern "C" fn get_coll_info(
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

pub(super) unsafe extern "C" fn cleanup(context: *mut c_void) -> NcclResult {
    // SAFETY: as NCCL's header says.
    unsafe { entry::cleanup(context) }
}

pub(super) unsafe extern "C" fn get_chunk_size(
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
