//! MRACO of TuCCL: Hyperband's brackets over samples from Parzen densities (its algorithm 1).
//!
//! A bracket samples settings, profiles them with little resource, keeps the best share, profiles those
//! with more, and so on up to the full resource. The samples are where the density of fast settings
//! exceeds that of slow ones by most (equations 2 and 3). The best setting stays in the race: it is
//! profiled in full again after each bracket (line 10). Brackets are repeated until a whole round of them
//! has gained less than 1 % and has moved the density of fast settings by less than 0.1 nat (equation 5).

use dynamiccl_spec::math::ln;

use super::density::Kernel;
use super::tallies::{Tallies, Tally};
use super::{Found, Point, Search, Space, Trial, sample};
use crate::random::Random;

/// Share of the measured settings that counts as fast.
const FAST: f64 = 0.15;
/// Share of a bracket's samples that comes from anywhere, as Hyperband's guarantee wants.
const ANYWHERE: f64 = 0.2;
/// Kernel width in ordered and in named dimensions.
const WIDTH: (f64, f64) = (0.16, 0.45);
/// ln µs in place of a best setting where none has run: a number, so that a round without one gains nothing.
const SLOWEST: f64 = 100.0;
/// Relative gain and divergence below which the search has converged.
const CONVERGED: (f64, f64) = (0.01, 0.1);

/// How brackets are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Only one in this many stays from one rung to the next, with as many times the resource (η).
    pub ratio: u32,
    /// Smallest resources in a full measurement (`R_max`).
    pub most: u32,
}

impl Schedule {
    /// A full measurement of 27 parts: four brackets.
    pub const FULL: Schedule = Schedule { ratio: 3, most: 27 };
    /// A full measurement of 9 parts: three brackets.
    pub const SHORT: Schedule = Schedule { ratio: 3, most: 9 };

    /// A full measurement of 81 parts: five brackets.
    pub const LONG: Schedule = Schedule { ratio: 3, most: 81 };

    /// The schedule for a space of so many points: a first bracket must be a small part of it, and large
    /// enough to meet all of it.
    pub const fn of(points: usize) -> Schedule {
        match points {
            ..1000 => Schedule::SHORT,
            1000..10_000 => Schedule::FULL,
            _ => Schedule::LONG,
        }
    }

    /// Calls of a full measurement: as usual, or as many as make its smallest part a whole call.
    pub fn calls(&self) -> f64 {
        f64::from(self.most.max(Schedule::FULL.most))
    }

    /// The bracket with most samples and least resource for each (`s_max`).
    fn widest(&self) -> u32 {
        self.most.max(1).ilog(self.ratio.max(2))
    }

    /// Full measurements that a search makes at most: (`s_max` + 1) · `R_max`, TuCCL's guarantee.
    pub fn most_trials(&self) -> f64 {
        f64::from((self.widest() + 1) * self.most)
    }

    /// Samples of a bracket.
    fn samples(&self, bracket: u32) -> usize {
        let brackets = self.widest() + 1;
        (brackets * self.ratio.pow(bracket)).div_ceil(bracket + 1) as usize
    }

    /// Settings that go into a rung of a bracket.
    fn kept(&self, bracket: u32, rung: u32) -> usize {
        self.samples(bracket).div_ceil(self.ratio.pow(rung) as usize)
    }

    /// Share of a full measurement that each gets there.
    fn resource(&self, bracket: u32, rung: u32) -> f64 {
        1.0 / f64::from(self.ratio.pow(bracket - rung))
    }
}

/// Where the search stands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Profiling the settings of a rung.
    Rung { rung: u32, next: usize },
    /// Profiling the best setting once more.
    Elite(Point),
    /// Converged, or nothing left to try.
    Over,
}

/// A search by brackets and densities.
#[derive(Debug, Clone)]
pub struct Mraco {
    space: Space,
    schedule: Schedule,
    /// By value of the first dimension: a protocol that is more volatile has wider kernels.
    kernels: Vec<Kernel>,
    random: Random,
    tallies: Tallies,
    /// Density of every measured setting, and how many of them are in it.
    all: Vec<f64>,
    counted: usize,
    bracket: u32,
    race: Vec<Point>,
    stage: Stage,
    /// What was known after the last round: ln µs of the best, and the density of fast settings.
    round: Option<(f64, Vec<f64>)>,
}

impl Mraco {
    /// A search that begins with this point. `widths` says, for each value of the first dimension, how many
    /// times wider than usual its kernels are.
    pub fn new(space: Space, first: Point, widths: &[f64], schedule: Schedule, seed: u64) -> Self {
        let kernels = widths.iter().map(|w| Kernel::new(&space, WIDTH.0 * w, WIDTH.1 * w)).collect();
        let mut random = Random::new(seed);
        let bracket = schedule.widest();
        let mut race = sample::spread(&space, schedule.samples(bracket).min(space.points()), &mut random);
        race[0] = first;
        let mut seen = vec![false; space.points()];
        race.retain(|point| !std::mem::replace(&mut seen[space.index(point)], true));
        Mraco {
            tallies: Tallies::new(&space),
            all: vec![0.0; space.points()],
            space,
            schedule,
            kernels,
            random,
            counted: 0,
            bracket,
            race,
            stage: Stage::Rung { rung: 0, next: 0 },
            round: None,
        }
    }

    fn kernel(&self, point: &Point) -> &Kernel {
        &self.kernels[point.value(0)]
    }

    fn tally(&self, point: &Point) -> f64 {
        self.tallies.of(self.space.index(point)).map_or(f64::INFINITY, |tally| tally.log_micros)
    }

    /// The best setting that was measured in full.
    fn elite(&self) -> Option<Found> {
        self.tallies.best(1.0)
    }

    fn end_rung(&mut self, rung: u32) {
        if rung < self.bracket {
            let by_time = self.race.iter().map(|point| (self.tally(point), *point));
            let mut by_time: Vec<(f64, Point)> = by_time.filter(|(time, _)| time.is_finite()).collect();
            by_time.sort_by(|a, b| a.0.total_cmp(&b.0));
            by_time.truncate(self.schedule.kept(self.bracket, rung + 1));
            self.race = by_time.into_iter().map(|(_, point)| point).collect();
            if !self.race.is_empty() {
                self.stage = Stage::Rung { rung: rung + 1, next: 0 };
                return;
            }
        }
        match self.elite() {
            // One that has just been profiled in full needs no other time.
            Some(elite) if !self.race.contains(&elite.point) => self.stage = Stage::Elite(elite.point),
            _ => self.end_bracket(),
        }
    }

    fn end_bracket(&mut self) {
        self.count();
        let (fast, count) = self.fast();
        if self.bracket == 0 && self.converged(&fast, count as f64) {
            self.stage = Stage::Over;
            return;
        }
        self.bracket = self.bracket.checked_sub(1).unwrap_or(self.schedule.widest());
        self.race = self.sample(fast);
        self.stage = if self.race.is_empty() { Stage::Over } else { Stage::Rung { rung: 0, next: 0 } };
    }

    /// Adds the settings that are new to the density of all.
    fn count(&mut self) {
        for tally in &self.tallies.all()[self.counted..] {
            self.kernels[tally.point.value(0)].spread(&tally.point, &mut self.all);
        }
        self.counted = self.tallies.all().len();
    }

    /// The density of fast settings, not yet divided by their number, and that. What cannot run is not fast.
    fn fast(&self) -> (Vec<f64>, usize) {
        let mut by_time: Vec<&Tally> = self.tallies.all().iter().filter(|tally| tally.runs()).collect();
        let count = fast_of(by_time.len());
        by_time.sort_by(|a, b| a.log_micros.total_cmp(&b.log_micros));
        let mut density = vec![0.0; self.space.points()];
        for tally in &by_time[..count] {
            self.kernel(&tally.point).spread(&tally.point, &mut density);
        }
        (density, count)
    }

    /// Equation 5, over one round of brackets.
    fn converged(&mut self, fast: &[f64], count: f64) -> bool {
        let prior = 1.0 / self.space.points() as f64;
        let now: Vec<f64> = fast.iter().map(|density| (density + prior) / (count + 1.0)).collect();
        let log_micros = self.elite().map_or(SLOWEST, |elite| ln(elite.micros));
        let before = self.round.replace((log_micros, now));
        let (Some((earlier, old)), Some((_, now))) = (before, &self.round) else { return false };
        let gain = earlier - log_micros;
        let divergence: f64 = now.iter().zip(&old).map(|(p, q)| p * ln(p / q)).sum();
        gain < CONVERGED.0 && divergence < CONVERGED.1
    }

    /// New settings for a bracket: the best by equation 3, one after the other, and some from anywhere.
    fn sample(&mut self, fast: Vec<f64>) -> Vec<Point> {
        let wanted = self.schedule.samples(self.bracket);
        let prior = 1.0 / self.space.points() as f64;
        let mut slow: Vec<f64> =
            self.all.iter().zip(&fast).map(|(all, fast)| (all - fast).max(0.0) + prior).collect();
        let mut taken: Vec<bool> = (0..self.space.points()).map(|i| self.tallies.of(i).is_some()).collect();
        let mut points = Vec::with_capacity(wanted);
        while points.len() < wanted {
            let point = if self.random.uniform() < ANYWHERE {
                self.space.point(self.random.below(self.space.points()))
            } else {
                let free = (0..slow.len()).filter(|&i| !taken[i]);
                let ratio = free.map(|i| (i, (fast[i] + prior) / slow[i]));
                match ratio.reduce(|best, next| if next.1 > best.1 { next } else { best }) {
                    Some((index, _)) => self.space.point(index),
                    None => break,
                }
            };
            let index = self.space.index(&point);
            if !std::mem::replace(&mut taken[index], true) {
                // Until it is measured it counts as slow, so that the next one is not its neighbour.
                self.kernel(&point).spread(&point, &mut slow);
                points.push(point);
            } else if taken.iter().all(|&taken| taken) {
                break;
            }
        }
        points
    }
}

/// How many of so many measured settings count as fast.
fn fast_of(measured: usize) -> usize {
    ((measured as f64 * FAST).ceil() as usize).min(measured)
}

impl Search for Mraco {
    fn ask(&mut self) -> Option<Trial> {
        let trial = match self.stage {
            Stage::Rung { rung, next } => {
                Trial { point: self.race[next], resource: self.schedule.resource(self.bracket, rung) }
            }
            Stage::Elite(point) => Trial { point, resource: 1.0 },
            Stage::Over => return None,
        };
        // Parts of a measurement do not add up to exactly one.
        let left = self.schedule.most_trials() - self.tallies.spent() + 1e-9;
        (trial.resource <= left).then_some(trial)
    }

    fn tell(&mut self, micros: f64) {
        let Some(Trial { point, resource }) = self.ask() else { return };
        self.tallies.add(&self.space, point, resource, micros);
        match self.stage {
            Stage::Rung { rung, next } if next + 1 < self.race.len() => {
                self.stage = Stage::Rung { rung, next: next + 1 };
            }
            Stage::Rung { rung, .. } => self.end_rung(rung),
            Stage::Elite(_) => self.end_bracket(),
            Stage::Over => {}
        }
    }

    fn best(&self) -> Option<Found> {
        self.elite().or_else(|| self.tallies.best(0.0))
    }

    fn ranked(&self, count: usize) -> Vec<Found> {
        let in_full = self.tallies.ranked(1.0, count);
        if in_full.is_empty() { self.tallies.ranked(0.0, count) } else { in_full }
    }

    fn spent(&self) -> f64 {
        self.tallies.spent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Dimension, drive};
    use dynamiccl_spec::math::exp;

    #[test]
    fn brackets_are_hyperbands() {
        let schedule = Schedule::FULL;
        assert_eq!(schedule.widest(), 3);
        assert_eq!([190, 3600, 14_400].map(Schedule::of), [Schedule::SHORT, Schedule::FULL, Schedule::LONG]);
        assert_eq!([3, 2, 1, 0].map(|s| schedule.samples(s)), [27, 12, 6, 4]);
        assert_eq!([0, 1, 2, 3].map(|rung| schedule.kept(3, rung)), [27, 9, 3, 1]);
        assert_eq!(schedule.resource(3, 0), 1.0 / 27.0);
        assert_eq!([0, 1, 2, 3].map(|s| schedule.resource(s, s)), [1.0; 4]);
    }

    #[test]
    fn no_trial_is_a_part_of_a_call() {
        let schedules = [Schedule::SHORT, Schedule::FULL, Schedule::LONG];
        assert_eq!(schedules.map(|schedule| schedule.calls()), [27.0, 27.0, 81.0]);
        for schedule in schedules {
            let least = schedule.calls() * schedule.resource(schedule.widest(), 0);
            assert!(least > 1.0 - 1e-9, "{schedule:?}: {least}");
        }
    }

    /// As many settings as TuCCL's, with one valley per protocol.
    fn space() -> Space {
        let ordered = Dimension::ordered;
        Space::new(&[Dimension::named(3), ordered(4), ordered(20), ordered(15)])
    }

    fn micros(point: &Point) -> f64 {
        let [protocol, channels, threads, buffer, ..] = point.0.map(f64::from);
        let valley = 0.3 * (channels - 2.0) * (channels - 2.0)
            + 0.01 * (threads - 14.0) * (threads - 14.0)
            + 0.03 * (buffer - 9.0) * (buffer - 9.0);
        [130.0, 100.0, 115.0][protocol as usize] * (1.0 + valley)
    }

    fn search(seed: u64) -> (Found, f64) {
        let mut noise = Random::of(seed, 1);
        let mut mraco = Mraco::new(space(), Point::default(), &[1.0, 1.5, 1.0], Schedule::FULL, seed);
        let found = drive(&mut mraco, 1e9, |trial| {
            micros(&trial.point) * exp(0.01 / trial.resource.sqrt() * noise.normal())
        });
        (found.unwrap(), mraco.spent())
    }

    #[test]
    fn it_converges_near_the_best_with_a_fraction_of_the_trials() {
        let mut results: Vec<(f64, f64)> =
            (0..9).map(search).map(|(found, spent)| (100.0 / micros(&found.point), spent)).collect();
        results.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(results[4].0 > 0.97, "{results:?}");
        assert!(results.iter().all(|(_, spent)| *spent < 360.0), "{results:?}");
    }

    #[test]
    fn a_seed_replays_a_search() {
        assert_eq!(search(3), search(3));
        assert_ne!(search(3).1, search(4).1);
    }

    #[test]
    fn it_keeps_the_guarantee_of_its_authors_where_it_never_converges() {
        for schedule in [Schedule::FULL, Schedule::SHORT] {
            let mut better = 1e9;
            let mut mraco = Mraco::new(space(), Point::default(), &[1.0; 3], schedule, 1);
            drive(&mut mraco, f64::INFINITY, |_| {
                better *= 0.98;
                better
            });
            let most = schedule.most_trials();
            assert!(mraco.spent() > most - 1.0 && mraco.spent() < most + 1e-6, "{}", mraco.spent());
        }
        assert_eq!([Schedule::FULL, Schedule::SHORT].map(|s| s.most_trials()), [108.0, 27.0]);
    }

    #[test]
    fn what_cannot_run_is_neither_found_nor_looked_for() {
        // Half of all settings cannot run, the best by far among them.
        let cannot = |point: &Point| point.value(2) >= 10;
        let (mut runs, mut fails) = (0, 0);
        let mut mraco = Mraco::new(space(), Point::default(), &[1.0, 1.5, 1.0], Schedule::FULL, 2);
        let found = drive(&mut mraco, f64::INFINITY, |trial| {
            if cannot(&trial.point) {
                fails += 1;
                return f64::INFINITY;
            }
            runs += 1;
            micros(&trial.point)
        });
        let best = 100.0 * (1.0 + 0.01 * 25.0);
        let found = found.unwrap();
        assert!(!cannot(&found.point) && best / found.micros > 0.97, "{found:?}");
        assert!(2 * fails < runs, "{fails} trials of what cannot run beside {runs}");
        assert!(mraco.ranked(4).iter().all(|found| !cannot(&found.point)));

        let mut none = Mraco::new(space(), Point::default(), &[1.0; 3], Schedule::FULL, 2);
        assert_eq!(drive(&mut none, f64::INFINITY, |_| f64::INFINITY), None);
    }

    #[test]
    fn a_space_smaller_than_a_bracket_is_exhausted() {
        let space = Space::new(&[Dimension::named(2), Dimension::ordered(3)]);
        let mut mraco = Mraco::new(space, Point::default(), &[1.0; 2], Schedule::SHORT, 1);
        let found = drive(&mut mraco, 1e9, |trial| 9.0 - f64::from(trial.point.0[1]));
        assert_eq!(found.unwrap().point.value(1), 2);
        assert!(mraco.spent() < 60.0, "{}", mraco.spent());
    }
}
