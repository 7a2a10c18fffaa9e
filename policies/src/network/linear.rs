//! Sums of weighted inputs, always added up in the order of the inputs.
//!
//! A CPU with wide registers may work on many outputs at once, never on many inputs of one output, so
//! the order of additions is the same on every CPU. Weights lie in blocks of outputs that fit the
//! registers of the smallest one. A sum can be left after some inputs and taken up again later, which
//! changes nothing either.

use std::ops::Range;

/// Outputs of a block.
const LANES: usize = 16;
/// Blocks that are worked on together: so many sums that the next never waits for the one before.
const TOGETHER: usize = 2;

type Sums = [f32; LANES];

/// The weights of one input for a block of outputs; no two lines of a cache are needed to read it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
struct Weights(Sums);

/// The weights of some outputs, and what their sums start with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linear {
    inputs: usize,
    bias: Vec<f32>,
    /// Block by block of outputs, input by input within it; missing outputs weigh nothing.
    weights: Vec<Weights>,
}

/// One of the things that a [`Linear`] works out: a row of weights for each input, and the biases.
#[derive(Debug, Clone)]
pub(super) struct Output<'a> {
    pub weight: &'a [f32],
    pub bias: &'a [f32],
    /// The outputs that are wanted of it.
    pub columns: Range<usize>,
}

impl Linear {
    /// Sums for all these outputs, side by side, of the same inputs.
    pub fn new(inputs: usize, outputs: &[Output<'_>]) -> Self {
        let width = padded(outputs.iter().map(|output| output.columns.len()).sum());
        let mut bias = vec![0.0; width];
        let mut weights = vec![Weights([0.0; LANES]); inputs * width / LANES];
        let columns = outputs.iter().flat_map(|output| output.columns.clone().map(move |at| (output, at)));
        for (sum, (output, column)) in columns.enumerate() {
            // A sum that does not start with −0 never becomes −0: inputs of 0 can then be left out.
            bias[sum] = output.bias[column] + 0.0;
            let block = &mut weights[sum / LANES * inputs..][..inputs];
            for (weights, row) in block.iter_mut().zip(output.weight.chunks_exact(output.bias.len())) {
                weights.0[sum % LANES] = row[column];
            }
        }
        Linear { inputs, bias, weights }
    }

    /// How many sums there are, those that only fill a block among them.
    pub fn width(&self) -> usize {
        self.bias.len()
    }

    /// Starts the sums.
    #[inline(always)]
    pub fn begin(&self, sums: &mut [f32]) {
        sums.copy_from_slice(&self.bias);
    }

    /// Adds the inputs from number `first` on.
    #[inline(always)]
    pub fn add(&self, first: usize, inputs: &[f32], sums: &mut [f32]) {
        self.add_each(first, inputs.len(), inputs, |at, &x| (at, x), sums);
    }

    /// The same for inputs of which many are 0: these are left out, which no sum can tell.
    #[inline(always)]
    pub fn add_sparse<const N: usize>(&self, first: usize, inputs: &[f32; N], sums: &mut [f32]) {
        let mut there = [(0_u32, 0.0); N];
        let mut count = 0;
        for (at, &x) in inputs.iter().enumerate() {
            there[count] = (at as u32, x);
            count += usize::from(x != 0.0);
        }
        self.add_each(first, inputs.len(), &there[..count], |_, &(at, x)| (at as usize, x), sums);
    }

    /// Adds the first `count` inputs of several rows, each `row` wide and with sums of its own: their weights are then
    /// fetched once for all.
    #[inline(always)]
    pub fn add_rows(&self, count: usize, rows: &[f32], row: usize, sums: &mut [f32]) {
        for block in (0..self.width() / LANES).step_by(TOGETHER) {
            for (inputs, sums) in rows.chunks_exact(row).zip(sums.chunks_exact_mut(self.width())) {
                let sums =
                    sums.as_chunks_mut().0[block..].chunks_mut(TOGETHER).next().expect("it has this block");
                self.add_to(block, 0, count, &inputs[..count], |at, &x| (at, x), sums);
            }
        }
    }

    /// Adds some of the `count` inputs from number `first` on; `read` says which one an input is, and its value.
    #[inline(always)]
    fn add_each<T>(
        &self,
        first: usize,
        count: usize,
        inputs: &[T],
        read: impl Fn(usize, &T) -> (usize, f32) + Copy,
        sums: &mut [f32],
    ) {
        for (at, sums) in sums.as_chunks_mut().0.chunks_mut(TOGETHER).enumerate() {
            self.add_to(TOGETHER * at, first, count, inputs, read, sums);
        }
    }

    /// The same for the sums of [`TOGETHER`] blocks from this one on, or of the last.
    #[inline(always)]
    fn add_to<T>(
        &self,
        block: usize,
        first: usize,
        count: usize,
        inputs: &[T],
        read: impl Fn(usize, &T) -> (usize, f32),
        sums: &mut [Sums],
    ) {
        let weights = |at: usize| &self.weights[(block + at) * self.inputs..][first..][..count];
        match sums.as_mut_array() {
            Some(sums) => add_blocks::<_, TOGETHER>(std::array::from_fn(weights), inputs, read, sums),
            None => {
                for (at, sums) in sums.iter_mut().enumerate() {
                    add_blocks([weights(at)], inputs, &read, std::array::from_mut(sums));
                }
            }
        }
    }
}

/// Adds inputs to some blocks of sums, which stay in registers meanwhile.
#[inline(always)]
fn add_blocks<T, const N: usize>(
    weights: [&[Weights]; N],
    inputs: &[T],
    read: impl Fn(usize, &T) -> (usize, f32),
    sums: &mut [Sums; N],
) {
    let mut held = *sums;
    let mut add = |at: usize, input: &T| {
        let (at, x) = read(at, input);
        for (held, weights) in held.iter_mut().zip(&weights) {
            add_weighted(held, &weights[at], x);
        }
    };
    // A few inputs in a row, so that less is spent on counting them.
    let (fours, rest) = inputs.as_chunks::<4>();
    for (four, inputs) in fours.iter().enumerate() {
        for (at, input) in inputs.iter().enumerate() {
            add(4 * four + at, input);
        }
    }
    for (at, input) in rest.iter().enumerate() {
        add(4 * fours.len() + at, input);
    }
    *sums = held;
}

#[inline(always)]
fn add_weighted(sums: &mut Sums, weights: &Weights, x: f32) {
    for (sum, weight) in sums.iter_mut().zip(&weights.0) {
        *sum += weight * x;
    }
}

/// The number of outputs, filled up to whole blocks.
const fn padded(outputs: usize) -> usize {
    outputs.div_ceil(LANES) * LANES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const INPUTS: usize = 37;
    const OUTPUTS: [usize; 3] = [3, 21, 11];

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        // Some zeros, of both signs.
        let number = |x: f64| if x.abs() < 0.3 { 0.0 * x } else { x * x * x };
        (0..count).map(|_| number(2.0 * random.uniform() - 1.0) as f32).collect()
    }

    fn drawn() -> ([Vec<f32>; 3], [Vec<f32>; 3], Linear) {
        let weights = OUTPUTS.map(|count| numbers(INPUTS * count, count as u64));
        let biases = OUTPUTS.map(|count| numbers(count, 100 + count as u64));
        let output = |at: usize| Output { weight: &weights[at], bias: &biases[at], columns: 0..OUTPUTS[at] };
        let linear = Linear::new(INPUTS, &[output(0), output(1), output(2)]);
        (weights, biases, linear)
    }

    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|x| x.to_bits()).collect()
    }

    fn summed(linear: &Linear, inputs: &[f32]) -> Vec<f32> {
        let mut sums = vec![0.0; linear.width()];
        linear.begin(&mut sums);
        linear.add(0, inputs, &mut sums);
        sums
    }

    #[test]
    fn a_sum_adds_its_inputs_in_their_order() {
        let (weights, biases, linear) = drawn();
        let inputs = numbers(INPUTS, 5);
        let mut expected = Vec::new();
        for (weight, bias) in weights.iter().zip(&biases) {
            for column in 0..bias.len() {
                let mut sum = bias[column] + 0.0;
                (0..INPUTS).for_each(|at| sum += weight[at * bias.len() + column] * inputs[at]);
                expected.push(sum);
            }
        }
        let sums = summed(&linear, &inputs);
        assert_eq!(bits(&sums[..expected.len()]), bits(&expected));
        assert_eq!((sums.len(), &sums[expected.len()..]), (48, &[0.0; 13][..]));
    }

    #[test]
    fn leaving_off_and_leaving_zeros_out_change_no_bit() {
        let (_, _, linear) = drawn();
        for seed in 0..20 {
            let inputs = numbers(INPUTS, seed);
            for split in [0, 1, 10, INPUTS] {
                let mut parts = vec![0.0; linear.width()];
                linear.begin(&mut parts);
                linear.add(0, &inputs[..split], &mut parts);
                linear.add(split, &inputs[split..], &mut parts);
                assert_eq!(bits(&parts), bits(&summed(&linear, &inputs)));
            }
            let mut parts = vec![0.0; linear.width()];
            linear.begin(&mut parts);
            linear.add(0, &inputs[..5], &mut parts);
            linear.add_sparse::<{ INPUTS - 5 }>(5, inputs.last_chunk().unwrap(), &mut parts);
            assert_eq!(bits(&parts), bits(&summed(&linear, &inputs)));
        }
    }

    #[test]
    fn rows_together_add_up_to_what_each_does() {
        const ROW: usize = INPUTS + 3;
        let (_, _, linear) = drawn();
        let rows = numbers(3 * ROW, 7);
        let mut together = vec![0.0; 3 * linear.width()];
        together.chunks_exact_mut(linear.width()).for_each(|sums| linear.begin(sums));
        linear.add_rows(INPUTS, &rows, ROW, &mut together);
        let each = rows.chunks_exact(ROW).flat_map(|row| summed(&linear, &row[..INPUTS]));
        assert_eq!(bits(&together), bits(&each.collect::<Vec<_>>()));
    }

    #[test]
    fn some_columns_of_an_output_are_the_same_as_among_all() {
        let (weight, bias) = (numbers(INPUTS * 8, 1), numbers(8, 2));
        let of = |columns| Linear::new(INPUTS, &[Output { weight: &weight, bias: &bias, columns }]);
        let inputs = numbers(INPUTS, 3);
        assert_eq!(summed(&of(0..8), &inputs)[4..8], summed(&of(4..8), &inputs)[..4]);
    }
}
