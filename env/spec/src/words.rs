//! Turning what a person typed into one of our words, with the nearest known word when it is none.
//!
//! Every name in the project is parsed through here, so that a typo is answered the same way
//! everywhere: what was read, what would be valid, and what was probably meant.

use std::fmt;

/// An enum of lower-case words, parsed and printed by the same names everywhere. Ids that stand in files or at NCCL's are
/// written down (`Ring = 1 => "ring"`); others are the order.
#[doc(hidden)]
#[macro_export]
macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident, $kind:literal, { $($(#[$vdoc:meta])* $variant:ident $(= $id:literal)? => $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
        )]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant $(= $id)?,)* }

        impl $name {
            /// All of them, in the order of their ids.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The integer id.
            pub const fn id(self) -> usize { self as usize }

            /// The one with this id, if there is one.
            pub fn from_id(id: usize) -> Option<Self> { Self::ALL.iter().copied().find(|x| x.id() == id) }

            /// The lower-case name, as in every file and JSON document of ours.
            pub const fn name(self) -> &'static str { match self { $($name::$variant => $word,)* } }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.name()) }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;
            fn from_str(s: &str) -> Result<Self, $crate::words::UnknownWord> {
                $crate::words::look_up($kind, s, &[$(($word, $name::$variant),)*])
            }
        }
    };
}
pub use word_enum;

/// A word that is not in the list it was looked up in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    /// What kind of word was expected, for instance `algorithm`.
    pub kind: &'static str,
    /// What was read.
    pub value: String,
    /// The words that would have been valid.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} \"{}\"", self.kind, self.value)?;
        if let Some(near) = nearest(&self.value, &self.known) {
            write!(f, "; did you mean \"{near}\"?")?;
        }
        write!(f, " (known: {})", self.known.join(", "))
    }
}

impl std::error::Error for UnknownWord {}

/// The known word closest to `value`, if any is close enough to be a typo of it.
pub fn nearest<'a, S: AsRef<str>>(value: &str, known: &'a [S]) -> Option<&'a str> {
    let value = value.to_lowercase();
    known
        .iter()
        .map(|word| (edit_distance(&value, &word.as_ref().to_lowercase()), word.as_ref()))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .map(|(_, word)| word)
}

/// Looks `value` up among `(name, item)` pairs, ignoring case, `_` and `-`.
pub fn look_up<T: Copy>(kind: &'static str, value: &str, known: &[(&str, T)]) -> Result<T, UnknownWord> {
    let plain = |s: &str| s.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(value);
    known.iter().find(|(name, _)| plain(name) == wanted).map(|(_, item)| *item).ok_or_else(|| UnknownWord {
        kind,
        value: value.to_owned(),
        known: known.iter().map(|(name, _)| (*name).to_owned()).collect(),
    })
}

/// Levenshtein distance over characters; the words are short, so one row of memory is enough.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_answered_with_the_word_that_was_meant() {
        let known = ["dgx_a100", "dgx_h100", "aws_p5"];
        assert_eq!(nearest("dgx_a10", &known), Some("dgx_a100"));
        assert_eq!(nearest("dxg_h100", &known), Some("dgx_h100"));
        assert_eq!(nearest("something else", &known), None);
    }

    #[test]
    fn lookup_ignores_case_and_separators() {
        let known = [("nvls_tree", 5), ("ring", 1)];
        assert_eq!(look_up("algorithm", "NVLSTree", &known), Ok(5));
        let error = look_up("algorithm", "rng", &known).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown algorithm \"rng\"; did you mean \"ring\"? (known: nvls_tree, ring)"
        );
    }
}
