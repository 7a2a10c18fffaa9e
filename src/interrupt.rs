//! Ctrl-C, made safe: the first one asks the work to stop, the second one quits at once. SIGTERM, which is
//! what schedulers send, counts as one; some send it to a process and to its group, so that what follows at once counts
//! as the same.
//!
//! The flag is looked at wherever work reports progress (see [`crate::progress`]), so a command that
//! shows a bar can be interrupted and cleans up after itself. A command that never starts one is over
//! in a moment, or only waits (`plugin doctor`), and keeps the system's own Ctrl-C.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::exit;

/// Signals that come within this time of the first are the same one.
const AT_ONCE: Duration = Duration::from_millis(300);

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
        // The one who hears them is there first: a signal that is caught and that nobody hears would end nothing.
        let (asked, (send, caught)) = (Arc::clone(&interrupt.0), mpsc::channel());
        let heeding =
            thread::Builder::new().spawn(move || caught.recv().map(|signals| heed(signals, &asked)));
        if let (Ok(_), Ok(signals)) = (heeding, Signals::new([SIGINT, SIGTERM])) {
            let _ = send.send(signals);
        }
        interrupt
    }

    /// An error once Ctrl-C was pressed.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
    }
}

/// Lets nothing that asks a process to end do so from now on. It is heard and not ignored, for what is started later would
/// inherit that.
pub fn outlive() {
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        // Where the system refuses, nothing is lost that was there before.
        let _ = flag::register(signal, Arc::default());
    }
}

/// Waits for signals: the first asks, a later one quits.
fn heed(mut signals: Signals, asked: &AtomicBool) {
    let mut first: Option<Instant> = None;
    for _ in signals.forever() {
        asked.store(true, Ordering::Relaxed);
        if first.get_or_insert_with(Instant::now).elapsed() > AT_ONCE {
            low_level::exit(exit::INTERRUPTED.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_is_a_request_and_so_is_what_follows_at_once() {
        let interrupt = Interrupt::catch();
        assert_eq!(interrupt.check(), Ok(()));
        for signal in [SIGTERM, SIGTERM, SIGINT] {
            low_level::raise(signal).unwrap();
        }
        let began = Instant::now();
        while interrupt.check().is_ok() && began.elapsed() < Duration::from_secs(10) {
            thread::yield_now();
        }
        assert_eq!(interrupt.check(), Err(Interrupted));
    }
}
