//! What repeats say: a middle that outliers do not move, and how sure it is.
//!
//! Times of a shared machine are not normal: some settings are fast or slow by turns. So middles are medians, and two
//! settings are compared by the Hodges–Lehmann estimate over rounds in which both were measured, with the interval of
//! Wilcoxon's signed ranks.

use serde::Serialize;

/// The normal quantile of a two-sided 95 %.
const SIGMAS: f64 = 1.96;

/// Student's quantiles of a two-sided 95 %, for one to nine degrees of freedom; for more the last one is on the safe side.
const STUDENT: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

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

/// Between which of the values their median is, surely to 95 %: so many from either end that as many or fewer would lie
/// beyond it by chance in one of forty cases. One value that is off moves neither end from nine values on; with fewer than
/// six it is all that was seen, and without any not a number.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // How likely it is that just so many of them are below the median, for none, one, two and so on.
    let mut likely = 0.5_f64.powi(count as i32);
    let (mut beyond, mut left_out) = (likely, 0);
    while left_out + 1 < count / 2 {
        likely *= (count - left_out) as f64 / (left_out + 1) as f64;
        beyond += likely;
        if beyond > 0.025 {
            break;
        }
        left_out += 1;
    }
    let last = count.saturating_sub(1);
    let at = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
    (at(left_out), at(last.saturating_sub(left_out)))
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
    /// With fewer than six rounds no interval can be that sure, and it is all that was seen.
    pub fn of(theirs: &[f64], ours: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = theirs.iter().zip(ours).map(|(theirs, ours)| (theirs / ours).ln()).collect();
        let walsh = Walsh::of(logs);
        let (n, last) = (walsh.sorted.len() as f64, walsh.len().checked_sub(1)?);
        let middle = n * (n + 1.0) / 4.0;
        let cut = (middle - 0.5 - SIGMAS * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt()).floor().max(0.0)
            as usize;
        let cut = cut.min(last / 2);
        let middle = median(&[walsh.at(last / 2), walsh.at(last.div_ceil(2))]);
        Some(Ratio { ratio: middle.exp(), low: walsh.at(cut).exp(), high: walsh.at(last - cut).exp() })
    }

    /// How much faster `ours` is than `theirs`, where ranks were started by turns and these are what they took in each start;
    /// none with fewer than two. Starts differ by more than rounds of one, and are few: the interval is Student's.
    pub fn of_starts(theirs: &[f64], ours: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = theirs.iter().zip(ours).map(|(theirs, ours)| (theirs / ours).ln()).collect();
        let count = logs.len() as f64;
        let student = *STUDENT.get(logs.len().checked_sub(2)?).unwrap_or(&STUDENT[STUDENT.len() - 1]);
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let half = student * (squares / (count - 1.0) / count).sqrt();
        Some(Ratio { ratio: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
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

/// The means of all pairs of some numbers, each with itself among them, in order: so many that they are counted and not kept.
struct Walsh {
    sorted: Vec<f64>,
}

impl Walsh {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Walsh { sorted: values }
    }

    fn len(&self) -> usize {
        self.sorted.len() * (self.sorted.len() + 1) / 2
    }

    /// The one with so many before it: the least number up to which there are more than so many. Floats are few enough that
    /// halving all of them finds the very one.
    fn at(&self, before: usize) -> f64 {
        let (mut below, mut least) = (place(f64::NEG_INFINITY), place(f64::INFINITY));
        while below < least {
            let middle = below + (least - below) / 2;
            if self.up_to(middle) > before { least = middle } else { below = middle + 1 }
        }
        number(least)
    }

    /// How many of them are at this place or before it. What goes with the smaller ones goes with fewer of the larger ones.
    fn up_to(&self, limit: u64) -> usize {
        let (mut count, mut end) = (0, self.sorted.len());
        for (at, first) in self.sorted.iter().enumerate() {
            while end > at && place((first + self.sorted[end - 1]) / 2.0) > limit {
                end -= 1;
            }
            if end <= at {
                break;
            }
            count += end - at;
        }
        count
    }
}

/// The bit that says that a float is negative.
const SIGN: u64 = 1 << 63;

/// A number's place among all floats.
fn place(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The number at a place.
fn number(place: u64) -> f64 {
    f64::from_bits(if place & SIGN == 0 { !place } else { place & !SIGN })
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

    /// To the last bit, and in no time where there are many.
    #[test]
    fn means_of_pairs_are_found_without_writing_them_down() {
        use rand::{RngExt, SeedableRng};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        for count in 0..40 {
            // Many are alike, and zero and its negative are among them.
            let values: Vec<f64> =
                (0..count).map(|_| (random.random::<f64>() * 9.0).floor() / 7.0 - 0.5).collect();
            let values = values.into_iter().map(|value| if value.abs() < 0.1 { -0.0 } else { value });
            let values: Vec<f64> = values.collect();
            let pairs = (0..count).flat_map(|at| values[at..].iter().map(move |second| (at, *second)));
            let mut all: Vec<f64> = pairs.map(|(at, second)| (values[at] + second) / 2.0).collect();
            all.sort_by(f64::total_cmp);
            let walsh = Walsh::of(values.clone());
            let found: Vec<u64> = (0..walsh.len()).map(|at| walsh.at(at).to_bits()).collect();
            assert_eq!(found, all.into_iter().map(f64::to_bits).collect::<Vec<_>>());
        }
        let theirs: Vec<f64> = (0..200_000).map(|_| 100.0 + random.random::<f64>()).collect();
        let ours: Vec<f64> = theirs.iter().map(|us| us / 1.5).collect();
        let ratio = Ratio::of(&theirs, &ours).unwrap();
        assert!((ratio.low - 1.5).abs() < 1e-9 && (ratio.high - 1.5).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn few_rounds_are_not_sure() {
        let ratio = Ratio::of(&[10.0, 20.0], &[10.0, 10.0]).unwrap();
        assert!((ratio.low - 1.0).abs() < 1e-12 && (ratio.high - 2.0).abs() < 1e-12, "{ratio:?}");
        assert_eq!(Ratio::of(&[], &[]), None);
    }

    /// As tables of the sign test have it.
    #[test]
    fn an_interval_leaves_as_many_out_as_chance_allows() {
        let left_out = |count: u32| interval(&(0..count).map(f64::from).collect::<Vec<_>>()).0;
        assert_eq!(
            [1, 2, 5, 6, 8, 9, 11, 12, 15, 20, 25].map(left_out),
            [0., 0., 0., 0., 0., 1., 1., 2., 3., 5., 7.]
        );
        assert!(interval(&[]).0.is_nan());
    }

    #[test]
    fn one_pause_among_nine_rounds_moves_no_interval() {
        let rounds = [20.0, 21.0, 20.5, 900.0, 20.2, 20.8, 20.1, 20.9, 20.4];
        assert_eq!(interval(&rounds), (20.1, 21.0));
        assert_eq!(interval(&rounds[..8]), (20.0, 900.0));
    }

    #[test]
    fn a_mean_of_many_is_surer_than_each() {
        let one = Ratio { ratio: 1.2, low: 1.1, high: 1.2 * 1.2 / 1.1 };
        let mean = Ratio::mean(&[one; 4]).unwrap();
        assert!((mean.ratio - 1.2).abs() < 1e-12, "{mean:?}");
        assert!((mean.half_width() - one.half_width() / 2.0).abs() < 1e-12, "{mean:?}");
        assert_eq!(Ratio::mean(&[]), None);
    }

    /// As a t-test has it: 0.01, 0.02 and 0.03 are 0.02 with a standard error of 0.01 / √3.
    #[test]
    fn starts_have_students_interval() {
        let theirs = [0.01_f64, 0.02, 0.03].map(f64::exp);
        let ratio = Ratio::of_starts(&theirs, &[1.0; 3]).unwrap();
        assert!((ratio.ratio.ln() - 0.02).abs() < 1e-12, "{ratio:?}");
        assert!((ratio.half_width() - 4.303 * 0.01 / 3.0_f64.sqrt()).abs() < 1e-12, "{ratio:?}");
        assert_eq!(Ratio::of_starts(&[1.0], &[1.0]), None);
        assert!(Ratio::of_starts(&[1.0; 30], &[1.0; 30]).is_some());
    }

    /// Of many intervals as many hold what is true as tables of the two tests say.
    #[test]
    fn intervals_hold_what_they_promise() {
        use rand::{RngExt, SeedableRng};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut noise = || {
            let sum: f64 = (0..6).map(|_| random.random::<f64>()).sum();
            100.0 * (1.0 + 0.05 * (sum - 3.0))
        };
        for (rounds, exactly) in [(6, [0.969, 0.969]), (8, [0.961, 0.992]), (12, [0.958, 0.961])] {
            let mut holds = [0; 2];
            for _ in 0..1000 {
                let [a, b]: [Vec<f64>; 2] = std::array::from_fn(|_| (0..rounds).map(|_| noise()).collect());
                let (ratio, (low, high)) = (Ratio::of(&a, &b).unwrap(), interval(&a));
                holds[0] += u32::from(ratio.low <= 1.0 && 1.0 <= ratio.high);
                holds[1] += u32::from(low <= 100.0 && 100.0 <= high);
            }
            for (holds, exactly) in holds.into_iter().zip(exactly) {
                assert!(
                    (f64::from(holds) / 1000.0 - exactly).abs() < 0.02,
                    "{rounds}: {holds}, not {exactly}"
                );
            }
        }
    }
}
