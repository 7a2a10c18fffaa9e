//! Version 3: the table, contexts last, and `destroy`.

use std::ffi::{c_int, c_void};

use super::entry::{self, CollInfo};
use super::shared::{self, Cleanup, InitInto};
use super::{NAME, Name, NcclResult, assert_table};

/// `ncclTuner_v3_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    name: Name,
    pub(super) init: InitInto,
    pub(super) get_coll_info: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        usize,
        c_int,
        *mut *mut f32,
        c_int,
        c_int,
        *mut c_int,
    ) -> NcclResult,
    pub(super) destroy: Cleanup,
}
assert_table!(Table: name init get_coll_info destroy);

/// What NCCL looks for.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v3: Table = TABLE;

pub(super) const TABLE: Table =
    Table { name: NAME, init: shared::init_into::<3>, get_coll_info, destroy: shared::cleanup };

#[allow(clippy::too_many_arguments)] // NCCL's.
unsafe extern "C" fn get_coll_info(
    context: *mut c_void,
    collective: c_int,
    bytes: usize,
    pipelined: c_int,
    table: *mut *mut f32,
    algorithms: c_int,
    protocols: c_int,
    channels: *mut c_int,
) -> NcclResult {
    let given = CollInfo { context, collective, bytes, pipelined, table, algorithms, protocols, channels };
    // SAFETY: as NCCL's header says.
    unsafe { entry::coll_info(&given) }
}
