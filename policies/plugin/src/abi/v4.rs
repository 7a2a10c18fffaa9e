//! Version 4: as version 3, and whether buffers are registered, which differs between ranks and is not
//! looked at.

use std::ffi::c_void;

use super::entry::{self, Init};
use super::shared::{self, Cleanup, GetCollInfo};
use super::{NAME, Name, NcclResult, assert_table};
use crate::logger::RawLogger;

/// `ncclTuner_v4_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    name: Name,
    pub(super) init: unsafe extern "C" fn(usize, usize, Option<RawLogger>, *mut *mut c_void) -> NcclResult,
    pub(super) get_coll_info: GetCollInfo,
    pub(super) destroy: Cleanup,
}
assert_table!(Table: name init get_coll_info destroy);

/// What NCCL looks for.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v4: Table = TABLE;

pub(super) const TABLE: Table =
    Table { name: NAME, init, get_coll_info: shared::get_coll_info, destroy: shared::cleanup };

unsafe extern "C" fn init(
    ranks: usize,
    nodes: usize,
    logger: Option<RawLogger>,
    context: *mut *mut c_void,
) -> NcclResult {
    let domains = std::ptr::null();
    // SAFETY: as NCCL's header says.
    unsafe { entry::init(&Init { interface: 4, context, ranks, nodes, logger, id: None, domains }) }
}
