//! Timing of small things on a machine that does other things as well.
//!
//! The work is cut into parts of about a millisecond, shorter than a scheduler's slice, and each part
//! is timed over and over. The median of a part is then free of whatever took the core away, and the
//! parts add up to the work.

use std::time::{Duration, Instant};

use anyhow::Result;
use dynamiccl_env::statistics::median;

use crate::progress::Progress;

/// Fewest rounds of a timing.
const ROUNDS: usize = 31;

/// Times pieces of work and reports their progress.
pub struct Stopwatch<'a> {
    progress: &'a Progress,
}

impl<'a> Stopwatch<'a> {
    /// A stopwatch of which every timing is one step of this progress.
    pub fn new(progress: &'a Progress) -> Self {
        Stopwatch { progress }
    }

    /// A measurement that times itself.
    pub fn step<T>(&self, measure: impl FnOnce() -> Result<T>) -> Result<T> {
        let measured = measure()?;
        self.progress.advance(1)?;
        Ok(measured)
    }

    /// ns of one thing, where each part is `things` of them: the mean over parts of their medians.
    /// It takes `least` long.
    pub fn time<P>(&self, least: Duration, parts: &[P], things: usize, work: impl FnMut(&P)) -> Result<f64> {
        let rounds = rounds(least, parts, work);
        let medians = rounds.into_iter().filter_map(median);
        self.progress.advance(1)?;
        Ok(medians.sum::<f64>() / (parts.len() * things) as f64)
    }
}

/// The ns of each part in every round, after one round to warm up.
fn rounds<P>(least: Duration, parts: &[P], mut work: impl FnMut(&P)) -> Vec<Vec<f64>> {
    let mut rounds = vec![Vec::new(); parts.len()];
    parts.iter().for_each(&mut work);
    let start = Instant::now();
    let mut done = 0;
    while done < ROUNDS || start.elapsed() < least {
        for (part, times) in parts.iter().zip(&mut rounds) {
            let start = Instant::now();
            work(part);
            times.push(start.elapsed().as_secs_f64() * 1e9);
        }
        done += 1;
    }
    rounds
}
