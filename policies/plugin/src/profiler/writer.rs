//! The thread that writes: it empties the ring, and nothing of NCCL's ever waits for it.

use std::fmt::Write;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::journal::{self, Journal};
use super::labels::Labels;
use super::prometheus::Metrics;
use super::recorder::Recorder;
use super::say::Voice;
use super::settings::Settings;
use super::thread::Thread;

/// Time between two looks at the ring.
const EVERY: Duration = Duration::from_millis(50);
/// Time between two looks at what is under way.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Time that a first communicator waits for a disk.
const OPENING: Duration = Duration::from_secs(1);
/// Time that a last communicator waits for one.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of lines that are written in one piece.
const PIECE: usize = 64 << 10;

/// The thread, while there is one.
#[derive(Debug)]
pub struct Writer {
    thread: Thread,
    /// That it is to end.
    stop: Arc<Told<()>>,
}

/// Something that one thread tells another, once.
#[derive(Debug)]
struct Told<T> {
    said: Mutex<Option<T>>,
    told: Condvar,
}

impl<T: Copy> Told<T> {
    fn new() -> Arc<Self> {
        Arc::new(Told { said: Mutex::new(None), told: Condvar::new() })
    }

    /// Says it, unless something was said before.
    fn tell(&self, what: T) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
        self.told.notify_one();
    }

    /// What was said, if it is within this time.
    fn wait(&self, time: Duration) -> Option<T> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(said, time, |said| said.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Writer {
    /// Starts it, and waits a moment until it has its files: a disk that hangs is its business alone. What the user asked
    /// for and cannot be had is said; nothing where nothing can be had.
    pub fn start(
        recorder: &'static Recorder,
        labels: &'static Labels,
        settings: Settings,
        voice: Voice,
    ) -> Option<Self> {
        // The second says whether the thread has something to write to.
        let (stop, opened) = (Told::new(), Told::new());
        let (stopped, told) = (Arc::clone(&stop), Arc::clone(&opened));
        let body = move || {
            let work = || {
                let work = Work::open(recorder, labels, stopped, &settings, voice);
                told.tell(work.is_some());
                if let Some(mut work) = work {
                    work.run();
                }
            };
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                told.tell(false);
                voice.warn("profiler: the writing thread failed; nothing more is recorded");
            }
        };
        let thread = match Thread::spawn(body) {
            Ok(thread) => thread,
            Err(error) => {
                voice.warn(&format!("profiler: no thread to write with, nothing is recorded: {error}"));
                return None;
            }
        };
        let writer = Writer { thread, stop };
        match opened.wait(OPENING) {
            Some(true) => Some(writer),
            Some(false) => {
                writer.stop(voice);
                None
            }
            None => {
                voice.warn("profiler: the disk does not answer yet; records wait for it, and may be lost");
                Some(writer)
            }
        }
    }

    /// Has everything written and ends the thread. A disk that hangs is not waited for: the thread then ends
    /// by itself, and the system keeps the library for as long as it runs. Whether it has ended.
    pub fn stop(self, voice: Voice) -> bool {
        self.stop.tell(());
        let asked = Instant::now();
        while !self.thread.is_done() {
            if asked.elapsed() > PATIENCE {
                voice.warn("profiler: the disk does not answer; records are lost");
                self.thread.detach();
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        self.thread.join();
        true
    }

    /// Lets go of a thread that a fork has left in the parent.
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

fn opened<T>(asked: Option<io::Result<T>>, what: &str, voice: Voice) -> Option<T> {
    asked.and_then(|opened| {
        let said = |error| voice.warn(&format!("profiler: no {what} are written: {error}"));
        opened.map_err(said).ok()
    })
}

/// What the thread has in its hands.
struct Work {
    recorder: &'static Recorder,
    labels: &'static Labels,
    stop: Arc<Told<()>>,
    journal: Option<Journal>,
    metrics: Option<Metrics>,
    metrics_every: Duration,
    lines: String,
    line_count: u64,
    /// Collectives that were lost and not yet counted in the file.
    dropped_unsaid: u64,
    voice: Voice,
    has_warned: bool,
}

impl Work {
    /// With its files; none where it has none.
    fn open(
        recorder: &'static Recorder,
        labels: &'static Labels,
        stop: Arc<Told<()>>,
        settings: &Settings,
        voice: Voice,
    ) -> Option<Self> {
        let host = journal::host();
        let open = |folder| Journal::open(folder, &host, settings.records_max);
        let journal = opened(settings.records.as_deref().map(open), "records", voice);
        let open = |folder| Metrics::open(folder, &host, &settings.process, &settings.job);
        let metrics = opened(settings.metrics.as_deref().map(open), "metrics", voice);
        if journal.is_none() && metrics.is_none() {
            return None;
        }
        if let Some(journal) = &journal {
            voice.info(&format!("profiler: records go to {}", journal.path().display()));
        }
        Some(Work {
            recorder,
            labels,
            stop,
            journal,
            metrics,
            metrics_every: settings.metrics_every,
            lines: String::with_capacity(2 * PIECE),
            line_count: 0,
            dropped_unsaid: 0,
            voice,
            has_warned: false,
        })
    }

    fn run(&mut self) {
        let (mut swept, mut measured) = (Instant::now(), Instant::now());
        loop {
            let is_last = self.stop.wait(EVERY).is_some();
            if is_last {
                self.recorder.close_all();
            } else if swept.elapsed() >= SWEEP_EVERY {
                self.recorder.sweep();
                swept = Instant::now();
            }
            self.drain();
            if is_last || measured.elapsed() >= self.metrics_every {
                self.write_metrics();
                measured = Instant::now();
            }
            if is_last {
                return;
            }
        }
    }

    fn drain(&mut self) {
        while let Some(record) = self.recorder.pop() {
            if let Some(metrics) = &mut self.metrics {
                metrics.add(&record);
            }
            if self.journal.is_some() {
                record.write_line(&mut self.lines);
                self.line_count += 1;
            }
            if self.lines.len() >= PIECE {
                self.flush();
            }
        }
        let dropped = self.recorder.take_dropped();
        if dropped > 0 {
            self.count_dropped(dropped);
            self.warn_once(&format!("profiler: {dropped} collectives came too fast to be recorded"));
        }
        self.flush();
    }

    fn count_dropped(&mut self, dropped: u64) {
        self.dropped_unsaid += dropped;
        if let Some(metrics) = &mut self.metrics {
            metrics.add_dropped(dropped);
        }
    }

    /// Writes what has come; what cannot be written is counted, and said as soon as it can be.
    fn flush(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        if self.dropped_unsaid > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(self.lines, "{{\"dropped\":{}}}", self.dropped_unsaid);
        }
        if self.lines.is_empty() {
            return;
        }
        match journal.write(&self.lines) {
            Ok(()) => self.dropped_unsaid = 0,
            Err(error) => {
                let path = journal.path().display();
                let said =
                    format!("profiler: {path}: {error}; records are lost until it can be written again");
                self.warn_once(&said);
                self.count_dropped(self.line_count);
            }
        }
        self.lines.clear();
        self.line_count = 0;
    }

    fn write_metrics(&mut self) {
        let Some(metrics) = &mut self.metrics else { return };
        if let Err(error) = metrics.write(self.labels) {
            self.warn_once(&format!("profiler: metrics cannot be written: {error}"));
        }
    }

    /// One line in somebody's log; the counts of what is lost stand beside the records.
    fn warn_once(&mut self, said: &str) {
        if !std::mem::replace(&mut self.has_warned, true) {
            self.voice.warn(said);
        }
    }
}
