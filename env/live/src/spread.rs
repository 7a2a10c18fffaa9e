//! What repeats say: a middle that outliers do not move, and how sure it is.
//!
//! Times of a shared machine are not normal: some settings are fast or slow by turns. So middles are medians, and two
//! settings are compared by the Hodges–Lehmann estimate over rounds in which both were measured, with the interval of
//! Wilcoxon's signed ranks.

use serde::Serialize;

/// The normal quantile of a two-sided 95 %.
const SIGMAS: f64 = 1.96;

/// The median; not a number without any.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (n, half) if n % 2 == 1 => sorted[half],
        (_, half) => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

/// How many times faster one setting is than another, with the ends of a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The estimate.
    pub ratio: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Ratio {
    /// How much faster `ours` is than `theirs`, where both were measured in the same rounds; none without a round.
    pub fn of(theirs: &[f64], ours: &[f64]) -> Option<Self> {
        Ratio::of_logs(theirs.iter().zip(ours).map(|(theirs, ours)| (theirs / ours).ln()).collect())
    }

    /// Microseconds over one microsecond: what repeats of one thing take.
    pub fn of_micros(rounds: &[f64]) -> Option<Self> {
        Ratio::of_logs(rounds.iter().map(|us| us.ln()).collect())
    }

    /// With fewer than six rounds no interval can be that sure, and it is all that was seen.
    fn of_logs(logs: Vec<f64>) -> Option<Self> {
        let mut walsh = Vec::new();
        for (at, first) in logs.iter().enumerate() {
            walsh.extend(logs[at..].iter().map(|second| (first + second) / 2.0));
        }
        walsh.sort_by(f64::total_cmp);
        let (n, last) = (logs.len() as f64, walsh.len().checked_sub(1)?);
        let middle = n * (n + 1.0) / 4.0;
        let cut =
            (middle - SIGMAS * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt()).floor().max(0.0) as usize;
        let cut = cut.min(last / 2);
        Some(Ratio { ratio: median(&walsh).exp(), low: walsh[cut].exp(), high: walsh[last - cut].exp() })
    }

    /// The geometric mean of many, each as sure as it is; none without one.
    pub fn mean(ratios: &[Ratio]) -> Option<Self> {
        let count = ratios.len() as f64;
        let logs = ratios.iter().map(|ratio| ratio.ratio.ln());
        let squares: f64 = ratios.iter().map(|ratio| (ratio.half_width() / SIGMAS).powi(2)).sum();
        let (mean, half) = (logs.sum::<f64>() / count, SIGMAS * squares.sqrt() / count);
        (count > 0.0).then(|| Ratio {
            ratio: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
        })
    }

    /// Half the interval's width, relative.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).ln() / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_do_not_move_with_outliers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 1e9]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_ratio_is_found_with_its_interval() {
        let theirs: Vec<f64> = (0..20).map(|n| 100.0 + f64::from(n % 5)).collect();
        let ours: Vec<f64> =
            theirs.iter().enumerate().map(|(n, us)| us / 1.25 + (n % 3) as f64 * 0.5).collect();
        let ratio = Ratio::of(&theirs, &ours).unwrap();
        assert!((ratio.ratio - 1.243).abs() < 0.005, "{ratio:?}");
        assert!(ratio.low > 1.23 && ratio.high < 1.26 && ratio.low < ratio.ratio, "{ratio:?}");
        let mut spoilt = ours.clone();
        spoilt[3] = 5000.0;
        let spoilt = Ratio::of(&theirs, &spoilt).unwrap();
        assert!((spoilt.ratio - ratio.ratio).abs() < 0.01, "{spoilt:?}");
    }

    #[test]
    fn few_rounds_are_not_sure() {
        let ratio = Ratio::of(&[10.0, 20.0], &[10.0, 10.0]).unwrap();
        assert!((ratio.low - 1.0).abs() < 1e-12 && (ratio.high - 2.0).abs() < 1e-12, "{ratio:?}");
        assert_eq!(Ratio::of(&[], &[]), None);
    }

    #[test]
    fn one_pause_among_many_rounds_moves_no_interval() {
        let rounds = [20.0, 21.0, 20.5, 900.0, 20.2, 20.8, 20.1, 20.9];
        let micros = Ratio::of_micros(&rounds).unwrap();
        assert!(micros.low > 20.0 && micros.high < 22.0 * 22.0, "{micros:?}");
        assert!((micros.ratio - 20.6).abs() < 0.3, "{micros:?}");
    }

    #[test]
    fn a_mean_of_many_is_surer_than_each() {
        let one = Ratio { ratio: 1.2, low: 1.1, high: 1.2 * 1.2 / 1.1 };
        let mean = Ratio::mean(&[one; 4]).unwrap();
        assert!((mean.ratio - 1.2).abs() < 1e-12, "{mean:?}");
        assert!((mean.half_width() - one.half_width() / 2.0).abs() < 1e-12, "{mean:?}");
        assert_eq!(Ratio::mean(&[]), None);
    }

    /// Of many intervals of what is the same, about 95 % hold 1.
    #[test]
    fn intervals_hold_what_they_promise() {
        use rand::{RngExt, SeedableRng};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut noise = || {
            let sum: f64 = (0..6).map(|_| random.random::<f64>()).sum();
            100.0 * (1.0 + 0.05 * (sum - 3.0))
        };
        let mut holds = 0;
        for _ in 0..1000 {
            let [a, b]: [Vec<f64>; 2] = std::array::from_fn(|_| (0..12).map(|_| noise()).collect());
            let ratio = Ratio::of(&a, &b).unwrap();
            holds += usize::from(ratio.low <= 1.0 && 1.0 <= ratio.high);
        }
        assert!((925..=985).contains(&holds), "{holds}");
    }
}
