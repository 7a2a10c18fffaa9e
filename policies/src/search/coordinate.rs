//! Coordinate descent as AutoCCL (NSDI 2025) does it.
//!
//! The first dimension is the implementation (algorithm and protocol), the others are resources. Each
//! implementation is a subspace of its own, and along each resource the time has one valley, so that a
//! walk that goes on while it gets faster ends at its bottom. The descent stands here as one function of
//! what has been measured: it runs until it meets a point that is not measured well enough, and that is the
//! next trial.
//!
//! Noise makes half of all steps on level ground look like gains, and the shortest of many times a lucky one.
//! So a gain that noise may have made is measured again at both ends before a step is taken, and what is
//! best in the end has been measured several times.

use dynamiccl_spec::math::ln;

use super::tallies::{Tallies, known_by_tallies};
use super::{Found, Point, Search, Space, Trial};

/// An implementation that starts this many times slower than the best known is left out: no resource
/// makes up for it.
const HOPELESS: f64 = 2.0;
/// Gain in ln µs that is worth a step, however sure.
const LEAST_GAIN: f64 = 0.005;
/// Spreads of the difference of two points that a gain must exceed; after [`REPEATS`], once is enough.
const SURE: f64 = 2.0;
/// Trials of one point at most.
const REPEATS: u32 = 5;
/// Spread of a trial's ln µs before anything was repeated, and how many repeats that is worth.
const SPREAD: (f64, f64) = (0.02, 4.0);
/// Passes over the resources of one implementation. One rarely changes anything after the second.
const PASSES: usize = 4;

/// A search down one coordinate after the other.
#[derive(Debug, Clone)]
pub struct Coordinate {
    space: Space,
    first: Point,
    tallies: Tallies,
    pending: Option<Point>,
}

/// The point that the descent must know to go on.
struct Wanted(Point);

impl Coordinate {
    /// A search that begins with this point: its resources are the ones that every implementation starts
    /// from.
    pub fn new(space: Space, first: Point) -> Self {
        Coordinate { tallies: Tallies::new(&space), space, first, pending: None }
    }

    fn log_micros(&self, point: Point) -> Result<f64, Wanted> {
        self.tallies.of(self.space.index(&point)).map(|tally| tally.log_micros).ok_or(Wanted(point))
    }

    /// The whole search; an error is its next trial.
    fn search(&self) -> Result<(), Wanted> {
        self.log_micros(self.first)?;
        let mut starts = Vec::new();
        for implementation in 0..self.space.dimensions()[0].values {
            let start = self.first.with(0, implementation);
            starts.push((start, self.log_micros(start)?));
        }
        starts.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut best = f64::INFINITY;
        for (start, log_micros) in starts {
            if log_micros.is_finite() && log_micros < best + ln(HOPELESS) {
                best = best.min(self.descend(start)?);
            }
        }
        self.confirm()
    }

    /// Whether a point is faster than another by more than noise makes. Measures both again where it may be.
    fn gains(&self, from: Point, to: Point) -> Result<bool, Wanted> {
        self.log_micros(from)?;
        self.log_micros(to)?;
        let [Some(here), Some(there)] = [from, to].map(|point| self.tallies.of(self.space.index(&point)))
        else {
            return Ok(false);
        };
        if !there.runs() || !here.runs() {
            return Ok(there.runs());
        }
        let gain = here.log_micros - there.log_micros;
        if gain <= LEAST_GAIN {
            return Ok(false);
        }
        let unsure =
            self.tallies.spread(SPREAD.0, SPREAD.1) * (1.0 / here.weight + 1.0 / there.weight).sqrt();
        let fewer = if there.trials <= here.trials { there } else { here };
        if gain > SURE * unsure {
            Ok(true)
        } else if fewer.trials < REPEATS {
            Err(Wanted(fewer.point))
        } else {
            Ok(gain > unsure)
        }
    }

    /// Measures what is best again until it has been measured often enough to be believed.
    fn confirm(&self) -> Result<(), Wanted> {
        let Some(best) = self.tallies.best(0.0) else { return Ok(()) };
        let trials = self.tallies.of(self.space.index(&best.point)).map_or(0, |tally| tally.trials);
        if trials < REPEATS { Err(Wanted(best.point)) } else { Ok(()) }
    }

    fn descend(&self, mut point: Point) -> Result<f64, Wanted> {
        for _ in 0..PASSES {
            let before = point;
            for dimension in 1..self.space.dimensions().len() {
                point = self.along(point, dimension)?;
            }
            if point == before {
                break;
            }
        }
        self.log_micros(point)
    }

    /// The bottom of the valley along one dimension.
    fn along(&self, point: Point, dimension: usize) -> Result<Point, Wanted> {
        let line = self.space.dimensions()[dimension].line();
        if line < 2 {
            return Ok(point);
        }
        let from = if point.value(dimension) < line { point.value(dimension) } else { line / 2 };
        let mut bottom = from;
        let mut stride = (line / 4).max(1);
        loop {
            bottom = self.walk(point, dimension, bottom, stride)?;
            if stride == 1 {
                break;
            }
            stride /= 2;
        }
        // Where the walk began beside the line, it must beat that too.
        let bottom = point.with(dimension, bottom);
        Ok(if self.gains(point, bottom)? { bottom } else { point })
    }

    /// Goes on by a stride in whichever direction gets faster.
    fn walk(&self, point: Point, dimension: usize, from: usize, stride: usize) -> Result<usize, Wanted> {
        let line = self.space.dimensions()[dimension].line();
        let up = |at: usize| Some(at + stride).filter(|&next| next < line);
        let down = |at: usize| at.checked_sub(stride);
        let mut at = from;
        for next in [&up as &dyn Fn(usize) -> Option<usize>, &down] {
            while let Some(step) = next(at) {
                if !self.gains(point.with(dimension, at), point.with(dimension, step))? {
                    break;
                }
                at = step;
            }
            if at != from {
                break;
            }
        }
        Ok(at)
    }
}

impl Search for Coordinate {
    fn ask(&mut self) -> Option<Trial> {
        if self.pending.is_none() {
            self.pending = self.search().err().map(|Wanted(point)| point);
        }
        self.pending.map(|point| Trial { point, resource: 1.0 })
    }

    fn tell(&mut self, micros: f64) {
        if let Some(point) = self.pending.take() {
            self.tallies.add(&self.space, point, 1.0, micros);
        }
    }

    known_by_tallies!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::search::{Dimension, drive};
    use dynamiccl_spec::math::exp;

    fn space() -> Space {
        Space::new(&[Dimension::named(4), Dimension::ordered_and_own(9), Dimension::ordered(5)])
    }

    const OWN: Point = Point::at([1, 9, 2, 0]);

    /// One valley in each implementation; NCCL's own channels are as good as six.
    fn micros(trial: &Trial) -> f64 {
        let [implementation, channels, chunk, ..] = trial.point.0.map(f64::from);
        let channels = if channels == 9.0 { 6.0 } else { channels };
        let floor = [100.0, 110.0, 80.0, 900.0][implementation as usize];
        floor * (1.0 + 0.05 * (channels - 3.0).abs() + 0.03 * (chunk - 1.0).abs())
    }

    #[test]
    fn it_reaches_the_bottom_of_the_deepest_valley_with_few_trials() {
        let mut search = Coordinate::new(space(), OWN);
        assert_eq!(search.ask().unwrap().point, OWN);
        let mut seen = Vec::new();
        let found = drive(&mut search, 1e9, |trial| {
            seen.push(trial.point);
            micros(trial)
        });
        assert_eq!(found.unwrap().point, Point::at([2, 3, 1, 0]));
        assert!(search.spent() < 50.0, "{} of {} trials", search.spent(), space().points());
        assert_eq!(seen.iter().filter(|point| point.value(0) == 3).count(), 1, "hopeless: {seen:?}");
    }

    #[test]
    fn what_stands_beside_the_line_is_kept_where_it_is_best() {
        let own_is_best = |trial: &Trial| if trial.point.value(1) == 9 { 10.0 } else { micros(trial) };
        let found = drive(&mut Coordinate::new(space(), OWN), 1e9, own_is_best).unwrap();
        assert_eq!(found.point.value(1), 9);
    }

    #[test]
    fn dimensions_without_a_choice_are_no_obstacle() {
        let space = Space::new(&[Dimension::named(2), Dimension::ordered_and_own(0), Dimension::ordered(1)]);
        let mut search = Coordinate::new(space, Point::default());
        drive(&mut search, 1e9, |trial| 5.0 - f64::from(trial.point.0[0]));
        assert_eq!(
            (search.spent(), search.best().unwrap().micros),
            (1.0 + f64::from(REPEATS), 4.0),
            "the best until it is believed"
        );
    }

    #[test]
    fn what_cannot_run_is_no_step_and_no_end() {
        let cannot = |point: &Point| point.value(0) == 2 || (point.value(0) == 0 && point.value(1) == 3);
        let mut search = Coordinate::new(space(), OWN);
        let found =
            drive(&mut search, 1e9, |trial| if cannot(&trial.point) { f64::INFINITY } else { micros(trial) });
        assert!(!cannot(&found.unwrap().point) && found.unwrap().micros < 110.0, "{found:?}");
        assert_eq!(drive(&mut Coordinate::new(space(), OWN), 1e9, |_| f64::INFINITY), None);
    }

    #[test]
    fn noise_on_level_ground_is_not_walked_along() {
        let mut lucky = 0.0;
        for seed in 0..20 {
            let mut noise = Random::new(seed);
            let mut search = Coordinate::new(space(), OWN);
            let found = drive(&mut search, 1e9, |_| 100.0 * exp(0.02 * noise.normal())).unwrap();
            lucky += ln(100.0 / found.micros) / 20.0;
        }
        // The shortest of fifty unrepeated times is more than two spreads too short.
        assert!(lucky < 0.03, "{lucky}");
    }
}
