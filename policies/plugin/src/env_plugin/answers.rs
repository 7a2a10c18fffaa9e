//! The answers that are ours: a few digits each, in memory that stays where it is.
//!
//! NCCL may hold on to an answer until it asks again or ends, so an answer is a place in the library itself:
//! nothing is allocated, and it cannot go before the library does.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The digits of any 64-bit number, and a zero.
const LENGTH: usize = 21;

/// A number as a C string, or none.
pub struct Answer {
    digits: [AtomicU8; LENGTH],
    is_given: AtomicBool,
}

impl Answer {
    /// No answer.
    pub const fn none() -> Self {
        Answer { digits: [const { AtomicU8::new(0) }; LENGTH], is_given: AtomicBool::new(false) }
    }

    /// Sets the answer, or takes it back.
    pub fn set(&self, number: Option<u64>) {
        self.is_given.store(false, Ordering::Release);
        if let Some(number) = number {
            let text = number.to_string();
            let bytes = text.bytes().chain(std::iter::repeat(0));
            self.digits.iter().zip(bytes).for_each(|(place, digit)| place.store(digit, Ordering::Relaxed));
            self.is_given.store(true, Ordering::Release);
        }
    }

    /// The digits, which end with a zero, if there is an answer.
    pub fn get(&self) -> Option<&[AtomicU8; LENGTH]> {
        self.is_given.load(Ordering::Acquire).then_some(&self.digits)
    }
}

/// Threads of a block.
pub static THREADS: Answer = Answer::none();
/// The buffer of the Simple protocol.
pub static BUFFER: Answer = Answer::none();

/// The answer to a variable that we may answer.
pub fn to(variable: &[u8]) -> Option<&'static Answer> {
    match variable {
        b"NCCL_NTHREADS" => Some(&THREADS),
        b"NCCL_BUFFSIZE" => Some(&BUFFER),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(answer: &Answer) -> Option<String> {
        let digits = answer.get()?.iter().map(|digit| digit.load(Ordering::Relaxed));
        Some(digits.take_while(|&digit| digit != 0).map(char::from).collect())
    }

    #[test]
    fn an_answer_is_digits_that_end() {
        let answer = Answer::none();
        assert_eq!(text(&answer), None);
        for number in [u64::MAX, 0, 256, 4 << 20] {
            answer.set(Some(number));
            assert_eq!(text(&answer), Some(number.to_string()));
        }
        answer.set(None);
        assert_eq!(text(&answer), None);
    }

    #[test]
    fn only_two_variables_are_ours() {
        for other in ["NCCL_ALGO", "NCCL_NTHREADS2", "NCCL_LL128_NTHREADS", "nccl_nthreads", ""] {
            assert!(to(other.as_bytes()).is_none(), "{other}");
        }
        assert!(to(b"NCCL_NTHREADS").is_some() && to(b"NCCL_BUFFSIZE").is_some());
    }
}
