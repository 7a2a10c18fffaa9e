//! Progress of long work: a bar with rate and ETA on a terminal, a plain line every few seconds
//! elsewhere, always on stderr.
//!
//! Reporting progress is also where Ctrl-C is noticed, so a loop cannot have one without the other.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::ProgressWhen;
use crate::interrupt::{Interrupt, Interrupted};

/// Time between two plain lines: often enough to see life, seldom enough for a log.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Time between two movements of the bar's spinner.
const TICK: Duration = Duration::from_millis(100);

const TEMPLATE: &str = " {spinner} {prefix} {bar:24} {percent:>3} %  {human_pos}/{human_len}  {per_sec}  ETA {eta_precise}  {msg}";

/// What progress looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A bar, cleared at the end.
    Bar,
    /// A line from time to time.
    Lines,
    /// Nothing.
    Silent,
}

impl Style {
    /// The style for what the user asked for. `silent` says that the command was asked to be brief
    /// (`-q`, `--json`), `terminal` that stderr is one.
    pub fn resolve(when: ProgressWhen, silent: bool, terminal: bool) -> Self {
        match when {
            ProgressWhen::Never => Style::Silent,
            ProgressWhen::Auto if silent => Style::Silent,
            ProgressWhen::Auto | ProgressWhen::Always if terminal => Style::Bar,
            ProgressWhen::Auto | ProgressWhen::Always => Style::Lines,
        }
    }
}

/// The progress of one piece of work. It is gone from the terminal when this is dropped.
#[derive(Debug)]
pub struct Progress {
    display: Display,
    interrupt: Interrupt,
}

#[derive(Debug)]
enum Display {
    Bar(ProgressBar),
    Lines(Mutex<Lines>),
    Silent,
}

impl Progress {
    /// Starts work in `total` steps.
    pub fn start(label: &str, total: u64, style: Style, interrupt: Interrupt) -> Self {
        let display = match style {
            Style::Bar => Display::Bar(bar(label, total)),
            Style::Lines => Display::Lines(Mutex::new(Lines::new(label, total, Instant::now()))),
            Style::Silent => Display::Silent,
        };
        Progress { display, interrupt }
    }

    /// Reports `steps` more steps as done; an error once Ctrl-C was pressed.
    pub fn advance(&self, steps: u64) -> Result<(), Interrupted> {
        match &self.display {
            Display::Bar(bar) => bar.inc(steps),
            Display::Lines(lines) => {
                if let Some(line) = lock(lines).advance(steps, Instant::now()) {
                    let _ = writeln!(io::stderr(), "{line}");
                }
            }
            Display::Silent => {}
        }
        self.interrupt.check()
    }

    /// Counts steps that were done before, without taking them for speed.
    pub fn skip(&self, steps: u64) {
        match &self.display {
            Display::Bar(bar) => {
                bar.set_position(bar.position() + steps);
                bar.reset_eta();
            }
            Display::Lines(lines) => lock(lines).skip(steps),
            Display::Silent => {}
        }
    }

    /// Expects another number of steps in all.
    pub fn expect(&self, total: u64) {
        match &self.display {
            Display::Bar(bar) => bar.set_length(total),
            Display::Lines(lines) => lock(lines).total = total,
            Display::Silent => {}
        }
    }

    /// Says a line that stays, above the bar where there is one.
    pub fn say(&self, line: &str) {
        match &self.display {
            Display::Bar(bar) => bar.println(line),
            Display::Lines(_) => drop(writeln!(io::stderr(), "{line}")),
            Display::Silent => {}
        }
    }

    /// Shows a short remark beside the numbers, such as the best value so far.
    pub fn remark(&self, words: &str) {
        match &self.display {
            Display::Bar(bar) => bar.set_message(words.to_owned()),
            Display::Lines(lines) => words.clone_into(&mut lock(lines).remark),
            Display::Silent => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
    }
}

fn bar(label: &str, total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(TEMPLATE).expect("the template is a constant and tested");
    let bar = ProgressBar::new(total).with_style(style.progress_chars("━╸ ")).with_prefix(label.to_owned());
    bar.enable_steady_tick(TICK);
    bar
}

/// A counter cannot be left half changed, so a panic elsewhere is no reason to stop counting.
fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state behind the plain lines. It takes the time as an argument and prints nothing itself.
#[derive(Debug)]
struct Lines {
    label: String,
    total: u64,
    done: u64,
    skipped: u64,
    started: Instant,
    printed: Instant,
    remark: String,
}

impl Lines {
    fn new(label: &str, total: u64, now: Instant) -> Self {
        Lines {
            label: label.to_owned(),
            total,
            done: 0,
            skipped: 0,
            started: now,
            printed: now,
            remark: String::new(),
        }
    }

    /// Counts steps that took no time.
    fn skip(&mut self, steps: u64) {
        self.done += steps;
        self.skipped += steps;
    }

    /// Counts the steps, and gives the line to print when it is time for one.
    fn advance(&mut self, steps: u64, now: Instant) -> Option<String> {
        self.done += steps;
        if now - self.printed < LINE_EVERY {
            return None;
        }
        self.printed = now;
        Some(self.line(now - self.started))
    }

    fn line(&self, elapsed: Duration) -> String {
        let Lines { label, total, done, remark, .. } = self;
        let percent = if *total == 0 { 100 } else { done * 100 / total };
        let rate = (*done - self.skipped) as f64 / elapsed.as_secs_f64();
        let left = total.saturating_sub(*done) as f64 / rate;
        let eta = if left.is_finite() { clock(left) } else { "?".to_owned() };
        let line = format!("{label}: {percent} %  {done}/{total}  {rate:.1}/s  ETA {eta}  {remark}");
        line.trim_end().to_owned()
    }
}

/// Seconds as `[hours:]minutes:seconds`.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_follows_the_user_then_the_terminal() {
        use ProgressWhen::{Always, Auto, Never};
        for (when, silent, terminal, style) in [
            (Auto, false, true, Style::Bar),
            (Auto, false, false, Style::Lines),
            (Auto, true, true, Style::Silent),
            (Always, true, true, Style::Bar),
            (Always, true, false, Style::Lines),
            (Never, false, true, Style::Silent),
        ] {
            assert_eq!(Style::resolve(when, silent, terminal), style, "{when:?} {silent} {terminal}");
        }
    }

    #[test]
    fn lines_come_every_few_seconds_with_rate_and_eta() {
        let start = Instant::now();
        let mut lines = Lines::new("validate", 400, start);
        assert_eq!(lines.advance(10, start + Duration::from_secs(1)), None);
        let line = lines.advance(90, start + Duration::from_secs(5));
        assert_eq!(line.as_deref(), Some("validate: 25 %  100/400  20.0/s  ETA 00:15"));
        assert_eq!(lines.advance(1, start + Duration::from_secs(6)), None);
        lines.remark = "best 1.06×".to_owned();
        let line = lines.advance(99, start + Duration::from_secs(10));
        assert_eq!(line.as_deref(), Some("validate: 50 %  200/400  20.0/s  ETA 00:10  best 1.06×"));
    }

    #[test]
    fn what_was_done_before_is_no_speed() {
        let start = Instant::now();
        let mut lines = Lines::new("train", 400, start);
        lines.skip(300);
        let line = lines.advance(50, start + Duration::from_secs(5));
        assert_eq!(line.as_deref(), Some("train: 87 %  350/400  10.0/s  ETA 00:05"));
    }

    #[test]
    fn what_is_skipped_adds_up_on_the_bar_too() {
        let progress = Progress::start("live sweep", 9, Style::Bar, Interrupt::default());
        progress.skip(2);
        assert_eq!(progress.advance(1), Ok(()));
        progress.skip(2);
        let Display::Bar(bar) = &progress.display else { panic!("a bar") };
        assert_eq!(bar.position(), 5);
    }

    #[test]
    fn no_step_yet_means_no_estimate() {
        let lines = Lines::new("bench", 0, Instant::now());
        assert_eq!(lines.line(Duration::from_secs(5)), "bench: 100 %  0/0  0.0/s  ETA ?");
        let lines = Lines::new("bench", 9, Instant::now());
        assert_eq!(lines.line(Duration::from_secs(5)), "bench: 0 %  0/9  0.0/s  ETA ?");
    }

    #[test]
    fn long_estimates_show_hours() {
        assert_eq!(clock(59.6), "01:00");
        assert_eq!(clock(3725.0), "1:02:05");
    }

    #[test]
    fn the_bar_can_be_drawn() {
        let progress = Progress::start("bench", 2, Style::Bar, Interrupt::default());
        progress.remark("warm");
        assert_eq!(progress.advance(1), Ok(()));
    }
}
