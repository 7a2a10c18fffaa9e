//! Sums of weighted inputs, always added up in the order of the inputs.
//!
//! A CPU with wide registers may work on many outputs at once, never on many inputs of one output, so
//! the order of additions is the same on every CPU. Weights lie in blocks of outputs that fit the
//! registers of the smallest one. A sum can be left after some inputs and taken up again later, which
//! changes nothing either.

/// Outputs of a block.
const LANES: usize = 16;
/// Blocks that are worked on together: so many sums that the next never waits for the one before.
const TOGETHER: usize = 2;
/// Inputs above which zeros are not looked for.
const MOST_SPARSE: usize = 192;

type Block = [f32; LANES];

/// The weights of some outputs, and what their sums start with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linear {
    inputs: usize,
    bias: Vec<f32>,
    /// Block by block of outputs, input by input within it; missing outputs weigh nothing.
    weights: Vec<Block>,
}

/// One of the things that a [`Linear`] works out: a row of weights for each input, and the biases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output<'a> {
    pub weight: &'a [f32],
    pub bias: &'a [f32],
}

impl Linear {
    /// Sums for all these outputs, side by side, of the same inputs.
    pub fn new(inputs: usize, outputs: &[Output<'_>]) -> Self {
        let width = padded(outputs.iter().map(|output| output.bias.len()).sum());
        let mut bias = vec![0.0; width];
        let mut weights = vec![[0.0; LANES]; inputs * width / LANES];
        let mut first = 0;
        for output in outputs {
            let columns = output.bias.len();
            for (at, &start) in output.bias.iter().enumerate() {
                // A sum that does not start with −0 never becomes −0: inputs of 0 can then be left out.
                bias[first + at] = start + 0.0;
                for input in 0..inputs {
                    let (block, lane) = ((first + at) / LANES, (first + at) % LANES);
                    weights[block * inputs + input][lane] = output.weight[input * columns + at];
                }
            }
            first += columns;
        }
        Linear { inputs, bias, weights }
    }

    /// How many sums there are, those that only fill a block among them.
    pub fn width(&self) -> usize {
        self.bias.len()
    }

    /// Starts the sums.
    #[inline]
    pub fn begin(&self, sums: &mut [f32]) {
        sums.copy_from_slice(&self.bias);
    }

    /// Adds the inputs from number `first` on.
    #[inline]
    pub fn add(&self, first: usize, inputs: &[f32], sums: &mut [f32]) {
        self.add_each(first, inputs.len(), inputs.iter().copied().enumerate(), sums);
    }

    /// The same for at most 192 inputs of which many are 0: these are left out, which no sum can tell.
    #[inline]
    pub fn add_sparse(&self, first: usize, inputs: &[f32], sums: &mut [f32]) {
        let mut there = [(0, 0.0); MOST_SPARSE];
        let mut count = 0;
        for (at, &x) in inputs.iter().enumerate() {
            there[count] = (at, x);
            count += usize::from(x != 0.0);
        }
        self.add_each(first, inputs.len(), there[..count].iter().copied(), sums);
    }

    /// Adds `count` inputs from number `first` on to the sums of every row. Rows of inputs may be longer; as
    /// many rows of each.
    pub fn add_rows(&self, first: usize, count: usize, inputs: &[f32], sums: &mut [f32]) {
        let rows = sums.len() / self.width();
        if rows == 0 {
            return;
        }
        let stride = inputs.len() / rows;
        let input = |row: usize| &inputs[row * stride..][..count];
        for (block, weights) in self.weights.chunks_exact(self.inputs).enumerate() {
            let weights = &weights[first..][..count];
            let place =
                |row: usize| row * self.width() + block * LANES..row * self.width() + (block + 1) * LANES;
            for row in (0..rows - 1).step_by(2) {
                let mut held = [row, row + 1].map(|row| block_of(&sums[place(row)]));
                for ((weights, x), y) in weights.iter().zip(input(row)).zip(input(row + 1)) {
                    add_weighted(&mut held[0], weights, *x);
                    add_weighted(&mut held[1], weights, *y);
                }
                sums[place(row)].copy_from_slice(&held[0]);
                sums[place(row + 1)].copy_from_slice(&held[1]);
            }
            if rows % 2 == 1 {
                let sums = &mut sums[place(rows - 1)];
                let mut held = block_of(sums);
                weights
                    .iter()
                    .zip(input(rows - 1))
                    .for_each(|(weights, x)| add_weighted(&mut held, weights, *x));
                sums.copy_from_slice(&held);
            }
        }
    }

    /// Adds some of the `count` inputs from number `first` on: positions among these, and values.
    #[inline(always)]
    fn add_each<I>(&self, first: usize, count: usize, inputs: I, sums: &mut [f32])
    where
        I: Iterator<Item = (usize, f32)> + Clone,
    {
        let mut weights = self.weights.chunks_exact(self.inputs).map(|block| &block[first..][..count]);
        let mut next = || weights.next().expect("as many blocks of weights as of sums");
        let (together, rest) = sums.as_chunks_mut::<LANES>().0.as_chunks_mut::<TOGETHER>();
        for sums in together {
            add_blocks(std::array::from_fn::<_, TOGETHER, _>(|_| next()), inputs.clone(), sums);
        }
        for sums in rest {
            add_blocks([next()], inputs.clone(), std::array::from_mut(sums));
        }
    }
}

/// Adds inputs to some blocks of sums, which stay in registers meanwhile.
#[inline(always)]
fn add_blocks<const N: usize>(
    weights: [&[Block]; N],
    inputs: impl Iterator<Item = (usize, f32)>,
    sums: &mut [Block; N],
) {
    let mut held = *sums;
    for (at, x) in inputs {
        for (held, weights) in held.iter_mut().zip(&weights) {
            add_weighted(held, &weights[at], x);
        }
    }
    *sums = held;
}

#[inline(always)]
fn add_weighted(sums: &mut Block, weights: &Block, x: f32) {
    for (sum, weight) in sums.iter_mut().zip(weights) {
        *sum += weight * x;
    }
}

fn block_of(sums: &[f32]) -> Block {
    sums.try_into().expect("a whole block")
}

/// The number of outputs, filled up to whole blocks.
const fn padded(outputs: usize) -> usize {
    outputs.div_ceil(LANES) * LANES
}
