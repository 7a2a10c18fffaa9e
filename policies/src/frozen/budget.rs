//! Whether a header may be handed to a JSON reader: what that would hold in memory, before it does.
//!
//! Two bytes of JSON can become hundreds in memory. A file from anywhere must not do that to a job, so
//! the header's entries are counted first, and priced at the most that the reader takes for each.

use super::error::FrozenError;

/// Bytes that the reader takes at most for a name with its value, for a list, and for one more item.
const ENTRY: usize = 256;
const LIST: usize = 128;
const ITEM: usize = 96;
/// Copies of the header's text that there are at most at a time.
const TEXT: usize = 4;
/// How many times its own size a file may take.
const MOST: usize = 4;

/// What a header is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Names with a value.
    pub entries: usize,
    /// Objects: what has names within.
    pub objects: usize,
    lists: usize,
    items: usize,
}

/// Counts the parts of a header; refuses it where reading takes too much for a file of this size.
pub fn within(header: &str, file: usize) -> Result<Parts, FrozenError> {
    let counted = parts(header);
    let Parts { entries, objects, lists, items } = counted;
    let lists = objects + lists;
    let cost = entries * ENTRY + lists * LIST + items * ITEM + header.len() * TEXT;
    if cost > file.saturating_mul(MOST) {
        return Err(FrozenError::Crowded { entries: entries + lists + items, file });
    }
    Ok(counted)
}

/// Counts outside of strings. A reader sees the same strings up to the first fault, where it stops.
fn parts(header: &str) -> Parts {
    let mut parts = Parts::default();
    let (mut quoted, mut escaped) = (false, false);
    for byte in header.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b':' => parts.entries += 1,
            b'{' => parts.objects += 1,
            b'[' => parts.lists += 1,
            b',' => parts.items += 1,
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_not_looked_into() {
        let counted = parts(r#"{"a:\",{[":[1,2],"b":"x,y\\"}"#);
        assert_eq!(counted, Parts { entries: 2, objects: 1, lists: 1, items: 2 });
    }

    #[test]
    fn a_crowd_of_tiny_entries_is_refused() {
        let header = format!("{{{}}}", vec!["\"\":[0]"; 2000].join(","));
        let refused = FrozenError::Crowded { entries: 2000 + 2001 + 1999, file: 40_000 };
        assert_eq!(within(&header, 40_000), Err(refused));
        assert_eq!(within(&header, 400_000).map(|parts| parts.entries), Ok(2000));
    }
}
