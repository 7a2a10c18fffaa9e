//! Lists that people give: what stands there twice counts once, whoever counts.

/// Each value where it comes first.
pub fn once<T: PartialEq>(values: &[T]) -> impl Iterator<Item = &T> {
    values.iter().enumerate().filter(|(at, value)| !values[..*at].contains(value)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_everything_once_in_its_order() {
        assert!(once(&[3, 1, 3, 2, 1]).eq(&[3, 1, 2]));
    }
}
