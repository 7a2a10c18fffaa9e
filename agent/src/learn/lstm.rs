//! The LSTM over whole sequences, and its backward, in plain Rust.
//!
//! burn differentiates a sequence step by step, with dozens of small tensors each; here all inputs are
//! multiplied at once, only the recurrent product is left for each step, and the weights' gradient is
//! a product over all steps. It knows nothing of decisions or losses. Calls lie time first: call `t`
//! of sequence `b` is row `t * sequences + b`.

use dynamiccl_policies::network::activation::{sigmoid, tanh_all};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use crate::matrices::{Before, add, flat_mut, layer, multiply, product, row, row_mut, rows, rows_mut};
use crate::wide::wide;

/// The weights, and the state that an episode begins with.
#[derive(Debug, Clone, Copy)]
pub struct Lstm<'a> {
    /// A row for each input (what was seen, then h), a column for each gate of each cell.
    pub weight: ArrayView2<'a, f32>,
    /// One for each gate of each cell.
    pub bias: ArrayView1<'a, f32>,
    /// h when an episode begins.
    pub hidden: &'a [f32],
    /// c when an episode begins.
    pub cell: &'a [f32],
}

/// A pass over sequences, as the backward needs it.
#[derive(Debug, Clone)]
pub struct Pass<'a> {
    sequences: usize,
    begins: &'a [bool],
    /// What was seen: by call.
    seen: Array2<f32>,
    /// h before the first calls.
    before: ArrayView2<'a, f32>,
    /// Gates after their activations: by call.
    gates: Array2<f32>,
    /// c before the first call, then after each.
    cells: Array2<f32>,
    /// tanh of c after each call.
    squashed: Array2<f32>,
    /// h after each call.
    pub hidden: Array2<f32>,
}

/// Gradients of what a pass began with.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// Of the weights.
    pub weight: Array2<f32>,
    /// Of the biases.
    pub bias: Array1<f32>,
    /// Of the h that episodes begin with.
    pub hidden: Vec<f32>,
    /// Of the c that episodes begin with.
    pub cell: Vec<f32>,
    /// Of the first columns of what was seen: by call.
    pub seen: Array2<f32>,
}

impl<'a> Lstm<'a> {
    fn memory(&self) -> usize {
        self.hidden.len()
    }

    /// Goes through sequences from the states `hidden` and `cell` (a row for each sequence). `seen` is by call;
    /// where an episode `begins` the state is the initial one instead, and what is seen does not matter.
    pub fn pass<'b>(
        &self,
        seen: Array2<f32>,
        begins: &'b [bool],
        hidden: ArrayView2<'b, f32>,
        cell: ArrayView2<'_, f32>,
    ) -> Pass<'b> {
        let (calls, width, memory) = (seen.nrows(), seen.ncols(), self.memory());
        let sequences = hidden.nrows();
        let gates = layer(seen.view(), rows(self.weight, 0..width), self.bias);
        let of_h = rows(self.weight, width..width + memory);
        let mut cells = Array2::zeros((calls + sequences, memory));
        rows_mut(cells.view_mut(), 0..sequences).assign(&cell);
        let [squashed, after] = [(); 2].map(|()| Array2::zeros((calls, memory)));
        let mut pass =
            Pass { sequences, begins, seen, before: hidden, gates, cells, squashed, hidden: after };
        for first in (0..calls).step_by(sequences) {
            let calls = first..first + sequences;
            let before = match first.checked_sub(sequences) {
                None => hidden,
                Some(before) => rows(pass.hidden.view(), before..first),
            };
            multiply(before, of_h, rows_mut(pass.gates.view_mut(), calls.clone()), Before::Kept);
            wide!({
                for call in calls {
                    self.step(&mut pass, call);
                }
            });
        }
        pass
    }

    /// What a call makes of its gates' sums.
    #[inline(always)]
    fn step(&self, pass: &mut Pass<'_>, call: usize) {
        let memory = self.memory();
        let Pass { sequences, begins, gates, cells, squashed, hidden, .. } = pass;
        let gates = row_mut(gates, call);
        let (before, after) = flat_mut(cells).split_at_mut((call + *sequences) * memory);
        let (before, after) = (&before[call * memory..][..memory], &mut after[..memory]);
        let (squashed, hidden) = (row_mut(squashed, call), row_mut(hidden, call));
        if begins[call] {
            after.copy_from_slice(self.cell);
            hidden.copy_from_slice(self.hidden);
            return;
        }
        let (open, rest) = gates.split_at_mut(2 * memory);
        let (candidate, output) = rest.split_at_mut(memory);
        sigmoid_all(open);
        tanh_all(candidate);
        sigmoid_all(output);
        let (input, forget) = open.split_at(memory);
        for at in 0..memory {
            after[at] = forget[at] * before[at] + input[at] * candidate[at];
        }
        squashed.copy_from_slice(after);
        tanh_all(squashed);
        for at in 0..memory {
            hidden[at] = output[at] * squashed[at];
        }
    }

    /// The gradient of a loss whose gradient by h after each call is `hidden`; `seen` says by how many of the
    /// first columns of what was seen it is wanted as well.
    pub fn backward(&self, mut pass: Pass<'_>, hidden: ArrayView2<'_, f32>, seen: usize) -> Gradient {
        let (calls, memory, sequences) = (hidden.nrows(), self.memory(), pass.sequences);
        let width = pass.seen.ncols();
        // Turned over once, not for each call.
        let of_h = rows(self.weight, width..width + memory).reversed_axes();
        let of_h = of_h.as_standard_layout();
        let mut by =
            By { hidden: Array2::zeros((sequences, memory)), cell: Array2::zeros((sequences, memory)) };
        let mut initial = [vec![0.0; memory], vec![0.0; memory]];
        for first in (0..calls).step_by(sequences).rev() {
            let calls = first..first + sequences;
            by.hidden += &rows(hidden, calls.clone());
            wide!({
                for (sequence, call) in calls.clone().enumerate() {
                    pass.back(call, by.of(sequence), &mut initial);
                }
            });
            // An episode's first call has gates of 0 now, so nothing goes back beyond it.
            multiply(rows(pass.gates.view(), calls), of_h.view(), by.hidden.view_mut(), Before::Replaced);
        }
        let [hidden, cell] = initial;
        let (sums, of_seen) = (pass.gates.view(), rows(self.weight, 0..seen));
        Gradient {
            weight: pass.by_weight(sums),
            bias: sums.sum_axis(Axis(0)),
            hidden,
            cell,
            seen: product(sums, of_seen.t()),
        }
    }
}

/// Gradients by h and c, a row for each sequence.
struct By {
    hidden: Array2<f32>,
    cell: Array2<f32>,
}

impl By {
    #[inline(always)]
    fn of(&mut self, sequence: usize) -> [&mut [f32]; 2] {
        [&mut self.hidden, &mut self.cell].map(|by| row_mut(by, sequence))
    }
}

impl Pass<'_> {
    /// Goes back over one call: `by` are the gradients by h and c after it, of which the latter becomes that by c
    /// before it. In the place of its gates are then the gradients by their sums: nobody needs both.
    #[inline(always)]
    fn back(&mut self, call: usize, [by_hidden, by_cell]: [&mut [f32]; 2], initial: &mut [Vec<f32>; 2]) {
        let memory = by_cell.len();
        let gates = row_mut(&mut self.gates, call);
        if self.begins[call] {
            add(&mut initial[0], by_hidden);
            add(&mut initial[1], by_cell);
            by_cell.fill(0.0);
            gates.fill(0.0);
            return;
        }
        let (squashed, before) = (row(&self.squashed, call), row(&self.cells, call));
        let (first, last) = gates.split_at_mut(2 * memory);
        let (input, forget) = first.split_at_mut(memory);
        let (candidate, output) = last.split_at_mut(memory);
        for at in 0..memory {
            let (i, f, g, o) = (input[at], forget[at], candidate[at], output[at]);
            let (squashed, dh) = (squashed[at], by_hidden[at]);
            let dc = by_cell[at] + dh * o * (1.0 - squashed * squashed);
            input[at] = dc * g * i * (1.0 - i);
            forget[at] = dc * before[at] * f * (1.0 - f);
            candidate[at] = dc * i * (1.0 - g * g);
            output[at] = dh * squashed * o * (1.0 - o);
            by_cell[at] = dc * f;
        }
    }

    /// The gradient by the weights, given that by the gates' sums: each call has seen something, and h after the call
    /// before.
    fn by_weight(&self, sums: ArrayView2<'_, f32>) -> Array2<f32> {
        let Pass { sequences, seen, before, hidden, .. } = self;
        let (calls, width, memory) = (seen.nrows(), seen.ncols(), before.ncols());
        let mut weight = Array2::zeros((width + memory, sums.ncols()));
        let (of_seen, mut of_h) = weight.view_mut().split_at(Axis(0), width);
        multiply(seen.t(), sums, of_seen, Before::Replaced);
        multiply(before.t(), rows(sums, 0..*sequences), of_h.view_mut(), Before::Replaced);
        let before = rows(hidden.view(), 0..calls - sequences).reversed_axes();
        multiply(before, rows(sums, *sequences..calls), of_h, Before::Kept);
        weight
    }
}

#[inline(always)]
fn sigmoid_all(numbers: &mut [f32]) {
    for x in numbers {
        *x = sigmoid(*x);
    }
}
