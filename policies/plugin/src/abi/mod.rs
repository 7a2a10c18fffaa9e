//! What NCCL sees of the tuner: one table of functions for every version of its interface.
//!
//! The layouts are NCCL's (`src/include/plugin/tuner/tuner_v2.h` to `tuner_v6.h` of NCCL 2.30.7, and
//! `tuner_v7.h` of NVIDIA/nccl at commit 2449986f); each version stands in a file of its own, with assertions on
//! every offset. Only [`entry`] looks behind a pointer. Nothing here decides.

pub mod constants;
pub mod driver;
pub mod entry;
pub mod guard;
pub mod shared;
pub mod v2;
pub mod v3;
pub mod v4;
pub mod v5;
pub mod v6;
pub mod v7;

#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char, c_int};

/// `ncclResult_t`.
pub type NcclResult = c_int;
/// ncclSuccess.
pub const SUCCESS: NcclResult = 0;
/// ncclInvalidUsage: NCCL tells the user to look at its warnings, where the reason stands.
pub const INVALID_USAGE: NcclResult = 5;

/// A tuner's name, as NCCL logs it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Name(*const c_char);

// SAFETY: it leads to a string that never changes.
unsafe impl Sync for Name {}

/// Ours.
pub const NAME: Name = Name(NAMED.as_ptr());
const NAMED: &CStr = c"DynamICCL";

/// Asserts that these fields of a table of functions stand one after the other, each as large as a pointer,
/// and that there are no others.
macro_rules! assert_table {
    ($table:ty: $($field:ident)*) => {
        const _: () = {
            let mut at = 0;
            $(
                assert!(std::mem::offset_of!($table, $field) == at);
                at += size_of::<*const ()>();
            )*
            assert!(size_of::<$table>() == at);
        };
    };
}
pub(crate) use assert_table;
