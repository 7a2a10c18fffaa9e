//! Small enums with one word each, parsed with the nearest known word as everywhere else.

/// An enum of lower-case words that are read, printed and stored alike.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $kind:literal, { $($(#[$vdoc:meta])* $variant:ident => $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
        )]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Its word.
            pub const fn name(self) -> &'static str { match self { $($name::$variant => $word,)* } }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.name()) }
        }

        impl std::str::FromStr for $name {
            type Err = dynamiccl_spec::words::UnknownWord;
            fn from_str(s: &str) -> Result<Self, dynamiccl_spec::words::UnknownWord> {
                dynamiccl_spec::words::look_up($kind, s, &[$(($word, $name::$variant),)*])
            }
        }
    };
}
pub(crate) use words;
