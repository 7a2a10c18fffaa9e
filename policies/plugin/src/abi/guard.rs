//! The border: no panic of ours may reach NCCL, which would end the job.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::fault;

/// Does this, and something else if it panics. What it has touched must be whole at any time: results are
/// written after everything that can go wrong.
#[inline]
pub fn guarded<R>(point: &str, work: impl FnOnce() -> R, otherwise: impl FnOnce() -> R) -> R {
    let result = catch_unwind(AssertUnwindSafe(|| {
        fault::point(point);
        work()
    }));
    match result {
        Ok(result) => result,
        Err(panic) => {
            // What was thrown may panic again when it goes; its few bytes are not worth that.
            std::mem::forget(panic);
            // Nor may what is said about it.
            catch_unwind(AssertUnwindSafe(otherwise)).unwrap_or_else(|_| std::process::abort())
        }
    }
}
