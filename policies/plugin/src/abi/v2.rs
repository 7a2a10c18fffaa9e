//! Version 2: names an algorithm and a protocol and shows no table. Which pairs are available is not known
//! there, so we look on and set nothing.

use std::ffi::{c_int, c_void};

use super::entry;
use super::shared::{self, Cleanup, InitInto};
use super::{NAME, Name, NcclResult, assert_table};

/// `ncclTuner_v2_t`.
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
        c_int,
        c_int,
        *mut c_int,
        *mut c_int,
        *mut c_int,
    ) -> NcclResult,
    pub(super) destroy: Cleanup,
}
assert_table!(Table: name init get_coll_info destroy);

/// What NCCL looks for.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v2: Table = TABLE;

pub(super) const TABLE: Table =
    Table { name: NAME, init: shared::init_into::<2>, get_coll_info, destroy: shared::cleanup };

#[allow(clippy::too_many_arguments)] // NCCL's.
unsafe extern "C" fn get_coll_info(
    context: *mut c_void,
    collective: c_int,
    _bytes: usize,
    _collnet: c_int,
    _nvls: c_int,
    _pipelined: c_int,
    _algorithm: *mut c_int,
    _protocol: *mut c_int,
    _channels: *mut c_int,
) -> NcclResult {
    // SAFETY: as NCCL's header says.
    unsafe { entry::observe(context, collective) }
}
