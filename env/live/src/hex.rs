//! Bytes as digits, two each.

/// Writes them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads them; none where something is no such digit, or one is left over.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |at| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..text.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_their_digits() {
        assert_eq!(unhex(&hex(&[0, 171, 255])), Some(vec![0, 171, 255]));
        assert_eq!(["0g", "abc", "é"].map(unhex), [None, None, None]);
    }
}
