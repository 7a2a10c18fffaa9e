//! Lists that people give: what stands there twice counts once, whoever counts.

/// Each value where it comes first.
pub fn once<T: Clone + PartialEq>(values: &[T]) -> Vec<T> {
    let first = |(at, value): &(usize, &T)| !values[..*at].contains(value);
    values.iter().enumerate().filter(first).map(|(_, value)| value.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_everything_once_in_its_order() {
        assert_eq!(once(&[3, 1, 3, 2, 1]), [3, 1, 2]);
    }
}
