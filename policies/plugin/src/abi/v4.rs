//! Version 4: as version 3, and whether buffers are registered, which differs between ranks and is not
//! looked at.

use super::shared::{self, Cleanup, GetCollInfo, InitInto};
use super::{NAME, Name, assert_table};

/// `ncclTuner_v4_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    name: Name,
    pub(super) init: InitInto,
    pub(super) get_coll_info: GetCollInfo,
    pub(super) destroy: Cleanup,
}
assert_table!(Table: name init get_coll_info destroy);

/// What NCCL looks for.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v4: Table = TABLE;

pub(super) const TABLE: Table = Table {
    name: NAME,
    init: shared::init_into::<4>,
    get_coll_info: shared::get_coll_info,
    destroy: shared::cleanup,
};
