//! What the points of a search mean: the knobs of ours, and the parameters that TuCCL searches.
//!
//! Searches see dimensions and indices; here they become something that can run.

pub mod own;
pub mod tuccl;

pub use own::OwnSettings;
pub use tuccl::TucclSetting;

use dynamiccl_spec::Protocol;

/// How many times wider than usual MRACO's kernels are around a setting with this protocol: TuCCL wants
/// LL128's wider, because its bandwidth is the most volatile.
pub const fn kernel_width(protocol: Protocol) -> f64 {
    match protocol {
        Protocol::LL128 => 1.5,
        Protocol::LL | Protocol::Simple => 1.0,
    }
}
