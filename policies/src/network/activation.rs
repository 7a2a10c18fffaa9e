//! Exponential, tanh and sigmoid of 32-bit numbers, the same bits on every CPU.
//!
//! They use +, −, ×, ÷, comparisons and bit operations alone and have no branch, so that a compiler
//! may run them over as many numbers at once as the CPU has lanes without changing one of them. Every
//! step is monotone, so the whole is. What is no number counts as 0: nothing that is no number leaves
//! an activation.
//!
//! They and the layers that use them are always inlined: a caller that has wider registers at hand has them used.

/// The exponent beyond which [`exp`] no longer grows: the result is still finite.
const LARGEST: f32 = 88.0;
/// The exponent below which [`exp`] no longer shrinks: the result is still a normal number.
const SMALLEST: f32 = -87.0;

/// Adding this rounds to a whole number, which then stands in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;
/// ln 2 in two parts; a whole number below 2^15 times the first is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// e^r = 1 + r·(C₀ + C₁·r + C₂·r² + …) for r in [0, ln 2], to 8e-8. All are positive and r is not negative, so
/// no step of the sum can fall while r grows.
const C: [f32; 5] = [1.000_006, 0.499_870_84, 0.167_554_9, 0.039_062_65, 0.011_669_367];

/// Where tanh is 1 to the last bit.
const SATURATED: f32 = 10.0;
/// The bit of a number that is its sign.
const SIGN: u32 = 1 << 31;

/// e^x, to 5e-7 of itself for x within ±8 and to 5e-6 for all; e^-87 and e^88 beyond these, and 1 for what
/// is no number.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = if x.is_nan() { 0.0 } else { x };
    let x = if x > SMALLEST { x } else { SMALLEST };
    let x = if x < LARGEST { x } else { LARGEST };
    exp_within(x)
}

/// e^x for x between −87 and 88, which nobody looks after.
#[inline(always)]
pub(super) fn exp_within(x: f32) -> f32 {
    let shifted = (x * std::f32::consts::LOG2_E - 0.5) + ROUNDER;
    let whole = shifted - ROUNDER;
    let rest = (x - whole * LN_2_HIGH) - whole * LN_2_LOW;
    let rest = if rest > 0.0 { rest } else { 0.0 };
    // In pairs, which wait less for each other than one after the other.
    let square = rest * rest;
    let series = (C[0] + rest * C[1]) + square * ((C[2] + rest * C[3]) + square * C[4]);
    let series = 1.0 + rest * series;
    let series = if series < 2.0 { series } else { 2.0 };
    // The whole number leaves the low bits of `shifted` for the exponent of a power of two.
    series * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// tanh x, to 2e-7.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let x = if x.is_nan() { 0.0 } else { x };
    let sign = x.to_bits() & SIGN;
    let size = f32::from_bits(x.to_bits() & !SIGN);
    let size = if size < SATURATED { size } else { SATURATED };
    let tanh = 1.0 - 2.0 / (exp_within(2.0 * size) + 1.0);
    f32::from_bits(tanh.to_bits() | sign)
}

/// 1 / (1 + e^-x), to 2e-7.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// tanh of every number.
#[inline(always)]
pub fn tanh_all(numbers: &mut [f32]) {
    // Several registers at a time, so that no one waits for its last step.
    let (chunks, rest) = numbers.as_chunks_mut::<8>();
    for chunk in chunks {
        for x in chunk {
            *x = tanh(*x);
        }
    }
    for x in rest {
        *x = tanh(*x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of every size up to 128 in ascending order, `step` neighbours apart.
    fn numbers(step: usize) -> impl Iterator<Item = f32> {
        let largest = 128_f32.to_bits();
        let below = (0..=largest).rev().step_by(step).map(|bits| -f32::from_bits(bits));
        below.chain((0..=largest).step_by(step).map(f32::from_bits))
    }

    fn hold(step: usize) {
        let mut before = [-1.0_f32, 0.0, 0.0];
        for x in numbers(step) {
            let wide = f64::from(x);
            let now = [tanh(x), sigmoid(x), exp(x)];
            let truth = [wide.tanh(), 1.0 / (1.0 + (-wide).exp()), wide.clamp(-87.0, 88.0).exp()];
            let exp_error = truth[2] * if x.abs() <= 8.0 { 5e-7 } else { 5e-6 };
            for (name, at, largest) in [("tanh", 0, 2e-7), ("sigmoid", 1, 2e-7), ("exp", 2, exp_error)] {
                let error = (f64::from(now[at]) - truth[at]).abs();
                assert!(error <= largest, "{name}({x}) = {}, not {}", now[at], truth[at]);
                assert!(now[at] >= before[at], "{name} falls at {x}");
            }
            assert_eq!(now[0], -tanh(-x));
            before = now;
        }
    }

    #[test]
    fn close_to_the_truth_and_never_falling() {
        hold(997);
    }

    #[test]
    #[ignore = "every number there is: minutes"]
    fn close_to_the_truth_and_never_falling_for_every_number() {
        hold(1);
    }

    #[test]
    fn exact_where_exactness_is_expected() {
        assert_eq!((exp(0.0), tanh(0.0), sigmoid(0.0)), (1.0, 0.0, 0.5));
        for large in [20.0, 1e30, f32::MAX, f32::INFINITY] {
            assert_eq!((tanh(large), tanh(-large), sigmoid(large)), (1.0, -1.0, 1.0));
            assert!(sigmoid(-large) < 3e-9 && exp(large).is_finite() && exp(-large) >= f32::MIN_POSITIVE);
        }
        let both = [f32::NAN, -f32::NAN];
        assert_eq!(both.map(|x| tanh(x).to_bits()), [0; 2]);
        assert_eq!(both.map(sigmoid), [0.5; 2]);
        assert_eq!(both.map(exp), [1.0; 2]);
    }

    #[test]
    fn many_at_once_are_the_same_as_one_by_one() {
        let mut all: Vec<f32> = numbers(9_999_991).chain([f32::NAN, f32::INFINITY, f32::MIN]).collect();
        let one_by_one: Vec<u32> = all.iter().map(|&x| tanh(std::hint::black_box(x)).to_bits()).collect();
        tanh_all(&mut all);
        assert_eq!(all.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), one_by_one);
    }
}
