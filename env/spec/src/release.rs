//! NCCL's release by the number that its library tells and that nccl-tests writes down.

/// Major, minor and patch: 2.28.3 of 22803. Up to 2.8 the minor version had one digit, and 2804 is 2.8.4 (`NCCL_VERSION` of
/// `nccl.h`). None where no release has the number.
pub fn of_code(code: u64) -> Option<[u64; 3]> {
    match code {
        1_000..10_000 => Some([code / 1_000, code / 100 % 10, code % 100]),
        10_000..1_000_000 => Some([code / 10_000, code / 100 % 100, code % 100]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_releases() {
        assert_eq!([22_809, 23_003].map(of_code), [Some([2, 28, 9]), Some([2, 30, 3])]);
        assert_eq!([2_708, 2_804, 20_902].map(of_code), [Some([2, 7, 8]), Some([2, 8, 4]), Some([2, 9, 2])]);
        assert_eq!([0, 999, 1_000_000].map(of_code), [None; 3]);
    }
}
