//! The LSTM over whole sequences, and its backward, in plain Rust.
//!
//! burn differentiates a sequence step by step, with dozens of small tensors each; here all inputs are
//! multiplied at once, only the recurrent product is left for each step, and the weights' gradient is
//! one product over all steps. It knows nothing of decisions or losses. Calls lie time first: call `t`
//! of sequence `b` is row `t * sequences + b`.

use dynamiccl_policies::network::activation::{sigmoid, tanh_all};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use super::matrices::{Factor, add, columns_mut, flat_mut, product, row, row_mut, rows, rows_mut};

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
    /// What was seen, then h before: by call.
    inputs: Array2<f32>,
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
        seen: ArrayView2<'_, f32>,
        begins: &'b [bool],
        hidden: ArrayView2<'_, f32>,
        cell: ArrayView2<'_, f32>,
    ) -> Pass<'b> {
        let (calls, width, memory) = (seen.nrows(), seen.ncols(), self.memory());
        let sequences = hidden.nrows();
        let mut inputs = Array2::zeros((calls, width + memory));
        columns_mut(inputs.view_mut(), 0..width).assign(&seen);
        let gates = product(seen, rows(self.weight, 0..width)) + self.bias;
        let of_h = Factor::new(rows(self.weight, width..width + memory));
        let mut cells = Array2::zeros((calls + sequences, memory));
        rows_mut(cells.view_mut(), 0..sequences).assign(&cell);
        let (squashed, after) = (Array2::zeros((calls, memory)), Array2::zeros((calls, memory)));
        let mut pass = Pass { sequences, begins, inputs, gates, cells, squashed, hidden: after };
        for first in (0..calls).step_by(sequences) {
            let calls = first..first + sequences;
            let before = match first.checked_sub(sequences) {
                None => hidden,
                Some(before) => rows(pass.hidden.view(), before..first),
            };
            let inputs = rows_mut(pass.inputs.view_mut(), calls.clone());
            columns_mut(inputs, width..width + memory).assign(&before);
            let sums = Factor::new(before).times(&of_h);
            add(&mut flat_mut(&mut pass.gates)[first * 4 * memory..], &sums);
            calls.for_each(|call| self.step(&mut pass, call));
        }
        pass
    }

    /// What a call makes of its gates' sums.
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
    pub fn backward(&self, pass: &Pass<'_>, hidden: ArrayView2<'_, f32>, seen: usize) -> Gradient {
        let (calls, memory, sequences) = (hidden.nrows(), self.memory(), pass.sequences);
        let inputs = pass.inputs.ncols();
        // Turned over once, not for each call.
        let of_h = rows(self.weight, inputs - memory..inputs);
        let of_h = Factor::new(of_h.t().as_standard_layout().view());
        let mut sums = Array2::zeros((calls, 4 * memory));
        let mut by_hidden = Array2::zeros((sequences, memory));
        let mut by_cell = Array2::zeros((sequences, memory));
        let mut initial = [vec![0.0; memory], vec![0.0; memory]];
        for first in (0..calls).step_by(sequences).rev() {
            let calls = first..first + sequences;
            by_hidden += &rows(hidden, calls.clone());
            for sequence in 0..sequences {
                let by = [&mut by_hidden, &mut by_cell].map(|by| row_mut(by, sequence));
                back_step(pass, first + sequence, by, row_mut(&mut sums, first + sequence), &mut initial);
            }
            // An episode's first call has gates of 0 here, so nothing goes back beyond it.
            let sums = Factor::new(rows(sums.view(), calls));
            flat_mut(&mut by_hidden).copy_from_slice(&sums.times(&of_h));
        }
        let [hidden, cell] = initial;
        let of_seen = rows(self.weight, 0..seen);
        Gradient {
            weight: product(pass.inputs.t(), sums.view()),
            bias: sums.sum_axis(Axis(0)),
            hidden,
            cell,
            seen: product(sums.view(), of_seen.t()),
        }
    }
}

/// Goes back over one call: `by` are the gradients by h and c after it, of which the latter becomes that by c
/// before it; `sums` gets the gradient by the gates' sums.
fn back_step(
    pass: &Pass<'_>,
    call: usize,
    by: [&mut [f32]; 2],
    sums: &mut [f32],
    initial: &mut [Vec<f32>; 2],
) {
    let [by_hidden, by_cell] = by;
    if pass.begins[call] {
        add(&mut initial[0], by_hidden);
        add(&mut initial[1], by_cell);
        by_cell.fill(0.0);
        return;
    }
    let memory = by_cell.len();
    let gates = row(&pass.gates, call);
    let [input, forget, candidate, output] = [0, 1, 2, 3].map(|gate| &gates[gate * memory..][..memory]);
    let (squashed, before) = (row(&pass.squashed, call), row(&pass.cells, call));
    let (first, last) = sums.split_at_mut(2 * memory);
    let (by_input, by_forget) = first.split_at_mut(memory);
    let (by_candidate, by_output) = last.split_at_mut(memory);
    for at in 0..memory {
        let (i, f, g, o) = (input[at], forget[at], candidate[at], output[at]);
        let (squashed, dh) = (squashed[at], by_hidden[at]);
        let dc = by_cell[at] + dh * o * (1.0 - squashed * squashed);
        by_input[at] = dc * g * i * (1.0 - i);
        by_forget[at] = dc * before[at] * f * (1.0 - f);
        by_candidate[at] = dc * i * (1.0 - g * g);
        by_output[at] = dh * squashed * o * (1.0 - o);
        by_cell[at] = dc * f;
    }
}

fn sigmoid_all(numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|x| *x = sigmoid(*x));
}
