//! The widest registers that the CPU has, for loops over many numbers.
//!
//! Programs are built for the oldest CPU that they shall run on. What stands in [`wide`] is built for newer ones as
//! well, as far as it is inlined (so a `for`, no `for_each`), and the CPU is asked while it runs. Nothing is fused or
//! put into another order, so every bit stays the same.

/// Does some work with the widest registers there are.
macro_rules! wide {
    ($work:expr) => {
        $crate::wide::dispatch(
            #[inline(always)]
            || $work,
        )
    };
}
pub(crate) use wide;

/// What [`wide`] does: by its bound a closure is called as it is, and not through a function that is not inlined.
#[inline(always)]
pub(crate) fn dispatch<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}
