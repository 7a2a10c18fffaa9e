//! Numbers among the words: what is none, or out of its range, is answered with those that would do.
//!
//! What the standard library says of such a word ("invalid digit found in string") names no remedy, and clap takes a number
//! below zero for a flag.

use std::any::TypeId;
use std::ffi::OsString;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Arg, Command};

/// A whole number in this range.
pub(super) fn whole<T: FromStr>(
    range: impl RangeBounds<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let least = match range.start_bound() {
        Bound::Included(&least) => least,
        Bound::Excluded(&below) => below + 1,
        Bound::Unbounded => 0,
    };
    let most = match range.end_bound() {
        Bound::Included(&most) => Some(most),
        Bound::Excluded(&above) => Some(above - 1),
        Bound::Unbounded => None,
    };
    move |word| {
        let number = word.parse::<u64>().ok();
        let inside = number.is_some_and(|number| number >= least && most.is_none_or(|most| number <= most));
        let read = if inside { word.parse().ok() } else { None };
        // Where no most is set, a number can still be too large for its type.
        let digits = !word.is_empty() && word.bytes().all(|letter| letter.is_ascii_digit());
        let too_large = digits && number.is_none_or(|number| number >= least);
        let room = most.or(too_large.then_some(u64::MAX >> (64 - 8 * size_of::<T>())));
        read.ok_or_else(|| match room {
            Some(most) => format!("give a whole number from {least} to {most}"),
            None => format!("give a whole number from {least} up"),
        })
    }
}

/// A number, whatever its size.
pub(super) fn number<T: FromStr + Copy + Into<f64>>(word: &str) -> Result<T, String> {
    let number = word.parse::<T>().ok().filter(|number| (*number).into().is_finite());
    number.ok_or_else(|| "give a finite number, like 0.5".to_owned())
}

/// A number above zero.
pub(super) fn above_zero(word: &str) -> Result<f64, String> {
    let number = number(word).ok().filter(|number| *number > 0.0);
    number.ok_or_else(|| "give a number above 0, like 0.5".to_owned())
}

/// The command with flags that take a number below zero for their value and not for another flag, so that they say
/// themselves what they think of it. A flag that takes words or files does not.
pub(super) fn with_negative(command: Command) -> Command {
    let texts = [TypeId::of::<String>(), TypeId::of::<PathBuf>(), TypeId::of::<OsString>()];
    let each = move |arg: Arg| {
        let is_text = texts.iter().any(|text| arg.get_value_parser().type_id() == *text);
        let takes_one = arg.get_action().takes_values();
        if takes_one && !is_text { arg.allow_negative_numbers(true) } else { arg }
    };
    command.mut_args(each).mut_subcommands(with_negative)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn whole_numbers_are_read_and_others_answered_with_what_would_do() {
        assert_eq!((whole::<u32>(1..)("7"), whole::<u64>(..)("0")), (Ok(7), Ok(0)));
        assert_eq!(whole::<NonZeroU32>(1..)("1"), Ok(NonZeroU32::MIN));
        let many = "give a whole number from 1 to 1000";
        assert!(
            ["0", "1001", "-1", "x", "1.5", ""]
                .iter()
                .all(|bad| whole::<u32>(1..=1000)(bad) == Err(many.into()))
        );
        assert!(
            ["0", "-1", "x"].iter().all(|bad| whole::<NonZeroU32>(1..)(bad).unwrap_err().ends_with("1 up"))
        );
        let too_large = |refused: Result<u64, String>| refused.unwrap_err();
        assert!(too_large(whole::<u32>(1..)("4294967296").map(u64::from)).ends_with("1 to 4294967295"));
        assert!(too_large(whole(..)("18446744073709551616")).ends_with("0 to 18446744073709551615"));
    }

    #[test]
    fn numbers_are_finite() {
        assert_eq!((number("-0.5"), number::<f32>("2"), above_zero("3")), (Ok(-0.5), Ok(2.0), Ok(3.0)));
        assert!(["1e40", "inf", "nan", "x"].iter().all(|bad| number::<f32>(bad).is_err()));
        assert!(["0", "-1", "x"].iter().all(|bad| above_zero(bad).is_err()));
    }
}
