//! From a process's first communicator to its last: the writing thread lives that long.
//!
//! NCCL may unload the library after the last one and load it again for the next, so nothing of ours may
//! run then. A child of a fork has the memory but not the thread: it notices by its process id and begins
//! anew. Whoever forked while another thread was in here has left a lock that nobody opens; so it is
//! waited for a while only, and then nothing is recorded.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use super::communicators::About;
use super::labels::Labels;
use super::recorder::Recorder;
use super::say::Voice;
use super::settings::Settings;
use super::writer::Writer;

/// Longer than anybody holds the lock whose disk answers.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The recorder: memory that the loader maps as zeros, and takes back.
pub static RECORDER: Recorder = Recorder::new();

static LABELS: Labels = Labels::new();

static LIFE: Mutex<Life> = Mutex::new(Life { pid: 0, live: 0, writer: None, refused: false });

struct Life {
    pid: u32,
    live: u32,
    writer: Option<Writer>,
    /// Whether there is to be no other writer: one could not begin, of which once is said, or was left to itself because its
    /// disk hangs, and the ring has one reader.
    refused: bool,
}

/// What became of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attached {
    /// Its context; 0 where it is not recorded.
    pub context: u64,
    /// Whether anything of this process is recorded, and kernels are timed.
    pub records: Option<bool>,
}

/// A communicator begins; nothing is known of it where others are in here for too long.
pub fn attach(about: About, name: &str, voice: Voice) -> Option<Attached> {
    let Some(mut life) = lock() else {
        voice.warn("profiler: busy or forked in the middle; this communicator is not recorded");
        return None;
    };
    life.adopt();
    if life.writer.is_none() {
        life.begin(voice);
    }
    if life.writer.is_none() {
        return Some(Attached { context: 0, records: None });
    }
    let name = LABELS.intern(name);
    let context = RECORDER.communicators.add(About { name, ..about });
    life.live += u32::from(context.is_some());
    let times_kernels = !RECORDER.launches_only.load(Ordering::Relaxed);
    Some(Attached { context: context.unwrap_or(0), records: Some(times_kernels) })
}

/// A communicator ends.
pub fn detach(context: u64, voice: Voice) {
    let Some(mut life) = lock() else { return };
    life.adopt();
    if RECORDER.communicators.remove(context) {
        life.live = life.live.saturating_sub(1);
        RECORDER.close_of(context);
    }
    if life.live == 0
        && let Some(writer) = life.writer.take()
    {
        life.refused |= !writer.stop(voice);
        LABELS.clear();
    }
}

fn lock() -> Option<MutexGuard<'static, Life>> {
    let asked = Instant::now();
    loop {
        match LIFE.try_lock() {
            Ok(life) => return Some(life),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if asked.elapsed() > LOCK_PATIENCE => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}

impl Life {
    /// Forgets what belongs to the process that forked this one.
    fn adopt(&mut self) {
        let pid = std::process::id();
        if self.pid != pid {
            if let Some(writer) = self.writer.take() {
                writer.forget();
            }
            // What is recorded may be there although its writer is gone.
            if self.pid != 0 {
                RECORDER.forget();
            }
            self.live = 0;
            self.refused = false;
            self.pid = pid;
        }
    }

    fn begin(&mut self, voice: Voice) {
        if self.refused {
            return;
        }
        let warn = |said: String| voice.warn(&format!("profiler: {said}"));
        let Some(settings) = Settings::read(|name| std::env::var_os(name), warn) else { return };
        RECORDER.launches_only.store(!settings.times_kernels, Ordering::Relaxed);
        self.writer = Writer::start(&RECORDER, &LABELS, settings, voice);
        self.refused = self.writer.is_none();
    }
}
