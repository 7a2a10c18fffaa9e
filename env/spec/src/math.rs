//! Exponential, logarithm and the normal distribution, with the same bits on every machine.
//!
//! The C library's own differ in their last bit between versions and CPUs, and a world must be the
//! same to the bit wherever its seed is replayed. These use only +, × and bit operations in a fixed
//! order, are accurate to about 1e-14, and cost a few nanoseconds.

use std::f64::consts::{LN_2, LOG2_E};

/// 2 to the power of `x`; 0 below the smallest normal number, infinity above the largest.
#[inline]
pub fn exp2(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < -1021.0 {
        return 0.0;
    }
    if x >= 1024.0 {
        return f64::INFINITY;
    }
    let whole = (x + 0.5).floor();
    let r = (x - whole) * LN_2;
    // Taylor series of e^r for |r| <= ln2/2: the twelfth term is below 1e-16.
    let mut sum = 1.0 / 39_916_800.0;
    for inverse_factorial in [
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        sum = sum * r + inverse_factorial;
    }
    sum * f64::from_bits(((whole as i64 + 1023) as u64) << 52)
}

/// The natural exponential.
#[inline]
pub fn exp(x: f64) -> f64 {
    exp2(x * LOG2_E)
}

/// Base-2 logarithm of a positive normal number; NaN otherwise.
#[inline]
pub fn log2(x: f64) -> f64 {
    if !(f64::MIN_POSITIVE..=f64::MAX).contains(&x) {
        return f64::NAN;
    }
    log2_of_normal(x)
}

/// Base-2 logarithm of what is known to be a positive normal number: without a branch, so that many can be
/// worked out at once.
#[inline(always)]
pub fn log2_of_normal(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let upper = mantissa > std::f64::consts::SQRT_2;
    let mantissa = if upper { mantissa * 0.5 } else { mantissa };
    let exponent = f64::from(exponent) + if upper { 1.0 } else { 0.0 };
    // ln m = 2 atanh(z) with |z| <= 0.1716, so z^21 is below 1e-16.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let mut sum = 1.0 / 21.0;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = sum * square + 1.0 / odd;
    }
    exponent + 2.0 * z * sum * LOG2_E
}

/// The natural logarithm.
#[inline]
pub fn ln(x: f64) -> f64 {
    log2(x) * LN_2
}

/// The share of a normal distribution below `x`, to about 1e-14 of the whole; NaN stays NaN.
///
/// Marsaglia's series, Φ(x) = ½ + φ(x)·(x + x³/3 + x⁵/15 + …): every term is above 0, so nothing cancels, and
/// it ends when a term no longer counts.
pub fn normal_below(x: f64) -> f64 {
    /// Beyond it, the rest of the distribution is below the last bit of 1.
    const FARTHEST: f64 = 8.3;
    const INVERSE_SQRT_TAU: f64 = 0.398_942_280_401_432_7;
    if x.is_nan() {
        return x;
    }
    if x.abs() >= FARTHEST {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let square = x * x;
    let (mut sum, mut before, mut term, mut odd) = (x, 0.0, x, 1.0);
    while sum != before {
        odd += 2.0;
        term *= square / odd;
        before = sum;
        sum += term;
    }
    // Summed up on one side and taken from 1 on the other: the two always add up to 1.
    let half = (sum.abs() * (INVERSE_SQRT_TAU * exp(-0.5 * square))).min(0.5);
    if x >= 0.0 { 0.5 + half } else { 0.5 - half }
}

/// The number that this share of a normal distribution lies below, to about 1e-9; for shares above 0 and below 1.
///
/// Acklam's rational approximations, one for the middle and one for the tails, which the other side mirrors.
pub fn normal_quantile(share: f64) -> f64 {
    const MIDDLE: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const UNDER_MIDDLE: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const TAIL: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const UNDER_TAIL: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    /// Where the tails begin.
    const BORDER: f64 = 0.02425;
    let sum = |factors: &[f64], x: f64| factors.iter().fold(0.0, |sum, factor| sum * x + factor);
    if share > 1.0 - BORDER {
        return -normal_quantile(1.0 - share);
    }
    if share < BORDER {
        let far = (-2.0 * ln(share)).sqrt();
        return sum(&TAIL, far) / sum(&UNDER_TAIL, far);
    }
    let off = share - 0.5;
    off * sum(&MIDDLE, off * off) / sum(&UNDER_MIDDLE, off * off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_c_library() {
        let mut x = -700.0;
        while x < 700.0 {
            let (ours, theirs) = (exp(x), x.exp());
            assert!((ours / theirs - 1.0).abs() < 2e-13, "exp({x}): {ours} {theirs}");
            x += 0.037;
        }
        let mut x = 1e-300;
        while x < 1e300 {
            assert!((log2(x) - x.log2()).abs() <= 1e-14 * x.log2().abs().max(1.0), "log2({x})");
            x *= 1.7;
        }
    }

    #[test]
    fn exact_where_exactness_is_expected() {
        for power in -60..60 {
            let x = (f64::from(power)).exp2();
            assert_eq!(log2(x), f64::from(power));
            assert_eq!(exp2(f64::from(power)), x);
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(1e9), f64::INFINITY);
        assert!(log2(0.0).is_nan() && log2(-1.0).is_nan() && exp2(f64::NAN).is_nan());
    }

    /// Made with 50 digits.
    #[test]
    fn the_normal_distribution_is_known_to_the_last_digits() {
        for (x, share) in [
            (0.0, 0.5),
            (0.1, 0.539827837277029),
            (-0.5, 0.3085375387259869),
            (1.0, 0.8413447460685429),
            (-1.5, 0.06680720126885807),
            (2.0, 0.9772498680518208),
            (2.5758293035489, 0.995),
            (-3.0, 0.0013498980316300946),
            (4.5, 0.9999966023268753),
            (-6.0, 9.86587645037698e-10),
            (8.0, 0.9999999999999993),
        ] {
            assert!((normal_below(x) - share).abs() < 1e-14, "{x}: {} {share}", normal_below(x));
            assert!((normal_below(x) + normal_below(-x) - 1.0).abs() < 3e-16, "{x}");
        }
        assert_eq!((normal_below(-40.0), normal_below(40.0)), (0.0, 1.0));
        assert!(normal_below(f64::NAN).is_nan());
    }

    #[test]
    fn the_normal_distribution_never_falls() {
        let shares: Vec<f64> = (-9000..=9000).map(|at| normal_below(f64::from(at) / 1000.0)).collect();
        assert!(
            shares.is_sorted_by(|a, b| *b >= *a - 1e-14) && shares.iter().all(|p| (0.0..=1.0).contains(p))
        );
    }

    #[test]
    fn a_quantile_is_where_that_share_lies_below() {
        for at in 1..1000 {
            let share = f64::from(at) / 1000.0;
            let back = normal_below(normal_quantile(share));
            assert!((back - share).abs() < 1e-8, "{share}: {back}");
        }
    }
}
