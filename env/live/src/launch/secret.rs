//! What lets workers in.

use std::fs::File;
use std::io::{self, Read};

use crate::hex::hex;

/// A word that nobody guesses.
pub fn secret() -> io::Result<String> {
    let mut bytes = [0_u8; 24];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike() {
        assert_eq!(secret().unwrap().len(), 48);
        assert_ne!(secret().unwrap(), secret().unwrap());
    }
}
