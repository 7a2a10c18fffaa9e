//! Rows and products of plain matrices, which always lie row after row.

use std::ops::Range;

use dynamiccl_policies::network::activation::tanh_all;
use gemm::{Parallelism, gemm};
use ndarray::{Array, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Dimension, Slice};

use crate::wide::wide;

/// A row.
pub(crate) fn row(matrix: &Array2<f32>, at: usize) -> &[f32] {
    let width = matrix.ncols();
    &flat(matrix)[at * width..][..width]
}

/// A row, to be written.
pub(crate) fn row_mut(matrix: &mut Array2<f32>, at: usize) -> &mut [f32] {
    let width = matrix.ncols();
    &mut flat_mut(matrix)[at * width..][..width]
}

/// All numbers in one row.
pub(crate) fn flat<D: Dimension>(array: &Array<f32, D>) -> &[f32] {
    array.as_slice().expect("row after row")
}

/// All rows in one, to be written.
pub(crate) fn flat_mut(matrix: &mut Array2<f32>) -> &mut [f32] {
    matrix.as_slice_mut().expect("row after row")
}

/// Adds numbers to sums.
pub(crate) fn add(sums: &mut [f32], numbers: &[f32]) {
    sums.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += x);
}

/// What becomes of the numbers that stood where a product goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// They are not read.
    Replaced,
    /// The product is added to them.
    Kept,
}

/// Puts left × right where it belongs. The products are those that burn takes on a CPU: they know the widest registers
/// of the machine, which ndarray's do not, and read matrices where they lie, where burn's tensors are copies.
#[allow(unsafe_code)]
pub(crate) fn multiply(
    left: ArrayView2<'_, f32>,
    right: ArrayView2<'_, f32>,
    mut into: ArrayViewMut2<'_, f32>,
    before: Before,
) {
    let (rows, inner, columns) = (left.nrows(), left.ncols(), right.ncols());
    assert_eq!((inner, into.dim()), (right.nrows(), (rows, columns)), "rows × columns");
    let [of_left, of_right, of_into] =
        [left.strides(), right.strides(), into.strides()].map(|of| [of[1], of[0]]);
    let kept = before == Before::Kept;
    // SAFETY: pointers and strides are those of views with just as many rows and columns as are said, and what is
    // written is borrowed by nobody else.
    unsafe {
        gemm(
            rows,
            columns,
            inner,
            into.as_mut_ptr(),
            of_into[0],
            of_into[1],
            kept,
            left.as_ptr(),
            of_left[0],
            of_left[1],
            right.as_ptr(),
            of_right[0],
            of_right[1],
            if kept { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// The product of two matrices.
pub(crate) fn product(left: ArrayView2<'_, f32>, right: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut into = Array2::zeros((left.nrows(), right.ncols()));
    multiply(left, right, into.view_mut(), Before::Replaced);
    into
}

/// The sums of a layer: inputs × weight + bias.
pub(crate) fn layer(
    inputs: ArrayView2<'_, f32>,
    weight: ArrayView2<'_, f32>,
    bias: ArrayView1<'_, f32>,
) -> Array2<f32> {
    let bias = bias.as_slice().expect("one after the other");
    let mut sums = Array2::from_shape_vec((inputs.nrows(), bias.len()), bias.repeat(inputs.nrows()))
        .expect("whole rows");
    multiply(inputs, weight, sums.view_mut(), Before::Kept);
    sums
}

/// tanh of every number.
pub(crate) fn tanh(numbers: &mut [f32]) {
    wide!(tanh_all(numbers));
}

/// Some rows.
pub(crate) fn rows(mut of: ArrayView2<'_, f32>, range: Range<usize>) -> ArrayView2<'_, f32> {
    of.slice_axis_inplace(Axis(0), Slice::from(range));
    of
}

/// Some rows, to be written.
pub(crate) fn rows_mut(mut of: ArrayViewMut2<'_, f32>, range: Range<usize>) -> ArrayViewMut2<'_, f32> {
    of.slice_axis_inplace(Axis(0), Slice::from(range));
    of
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(rows: usize, columns: usize, seed: u64) -> Array2<f32> {
        let mut at = seed;
        Array2::from_shape_simple_fn((rows, columns), || {
            at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (at >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
    }

    proptest! {
        /// Of matrices as they lie, of parts of them and of some that were turned over.
        #[test]
        fn products_are_ndarrays(
            (rows, inner, columns) in (0usize..20, 0usize..40, 0usize..40),
            skipped in 0usize..3,
            turned in any::<[bool; 2]>(),
            kept in any::<bool>(),
        ) {
            let of = |turned: bool, rows: usize, columns: usize, seed| {
                if turned { numbers(columns, rows, seed).reversed_axes() } else { numbers(rows, columns, seed) }
            };
            let left = of(turned[0], rows + skipped, inner, 1);
            let left = super::rows(left.view(), skipped..rows + skipped);
            let right = of(turned[1], inner, columns, 2);
            let stood = numbers(rows, columns, 3);
            let mut got = stood.clone();
            multiply(left, right.view(), got.view_mut(), if kept { Before::Kept } else { Before::Replaced });
            let mut expected = left.dot(&right);
            if kept {
                expected += &stood;
            }
            prop_assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4), "{got} {expected}");
        }
    }
}
