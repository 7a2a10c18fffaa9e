//! Numbers that change while a stage goes by, in a straight line.

/// A number between the first and the last, after a share of the way.
///
/// A share outside 0 and 1 counts as the nearer end, one that is no number as the beginning.
pub fn linear([first, last]: [f32; 2], share: f64) -> f32 {
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    let (first, last) = (f64::from(first), f64::from(last));
    (first * (1.0 - share) + last * share) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_from_the_first_to_the_last() {
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|share| linear([4.0, 2.0], share)), [4.0, 3.5, 3.0, 2.0]);
        assert_eq!(linear([1e-3, 1e-4], 1.0), 1e-4);
    }

    #[test]
    fn beyond_its_ends_it_stays() {
        assert_eq!([-1.0, 1.5, f64::NAN].map(|share| linear([4.0, 2.0], share)), [4.0, 2.0, 4.0]);
    }
}
