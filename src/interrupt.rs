//! Ctrl-C, made safe: the first one asks the work to stop, the second one quits at once. SIGTERM, which is
//! what schedulers send, counts as one.
//!
//! The flag is looked at wherever work reports progress (see [`crate::progress`]), so a command that
//! shows a bar can be interrupted and cleans up after itself. A command that never starts one is over
//! in a moment and keeps the system's own Ctrl-C.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit;

/// The work was asked to stop and did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Whether Ctrl-C was pressed.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches Ctrl-C and SIGTERM from now on.
    ///
    /// Where the system refuses, its own Ctrl-C stays in force, which ends the process as well.
    pub fn catch() -> Self {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the shutdown looks at the flag before the same signal sets it.
            let code = exit::INTERRUPTED.into();
            if flag::register_conditional_shutdown(signal, code, interrupt.0.clone()).is_ok() {
                let _ = flag::register(signal, interrupt.0.clone());
            }
        }
        interrupt
    }

    /// An error once Ctrl-C was pressed.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_is_a_request() {
        let interrupt = Interrupt::catch();
        assert_eq!(interrupt.check(), Ok(()));
        signal_hook::low_level::raise(SIGINT).unwrap();
        assert_eq!(interrupt.check(), Err(Interrupted));
    }
}
