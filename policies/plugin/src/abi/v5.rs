//! Version 5: contexts first, an id and NCCL's model besides, and `finalize`.

use super::shared::{self, Cleanup, GetCollInfo, InitById};
use super::{NAME, Name, assert_table};

/// `ncclTuner_v5_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    name: Name,
    pub(super) init: InitById<4>,
    pub(super) get_coll_info: GetCollInfo,
    pub(super) finalize: Cleanup,
}
assert_table!(Table: name init get_coll_info finalize);

/// What NCCL looks for.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v5: Table = TABLE;

pub(super) const TABLE: Table = Table {
    name: NAME,
    init: shared::init::<5, 4>,
    get_coll_info: shared::get_coll_info,
    finalize: shared::cleanup,
};
