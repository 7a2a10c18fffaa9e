//! Rows and products of plain matrices, which always lie row after row.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array, Array2, ArrayView2, ArrayViewMut2, Axis, Dimension, Slice};

/// A row.
pub(super) fn row(matrix: &Array2<f32>, at: usize) -> &[f32] {
    let width = matrix.ncols();
    &flat(matrix)[at * width..][..width]
}

/// A row, to be written.
pub(super) fn row_mut(matrix: &mut Array2<f32>, at: usize) -> &mut [f32] {
    let width = matrix.ncols();
    &mut flat_mut(matrix)[at * width..][..width]
}

/// All numbers in one row.
pub(super) fn flat<D: Dimension>(array: &Array<f32, D>) -> &[f32] {
    array.as_slice().expect("row after row")
}

/// All rows in one, to be written.
pub(super) fn flat_mut(matrix: &mut Array2<f32>) -> &mut [f32] {
    matrix.as_slice_mut().expect("row after row")
}

/// Adds numbers to sums.
pub(super) fn add(sums: &mut [f32], numbers: &[f32]) {
    sums.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += x);
}

/// The product of two matrices.
pub(super) fn product(left: ArrayView2<'_, f32>, right: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut product = Array2::zeros((left.nrows(), right.ncols()));
    general_mat_mul(1.0, &left, &right, 0.0, &mut product);
    product
}

/// Some rows.
pub(super) fn rows(mut of: ArrayView2<'_, f32>, range: Range<usize>) -> ArrayView2<'_, f32> {
    of.slice_axis_inplace(Axis(0), Slice::from(range));
    of
}

/// Some rows, to be written.
pub(super) fn rows_mut(mut of: ArrayViewMut2<'_, f32>, range: Range<usize>) -> ArrayViewMut2<'_, f32> {
    of.slice_axis_inplace(Axis(0), Slice::from(range));
    of
}

/// Some columns, to be written.
pub(super) fn columns_mut(mut of: ArrayViewMut2<'_, f32>, range: Range<usize>) -> ArrayViewMut2<'_, f32> {
    of.slice_axis_inplace(Axis(1), Slice::from(range));
    of
}
