//! Least squares over a few dozen parameters at most: what `calibrate` and the fit of the model's
//! constants share.
//!
//! Levenberg's method with numeric derivatives, robust against outliers (measurements have them), and
//! held near a starting point: parameters that the data does not speak about stay where they were.

/// What to fit and how firmly to hold it.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// A residual above this counts less and less.
    pub outlier: f64,
    /// Weight that holds each parameter at its start.
    pub hold: f64,
    /// Farthest that a parameter may go from its start.
    pub reach: f64,
    /// Most iterations.
    pub iterations: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { outlier: 0.15, hold: 0.05, reach: 3.0, iterations: 60 }
    }
}

/// Step of the numeric derivative; parameters are logarithms, so this is a hundredth of a per cent.
const DERIVATIVE_STEP: f64 = 1e-4;

/// The parameters near `start` with the smallest robust sum of squared residuals.
///
/// `residuals` answers as many numbers each time. Parameters are usually logarithms of factors.
pub fn minimise(start: &[f64], options: Options, mut residuals: impl FnMut(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let mut x = start.to_vec();
    let mut now = residuals(&x);
    let mut cost = total(&now, &x, start, options);
    let mut damping = 1e-2;
    for _ in 0..options.iterations {
        let (matrix, gradient) = normal_equations(&x, &now, start, options, &mut residuals);
        let mut improved = None;
        while damping < 1e8 {
            let step = solve(matrix.clone(), &gradient, damping);
            let tried: Vec<f64> = x
                .iter()
                .zip(&step)
                .zip(start)
                .map(|((x, step), start)| (x - step).clamp(start - options.reach, start + options.reach))
                .collect();
            let then = residuals(&tried);
            let tried_cost = total(&then, &tried, start, options);
            if tried_cost < cost {
                improved = Some((tried, then, tried_cost));
                break;
            }
            damping *= 4.0;
        }
        let Some((tried, then, tried_cost)) = improved else { break };
        let gain = (cost - tried_cost) / cost;
        (x, now, cost) = (tried, then, tried_cost);
        damping = (damping / 8.0).max(1e-9);
        if gain < 1e-7 {
            break;
        }
    }
    x
}

fn total(residuals: &[f64], x: &[f64], start: &[f64], options: Options) -> f64 {
    let scale = options.outlier * options.outlier;
    let data: f64 = residuals.iter().map(|r| 2.0 * scale * ((1.0 + r * r / scale).sqrt() - 1.0)).sum();
    let held: f64 = x.iter().zip(start).map(|(x, start)| (x - start) * (x - start)).sum();
    data + options.hold * options.hold * held
}

fn normal_equations(
    x: &[f64],
    now: &[f64],
    start: &[f64],
    options: Options,
    residuals: &mut impl FnMut(&[f64]) -> Vec<f64>,
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let columns: Vec<Vec<f64>> = (0..x.len())
        .map(|j| {
            let mut moved = x.to_vec();
            moved[j] += DERIVATIVE_STEP;
            residuals(&moved).iter().zip(now).map(|(then, now)| (then - now) / DERIVATIVE_STEP).collect()
        })
        .collect();
    let weights: Vec<f64> = now.iter().map(|r| 1.0 / (1.0 + (r / options.outlier).powi(2)).sqrt()).collect();
    let dot =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).zip(&weights).map(|((a, b), w)| a * b * w).sum() };
    let firm = options.hold * options.hold;
    let mut matrix: Vec<Vec<f64>> =
        columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect();
    let mut gradient: Vec<f64> = columns.iter().map(|a| dot(a, now)).collect();
    for j in 0..x.len() {
        matrix[j][j] += firm;
        gradient[j] += firm * (x[j] - start[j]);
    }
    (matrix, gradient)
}

/// Solves (matrix + damping · diagonal) · step = right by Cholesky's method.
fn solve(mut matrix: Vec<Vec<f64>>, right: &[f64], damping: f64) -> Vec<f64> {
    let n = right.len();
    for (j, row) in matrix.iter_mut().enumerate() {
        row[j] += damping * row[j] + 1e-12;
    }
    for j in 0..n {
        for k in 0..j {
            let factor = matrix[j][k];
            for row in matrix.iter_mut().skip(j) {
                row[j] -= row[k] * factor;
            }
        }
        let pivot = matrix[j][j].max(1e-300).sqrt();
        for row in matrix.iter_mut().skip(j) {
            row[j] /= pivot;
        }
    }
    let mut step = right.to_vec();
    for j in 0..n {
        step[j] = (step[j] - (0..j).map(|k| matrix[j][k] * step[k]).sum::<f64>()) / matrix[j][j];
    }
    for j in (0..n).rev() {
        step[j] = (step[j] - (j + 1..n).map(|k| matrix[k][j] * step[k]).sum::<f64>()) / matrix[j][j];
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_curve_through_points_and_shrugs_at_an_outlier() {
        let data: Vec<(f64, f64)> =
            (0..20).map(|i| f64::from(i) * 0.2).map(|t| (t, 2.0 * (-0.7 * t).exp() + 0.3)).collect();
        let options = Options { hold: 1e-6, ..Options::default() };
        let fit = minimise(&[1.0, 0.1, 0.0], options, |x| {
            let curve = |t: f64| x[0] * (-x[1] * t).exp() + x[2];
            data.iter()
                .enumerate()
                .map(|(i, (t, y))| curve(*t) - y - if i == 7 { 5.0 } else { 0.0 })
                .collect()
        });
        for (found, truth) in fit.iter().zip([2.0, 0.7, 0.3]) {
            assert!((found - truth).abs() < 0.1, "{fit:?}");
        }
    }

    #[test]
    fn what_the_data_does_not_speak_about_stays() {
        let fit = minimise(&[1.0, 5.0], Options::default(), |x| vec![x[0] - 3.0; 50]);
        assert!((fit[0] - 3.0).abs() < 0.01);
        assert!((fit[1] - 5.0).abs() < 1e-6);
    }
}
