//! A fingerprint that is the same on every machine: FNV-1a, 64 bit.
//!
//! It tells encodings, policies and decisions apart in logs and files. It is no defence against anybody
//! who wants two things to look alike.

/// A fingerprint under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// The fingerprint of nothing.
    pub fn new() -> Self {
        Fnv::default()
    }

    /// Adds a byte.
    pub fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.byte(byte));
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Adds the bits of numbers.
    pub fn numbers(&mut self, numbers: &[f32]) {
        numbers.iter().for_each(|x| self.number(u64::from(x.to_bits())));
    }

    /// Adds a word and its end.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.byte(0);
    }

    /// The fingerprint so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(Fnv::new().value(), 0xcbf2_9ce4_8422_2325);
        let mut hash = Fnv::new();
        hash.bytes(b"foobar");
        assert_eq!(hash.value(), 0x8594_4171_f739_67e8);
    }
}
