//! Version 6: as version 5, and then, behind `finalize`, the chunk size.

use super::shared::{self, Cleanup, GetChunkSize, GetCollInfo, InitById};
use super::{NAME, Name, assert_table};

/// `ncclTuner_v6_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    name: Name,
    pub(super) init: InitById<4>,
    pub(super) get_coll_info: GetCollInfo,
    pub(super) finalize: Cleanup,
    pub(super) get_chunk_size: GetChunkSize,
}
assert_table!(Table: name init get_coll_info finalize get_chunk_size);

/// What NCCL looks for.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ncclTunerPlugin_v6: Table = TABLE;

pub(super) const TABLE: Table = Table {
    name: NAME,
    init: shared::init::<6, 4>,
    get_coll_info: shared::get_coll_info,
    finalize: shared::cleanup,
    get_chunk_size: shared::get_chunk_size,
};
