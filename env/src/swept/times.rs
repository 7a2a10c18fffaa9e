//! What a launch took, line by line.

use dynamiccl_spec::math::{exp, ln};

use crate::measure::sweep::SweepRow;

/// What lies between the fastest and the slowest repeat, times this, is about one standard error of the middle of five,
/// and two of that of ten; a 95 % interval, times this, is one.
const OF_SEVERAL: f64 = 0.25;
/// And one standard error of the middle of three and of two: that they are alike may be luck.
const OF_THREE: f64 = 0.4;
const OF_TWO: f64 = 0.63;
/// Repeats of a line that does not say how many: published sweeps have five.
const SEVERAL: u32 = 5;
/// Times in files have two digits after the point, so the middle of two repeats is this near to half way between them.
const ROUNDED_US: f64 = 0.0151;

/// The times of one launch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Times {
    /// In the order of their middles.
    lines: Vec<Line>,
}

/// Some repeats in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    /// ln µs of the fastest, the middle and the slowest, or of the middle and the ends of its interval.
    ln_us: [f64; 3],
    /// How far the middle may be off by luck.
    doubt: f64,
    /// Whether it was the only repeat.
    glance: bool,
}

impl Line {
    /// So many repeats; the fastest, the middle and the slowest of them.
    fn new(repeats: u32, ln_us: [f64; 3]) -> Self {
        let share = match repeats {
            0..=2 => OF_TWO,
            3 => OF_THREE,
            _ => OF_SEVERAL,
        };
        Line { ln_us, doubt: share * (ln_us[2] - ln_us[0]), glance: repeats == 1 }
    }

    /// The mean of what is drawn from it.
    fn mean(&self) -> f64 {
        let [least, middle, most] = self.ln_us;
        (least + 2.0 * middle + most) / 4.0
    }
}

impl Times {
    /// Takes in a line. Where it has a 95 % interval that is what counts: one pause of the machine among many repeats says
    /// nothing of a launch.
    pub fn add(&mut self, row: &SweepRow) {
        let (least, middle, most) = (row.min_us, row.median_us, row.max_us);
        let half_way = (middle - (least + most) / 2.0).abs() < ROUNDED_US;
        let (repeats, [low, high]) = match row.sure {
            Some(sure) => (sure.rounds, [sure.low_us, sure.high_us]),
            None if least == most => (1, [least, most]),
            None => (if half_way { 2 } else { SEVERAL }, [least, most]),
        };
        self.push(Line::new(repeats, [low, middle.clamp(low, high), high].map(ln)));
    }

    /// Takes in rounds that were timed in a row as one line; there must be one.
    pub fn add_rounds(&mut self, rounds: &[f64]) {
        let mut rounds: Vec<f64> = rounds.iter().copied().map(ln).collect();
        rounds.sort_by(f64::total_cmp);
        let last = rounds.len() - 1;
        let middle = (rounds[last / 2] + rounds[rounds.len() / 2]) / 2.0;
        self.push(Line::new(rounds.len() as u32, [rounds[0], middle, rounds[last]]));
    }

    /// Takes in the lines of others.
    pub fn join(&mut self, others: &Times) {
        others.lines.iter().for_each(|line| self.push(*line));
    }

    /// Leaves lines of a single repeat out where there are others. A sweep repeats everything but what looks hopeless at
    /// first sight, and what only one of them finds hopeless met a pause of the machine there.
    pub fn without_glances(mut self) -> Self {
        if !self.is_glance() {
            self.lines.retain(|line| !line.glance);
        }
        self
    }

    /// Whether nothing was repeated.
    pub fn is_glance(&self) -> bool {
        self.lines.iter().all(|line| line.glance)
    }

    fn push(&mut self, line: Line) {
        self.lines.push(line);
        self.lines.sort_by(|a, b| a.ln_us[1].total_cmp(&b.ln_us[1]));
    }

    /// How many lines there are.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// The µs whose logarithm is the mean of what [`Times::draw`] gives.
    pub fn micros(&self) -> f64 {
        exp(self.lines.iter().map(Line::mean).sum::<f64>() / self.count())
    }

    fn count(&self) -> f64 {
        self.lines.len().max(1) as f64
    }

    /// How far the logarithm of [`Times::micros`] may be off by luck. Lines that differ by more among themselves than each
    /// says of itself are trusted no more than that says.
    pub fn doubt(&self) -> f64 {
        let mean = ln(self.micros());
        let squares =
            |of: &dyn Fn(&Line) -> f64| self.lines.iter().map(|line| of(line) * of(line)).sum::<f64>();
        let within = squares(&|line| line.doubt) / self.count();
        let among = squares(&|line| line.mean() - mean) / (self.count() - 1.0).max(1.0);
        (within.max(among) / self.count()).sqrt()
    }

    /// The same times, all of them this much (in logarithms) longer.
    pub fn longer(&self, by: f64) -> Times {
        let longer = |line: &Line| Line { ln_us: line.ln_us.map(|ln_us| ln_us + by), ..*line };
        Times { lines: self.lines.iter().map(longer).collect() }
    }

    /// What lies half way between two, where neither was measured: one line, which is less sure than many.
    pub fn between(&self, other: &Times) -> Times {
        let mean = |of: &dyn Fn(&Line) -> f64| {
            let sum = |times: &Times| times.lines.iter().map(of).sum::<f64>() / times.count();
            (sum(self) + sum(other)) / 2.0
        };
        let ln_us = std::array::from_fn(|at| mean(&|line| line.ln_us[at]));
        let glance = self.is_glance() || other.is_glance();
        Times { lines: vec![Line { ln_us, doubt: mean(&|line| line.doubt), glance }] }
    }

    /// The µs of one call, by a number from 0 to 1: half of a line's calls are between its fastest and its middle repeat,
    /// half between that and its slowest.
    pub fn draw(&self, at: f64) -> f64 {
        let at = at.clamp(0.0, 1.0) * self.lines.len() as f64;
        let line = (at as usize).min(self.lines.len().saturating_sub(1));
        let Some(Line { ln_us: [least, middle, most], .. }) = self.lines.get(line) else { return 0.0 };
        let within = at - line as f64;
        exp(if within < 0.5 {
            least + (middle - least) * 2.0 * within
        } else {
            middle + (most - middle) * (2.0 * within - 1.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::Collective;

    use super::*;
    use crate::measure::sweep::{Setting, Sure};

    fn row([min_us, median_us, max_us]: [f64; 3]) -> SweepRow {
        SweepRow {
            collective: Collective::AllReduce,
            bytes: 1024,
            setting: Setting::Default,
            median_us,
            min_us,
            max_us,
            sure: None,
            nccl_model_us: None,
            chunk: dynamiccl_spec::ChunkChoice::Own,
            slowdown: None,
        }
    }

    fn times(lines: &[[f64; 3]]) -> Times {
        let mut times = Times::default();
        lines.iter().for_each(|line| times.add(&row(*line)));
        times
    }

    #[test]
    fn what_is_drawn_has_the_mean_and_the_middle_that_are_stated() {
        let times = times(&[[10.0, 20.0, 80.0], [9.0, 11.0, 12.0]]);
        let count = 10_000;
        let logs = (0..count).map(|i| ln(times.draw((f64::from(i) + 0.5) / f64::from(count))));
        let mean = logs.sum::<f64>() / f64::from(count);
        assert!((exp(mean) / times.micros() - 1.0).abs() < 1e-6, "{} {}", exp(mean), times.micros());
        assert_eq!([0.25, 0.75].map(|at| times.draw(at).round()), [11.0, 20.0]);
        assert_eq!([0.0, 1.0].map(|at| times.draw(at).round()), [9.0, 80.0]);
    }

    #[test]
    fn more_lines_leave_less_doubt_unless_they_disagree() {
        let one = times(&[[10.0, 11.0, 14.0]]);
        assert!((one.doubt() - ln(1.4) / 4.0).abs() < 1e-12, "{}", one.doubt());
        let alike = times(&[[10.0, 11.0, 14.0]; 4]);
        assert!((alike.doubt() - one.doubt() / 2.0).abs() < 1e-12, "{}", alike.doubt());
        let apart = times(&[[10.0, 11.0, 12.0], [30.0, 31.0, 32.0]]);
        assert!(apart.doubt() > 0.5, "{}", apart.doubt());
        assert!((one.longer(0.1).micros() / one.micros() - exp(0.1)).abs() < 1e-12);
    }

    /// Half way is where the middle of two is, and that of more is not.
    #[test]
    fn two_repeats_are_trusted_less_than_several() {
        let (two, several) = (times(&[[10.0, 12.0, 14.0]]), times(&[[10.0, 11.9, 14.0]]));
        assert!((two.doubt() / several.doubt() - 0.63 / 0.25).abs() < 1e-9);
        let mut rounds = Times::default();
        rounds.add_rounds(&[14.0, 10.0]);
        assert_eq!(rounds.doubt(), two.doubt());
    }

    #[test]
    fn half_way_is_between_and_less_sure_than_many_lines() {
        let (small, large) = (times(&[[9.0, 10.0, 11.0]; 4]), times(&[[36.0, 40.0, 44.0]; 4]));
        let middle = small.between(&large);
        assert!((middle.micros() / 20.0 - 1.0).abs() < 0.01, "{}", middle.micros());
        assert!(middle.doubt() > small.doubt());
    }

    #[test]
    fn what_was_repeated_outvotes_what_was_given_up() {
        let mut joined = times(&[[140.0, 142.0, 146.0]]);
        joined.join(&times(&[[1688.0; 3]]));
        assert_eq!(joined.without_glances(), times(&[[140.0, 142.0, 146.0]]));
        let hopeless = times(&[[500.0; 3], [600.0; 3]]);
        assert_eq!(hopeless.clone().without_glances(), hopeless);
    }

    /// One pause among many repeats moves neither the middle nor how sure it is.
    #[test]
    fn an_interval_counts_more_than_the_slowest_repeat() {
        let row = |sure| SweepRow { sure, ..row([10.0, 11.0, 900.0]) };
        let of = |sure| {
            let mut times = Times::default();
            times.add(&row(sure));
            times
        };
        let sure = |rounds| Some(Sure { rounds, low_us: 10.5, high_us: 11.5 });
        let (many, two) = (of(sure(10)), of(sure(2)));
        assert!((many.micros() - 11.0).abs() < 0.02, "{}", many.micros());
        assert!((many.doubt() - ln(11.5 / 10.5) / 4.0).abs() < 1e-12 && two.doubt() > 2.0 * many.doubt());
        assert!(of(None).micros() > 2.0 * many.micros());
        let outside = of(Some(Sure { rounds: 8, low_us: 11.2, high_us: 11.5 }));
        assert!((11.2..11.5).contains(&outside.micros()), "{}", outside.micros());
    }

    /// A lucky middle does not make a setting good that is slow now and then.
    #[test]
    fn spread_counts() {
        assert!(times(&[[10.0, 12.0, 90.0]]).micros() > times(&[[13.0, 14.0, 15.0]]).micros());
    }
}
