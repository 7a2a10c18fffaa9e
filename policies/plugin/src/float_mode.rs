//! The arithmetic that decisions are made with, whatever the host thread has set.
//!
//! A thread of somebody's job may round up, or flush tiny numbers to zero, and the next rank's may not.
//! The same decision would then come out differently, and ranks that differ hang. So the mode that every
//! thread begins with is set while we decide, and the thread's own is put back afterwards.

use std::hint::black_box;

/// Runs this with the arithmetic that every thread begins with, and leaves the thread's own as it was,
/// however it ends.
#[inline]
pub fn in_default_mode<R>(work: impl FnOnce() -> R) -> R {
    let own = control::get();
    if control::decides_alike(own) {
        return work();
    }
    let _restored = Restored(own);
    control::set(control::DEFAULT);
    apart(work)
}

/// Runs this where the compiler cannot move any of it to before or behind: to it, arithmetic knows no mode.
#[inline(never)]
fn apart<R>(work: impl FnOnce() -> R) -> R {
    black_box(black_box(work)())
}

/// Puts a mode back when it goes, in a panic as well.
struct Restored(control::Word);

impl Drop for Restored {
    fn drop(&mut self) {
        control::set(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    /// MXCSR.
    pub type Word = u32;

    /// All exceptions masked, to the nearest, no flushing.
    pub const DEFAULT: Word = 0x1f80;
    /// Rounding, flush-to-zero, denormals-are-zero and the masks of exceptions; the other bits only report.
    const CONTROLS: Word = 0xffc0;

    #[inline]
    pub fn decides_alike(word: Word) -> bool {
        word & CONTROLS == DEFAULT
    }

    #[inline]
    pub fn get() -> Word {
        let mut word: Word = 0;
        // SAFETY: stores the register into the four bytes that the pointer leads to.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn set(word: Word) {
        // SAFETY: `word` is one that the register held, or DEFAULT: no reserved bit is set. It is memory to
        // the compiler, which therefore moves nothing that reads or writes memory across it.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    /// FPCR.
    pub type Word = u64;

    /// To the nearest, no flushing, no traps.
    pub const DEFAULT: Word = 0;

    #[inline]
    pub fn decides_alike(word: Word) -> bool {
        word == DEFAULT
    }

    #[inline]
    pub fn get() -> Word {
        let word: Word;
        // SAFETY: reads a register that every thread may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn set(word: Word) {
        // SAFETY: `word` is one that the register held, or all zeros, which is how a thread begins.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_policies::probe::digest;

    /// The modes that a thread may be in: flushing, and every other rounding.
    #[cfg(target_arch = "x86_64")]
    const MODES: [(&str, control::Word); 5] = [
        ("flush to zero, denormals are zero", control::DEFAULT | 0x8040),
        ("down", control::DEFAULT | 0x2000),
        ("up", control::DEFAULT | 0x4000),
        ("to zero", control::DEFAULT | 0x6000),
        ("to zero and flush", control::DEFAULT | 0xe040),
    ];
    #[cfg(target_arch = "aarch64")]
    const MODES: [(&str, control::Word); 5] = [
        ("flush to zero", 1 << 24),
        ("up", 1 << 22),
        ("down", 2 << 22),
        ("to zero", 3 << 22),
        ("to zero and flush", 3 << 22 | 1 << 24),
    ];

    /// Decisions in each mode: some here, as many as DYNAMICCL_DECISIONS says where it is set.
    fn decisions() -> usize {
        let asked = std::env::var("DYNAMICCL_DECISIONS").ok();
        asked.map_or(20_000, |asked| asked.parse().expect("DYNAMICCL_DECISIONS is a number"))
    }

    /// Runs this on a thread of its own that is in a mode.
    fn in_mode<R: Send>(mode: control::Word, work: impl FnOnce() -> R + Send) -> R {
        let set = move || {
            control::set(mode);
            let result = work();
            assert_eq!(control::get() & !0x3f, mode, "the thread's mode was not put back");
            result
        };
        std::thread::scope(|scope| scope.spawn(set).join().expect("the work does not panic"))
    }

    #[test]
    fn decisions_are_the_same_in_every_mode() {
        let decisions = decisions();
        let expected = digest(1, decisions);
        for (name, mode) in MODES {
            let digest = in_mode(mode, || in_default_mode(|| digest(1, decisions)));
            assert_eq!(digest, expected, "{name}");
        }
    }

    /// Without this the test above would show nothing.
    #[test]
    fn arithmetic_and_decisions_do_differ_without_it() {
        let sums = || {
            let divided = [(1.0_f32, 3.0), (-1.0, 3.0), (f32::MIN_POSITIVE, 4.0)];
            divided.map(|(x, y)| (black_box(x) / black_box(y)).to_bits())
        };
        let expected = sums();
        for (name, mode) in MODES {
            assert_ne!(in_mode(mode, sums), expected, "{name}");
            assert_eq!(in_mode(mode, || in_default_mode(sums)), expected, "{name}");
        }
        let unguarded = in_mode(MODES[1].1, || digest(1, 2000));
        assert_ne!(unguarded.value, digest(1, 2000).value);
    }

    #[test]
    fn a_panic_leaves_the_mode_as_it_was() {
        for (_, mode) in MODES {
            in_mode(mode, || {
                let work = || in_default_mode(|| std::panic::resume_unwind(Box::new(())));
                assert!(std::panic::catch_unwind(work).is_err());
            });
        }
    }
}
