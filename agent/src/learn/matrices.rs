//! Rows and products of plain matrices, which always lie row after row.

use std::ops::Range;

use burn::tensor::{Device, Tensor};
use ndarray::{Array, Array2, ArrayView2, ArrayViewMut2, Axis, Dimension, Slice};

use super::leaves::{matrix, numbers};

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

/// A matrix that others are multiplied with, as burn has it: its products know the widest registers of the
/// machine, which ndarray's do not, and read a matrix where it lies, where ndarray's copy all of it for a few rows.
#[derive(Debug, Clone)]
pub(super) struct Factor(Tensor<2>);

impl Factor {
    /// A matrix, or one turned over: what is copied lies row after row or column after column.
    pub fn new(of: ArrayView2<'_, f32>) -> Self {
        match (of.as_slice(), of.t().as_slice()) {
            (Some(rows), _) => Factor(matrix(rows.to_vec(), [of.nrows(), of.ncols()], &Device::flex())),
            (None, Some(_)) => Factor(Self::new(of.t()).0.transpose()),
            (None, None) => Self::new(of.as_standard_layout().view()),
        }
    }

    /// This × another, row after row.
    pub fn times(&self, right: &Factor) -> Vec<f32> {
        numbers(self.0.clone().matmul(right.0.clone()))
    }
}

/// The product of two matrices.
pub(super) fn product(left: ArrayView2<'_, f32>, right: ArrayView2<'_, f32>) -> Array2<f32> {
    let numbers = Factor::new(left).times(&Factor::new(right));
    Array2::from_shape_vec((left.nrows(), right.ncols()), numbers).expect("rows × columns")
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
