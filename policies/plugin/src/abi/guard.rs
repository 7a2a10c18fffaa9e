//! The border: no panic of ours may reach NCCL, which would end the job.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::fault;

/// Does this, and something else if it panics. What it has touched must be whole at any time: results are
/// written after everything that can go wrong. `point` names it to tests.
#[inline]
pub fn guarded<R: Default>(point: &str, work: impl FnOnce() -> R, otherwise: impl FnOnce() -> R) -> R {
    let result = catch_unwind(AssertUnwindSafe(|| {
        fault::point(point);
        work()
    }));
    result.unwrap_or_else(|panic| {
        // What was thrown may panic again when it goes; its few bytes are not worth that.
        std::mem::forget(panic);
        catch_unwind(AssertUnwindSafe(otherwise)).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_even_what_is_done_about_a_panic_may_panic() {
        assert_eq!(guarded("nowhere", || 7, || 8), 7);
        assert_eq!(guarded("nowhere", || panic!("one"), || 8), 8);
        assert_eq!(guarded::<i32>("nowhere", || panic!("one"), || panic!("two")), 0);
    }
}
