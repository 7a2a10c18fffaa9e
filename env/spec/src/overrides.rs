//! What a user has fixed through NCCL's environment variables.
//!
//! NCCL honours these itself; the simulator must, to be a fair baseline, and the plugin must know
//! them, to stay out of the way. The syntax of the two lists is NCCL's (`parseList` in `tuning.cc`):
//! elements separated by commas, `^` in front to negate, `;` between per-collective parts, and only
//! the first part may lack a collective.

use std::fmt;

use crate::ids::{Algorithm, Collective, Pair, Protocol};
use crate::table::PairMask;
use crate::words::{UnknownWord, look_up};

/// NCCL's variables that change its decision. The default is none set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overrides {
    /// `NCCL_ALGO`: allowed algorithms per tuned collective.
    pub algorithms: Option<AllowList>,
    /// `NCCL_PROTO`: allowed protocols per tuned collective.
    pub protocols: Option<AllowList>,
    /// `NCCL_NTHREADS`.
    pub threads: Option<u32>,
    /// `NCCL_LL128_NTHREADS`.
    pub ll128_threads: Option<u32>,
    /// `NCCL_MIN_NCHANNELS` or `NCCL_MIN_CTAS`.
    pub min_channels: Option<u32>,
    /// `NCCL_MAX_NCHANNELS` or `NCCL_MAX_CTAS`.
    pub max_channels: Option<u32>,
    /// `NCCL_MIN_CTAS` alone: unlike `NCCL_MIN_NCHANNELS` it bounds NVLS channels too.
    pub min_ctas: Option<u32>,
    /// `NCCL_MAX_CTAS` alone: unlike `NCCL_MAX_NCHANNELS` it bounds NVLS channels too.
    pub max_ctas: Option<u32>,
    /// `NCCL_NVLS_NCHANNELS`.
    pub nvls_channels: Option<u32>,
    /// `NCCL_PAT_ENABLE`: forced on or off.
    pub pat: Option<bool>,
    /// `NCCL_NET_OVERHEAD`, nanoseconds.
    pub net_overhead_ns: Option<u32>,
    /// Whether NCCL may make one kernel of a group of broadcasts with different roots ([`Overrides::GATHERING`]), as it does
    /// from 2.29 on. It asks about it as about an allgather, and up to 2.30 takes as many channels as a tuner wants, whether
    /// or not there are so many. By what a tuner is told the two are the same.
    pub gathers_broadcasts: bool,
}

/// Which elements a list variable allows, as bits by id, per tuned collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowList([u8; Collective::TUNED.len()]);

impl AllowList {
    /// Whether the element with this id is allowed for the collective.
    pub fn allows(&self, collective: Collective, id: usize) -> bool {
        self.0.get(collective.id()).is_none_or(|bits| bits & (1 << id) != 0)
    }

    /// Whether the variable says anything about the collective. NCCL keeps its own rule (LL128 only on
    /// good paths) for one that it does not, and drops that rule for one that it does.
    pub fn mentions(&self, collective: Collective) -> bool {
        self.0.get(collective.id()).is_some_and(|bits| *bits != u8::MAX)
    }
}

/// A variable with a value that NCCL would refuse or ignore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadOverride {
    variable: String,
    value: String,
    why: String,
}

impl fmt::Display for BadOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: {}", self.variable, self.value, self.why)
    }
}

impl std::error::Error for BadOverride {}

impl Overrides {
    /// The variables read here.
    pub const VARIABLES: [&'static str; 11] = [
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NCCL_NTHREADS",
        "NCCL_LL128_NTHREADS",
        "NCCL_MIN_NCHANNELS",
        "NCCL_MIN_CTAS",
        "NCCL_MAX_NCHANNELS",
        "NCCL_MAX_CTAS",
        "NCCL_NVLS_NCHANNELS",
        "NCCL_PAT_ENABLE",
        "NCCL_NET_OVERHEAD",
    ];

    /// NCCL's switch for [`Overrides::gathers_broadcasts`]: 0 is off.
    pub const GATHERING: &'static str = "NCCL_ALLGATHERV_ENABLE";

    /// Sets one variable from its text.
    pub fn set(&mut self, variable: &str, value: &str) -> Result<(), BadOverride> {
        let bad = |why: String| BadOverride { variable: variable.to_owned(), value: value.to_owned(), why };
        let number = || number(value).ok_or_else(|| bad("not a whole number".to_owned()));
        // The stricter of two spellings of the same limit holds, as in NCCL.
        let stricter = |old: Option<u32>, new: u32, pick: fn(u32, u32) -> u32| {
            Some(old.map_or(new, |old| pick(old, new)))
        };
        match variable {
            "NCCL_ALGO" => self.algorithms = Some(parse_list(value, &ALGORITHM_WORDS).map_err(bad)?),
            "NCCL_PROTO" => self.protocols = Some(parse_list(value, &PROTOCOL_WORDS).map_err(bad)?),
            "NCCL_NTHREADS" => self.threads = Some(number()?),
            "NCCL_LL128_NTHREADS" => self.ll128_threads = Some(number()?),
            "NCCL_MIN_NCHANNELS" => self.min_channels = stricter(self.min_channels, number()?, u32::max),
            "NCCL_MAX_NCHANNELS" => self.max_channels = stricter(self.max_channels, number()?, u32::min),
            "NCCL_MIN_CTAS" => {
                self.min_ctas = Some(number()?);
                self.min_channels = stricter(self.min_channels, number()?, u32::max);
            }
            "NCCL_MAX_CTAS" => {
                self.max_ctas = Some(number()?);
                self.max_channels = stricter(self.max_channels, number()?, u32::min);
            }
            "NCCL_NVLS_NCHANNELS" => self.nvls_channels = Some(number()?),
            // 2 is NCCL's "decide yourself".
            "NCCL_PAT_ENABLE" => self.pat = Some(number()?).filter(|&n| n != 2).map(|n| n != 0),
            "NCCL_NET_OVERHEAD" => self.net_overhead_ns = Some(number()?),
            Self::GATHERING => self.gathers_broadcasts = number()? != 0,
            _ => {
                let known = [&Self::VARIABLES[..], &[Self::GATHERING]].concat().join(", ");
                return Err(bad(format!("unknown variable (known: {known})")));
            }
        }
        Ok(())
    }

    /// The same with rings as the only algorithm, whatever the user would have: for networks that can carry nothing
    /// else.
    pub fn only_rings(mut self) -> Self {
        self.algorithms = Some(AllowList([1 << Algorithm::Ring.id(); Collective::TUNED.len()]));
        self
    }

    /// The pairs that the two lists leave for a collective.
    pub fn mask(&self, collective: Collective) -> PairMask {
        let allowed = |list: &Option<AllowList>, id| list.as_ref().is_none_or(|l| l.allows(collective, id));
        Pair::all()
            .filter(|p| {
                allowed(&self.algorithms, p.algorithm.id()) && allowed(&self.protocols, p.protocol.id())
            })
            .fold(PairMask::NONE, PairMask::with)
    }
}

/// A number as NCCL reads one: `0x` begins sixteens, `0` eights.
pub fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match (hex, text.strip_prefix('0')) {
        (Some(digits), _) => u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
        (None, Some(digits)) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// NCCL's spellings, which differ from ours (`CollnetDirect`, `NVLSTree`).
const ALGORITHM_WORDS: [(&str, usize); 7] = [
    ("Tree", Algorithm::Tree.id()),
    ("Ring", Algorithm::Ring.id()),
    ("CollNetDirect", Algorithm::CollnetDirect.id()),
    ("CollNetChain", Algorithm::CollnetChain.id()),
    ("NVLS", Algorithm::Nvls.id()),
    ("NVLSTree", Algorithm::NvlsTree.id()),
    ("PAT", Algorithm::Pat.id()),
];
const PROTOCOL_WORDS: [(&str, usize); 3] =
    [("LL", Protocol::LL.id()), ("LL128", Protocol::LL128.id()), ("Simple", Protocol::Simple.id())];

fn parse_list(text: &str, words: &[(&str, usize)]) -> Result<AllowList, String> {
    let mut list = [u8::MAX; Collective::TUNED.len()];
    for (position, part) in text.split(';').filter(|part| !part.is_empty()).enumerate() {
        let (prefix, elements) = match part.split_once(':') {
            Some((prefix, elements)) => (Some(prefix), elements),
            None if position == 0 => (None, part),
            None => {
                return Err(format!(
                    "\"{part}\" needs a collective in front (only the first entry may lack one)"
                ));
            }
        };
        let bits = parse_elements(elements, words).map_err(|e| e.to_string())?;
        match prefix {
            None => list.fill(bits),
            Some(prefix) => list[tuned(prefix).map_err(|e| e.to_string())?.id()] = bits,
        }
    }
    Ok(AllowList(list))
}

fn tuned(prefix: &str) -> Result<Collective, UnknownWord> {
    look_up("collective", prefix, &Collective::TUNED.map(|c| (c.name(), c)))
}

fn parse_elements(elements: &str, words: &[(&str, usize)]) -> Result<u8, UnknownWord> {
    let (negated, elements) = match elements.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, elements),
    };
    let mut bits = 0u8;
    for element in elements.split(',').filter(|element| !element.is_empty()) {
        bits |= 1 << look_up("element", element, words)?;
    }
    Ok(if negated { !bits } else { bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn algorithms(text: &str, collective: Collective) -> Vec<&'static str> {
        let mut overrides = Overrides::default();
        overrides.set("NCCL_ALGO", text).unwrap();
        let list = overrides.algorithms.unwrap();
        Algorithm::ALL.iter().filter(|a| list.allows(collective, a.id())).map(|a| a.name()).collect()
    }

    #[test]
    fn nccls_own_examples_read_as_nccl_documents_them() {
        let text = "ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring";
        assert_eq!(algorithms(text, Collective::Reduce), ["ring", "collnet_direct"]);
        assert_eq!(algorithms(text, Collective::AllReduce), ["tree", "collnet_direct"]);
        assert_eq!(algorithms(text, Collective::Broadcast), ["ring"]);

        let mut overrides = Overrides::default();
        overrides.set("NCCL_PROTO", "^LL128;allreduce:LL128").unwrap();
        let list = overrides.protocols.unwrap();
        assert!(list.allows(Collective::AllGather, Protocol::LL.id()));
        assert!(!list.allows(Collective::AllGather, Protocol::LL128.id()));
        assert!(list.allows(Collective::AllReduce, Protocol::LL128.id()));
        assert!(!list.allows(Collective::AllReduce, Protocol::Simple.id()));

        overrides.set("NCCL_PROTO", "allreduce:LL,LL128,Simple").unwrap();
        let list = overrides.protocols.unwrap();
        assert!(list.mentions(Collective::AllReduce) && !list.mentions(Collective::AllGather));
    }

    #[test]
    fn both_lists_meet_in_the_mask() {
        let mut overrides = Overrides::default();
        for (variable, value) in [
            ("NCCL_ALGO", "Ring,Tree"),
            ("NCCL_PROTO", "^LL"),
            ("NCCL_MAX_NCHANNELS", "8"),
            ("NCCL_MAX_CTAS", "4"),
        ] {
            overrides.set(variable, value).unwrap();
        }
        let mask = overrides.mask(Collective::AllReduce);
        assert_eq!(mask.len(), 4);
        assert!(!mask.contains(Pair::new(Algorithm::Ring, Protocol::LL)));
        assert_eq!(overrides.max_channels, Some(4));
        assert_eq!(overrides.max_ctas, Some(4));
        assert!(overrides.protocols.is_some_and(|list| list.mentions(Collective::Reduce)));
        assert_eq!(Overrides::default().mask(Collective::AllReduce), PairMask::ALL);
    }

    #[test]
    fn only_rings_leaves_rings_in_every_protocol_whatever_was_set() {
        let mut overrides = Overrides::default();
        overrides.set("NCCL_ALGO", "tree").unwrap();
        let rings = overrides.only_rings();
        for collective in Collective::TUNED {
            let allowed = rings.mask(collective);
            assert!(allowed.iter().all(|pair| pair.algorithm == Algorithm::Ring), "{collective}");
            assert_eq!(allowed.iter().count(), Protocol::ALL.len(), "{collective}");
        }
    }

    #[test]
    fn what_nccl_would_refuse_is_refused_with_the_remedy() {
        let mut overrides = Overrides::default();
        let message = |r: Result<(), BadOverride>| r.unwrap_err().to_string();
        assert!(message(overrides.set("NCCL_ALGO", "rong")).contains("did you mean \"Ring\""));
        assert!(message(overrides.set("NCCL_ALGO", "ring;tree")).contains("only the first entry"));
        assert!(message(overrides.set("NCCL_PROTO", "allredce:LL")).contains("did you mean \"allreduce\""));
        assert!(message(overrides.set("NCCL_NTHREADS", "many")).contains("not a whole number"));
        let known = message(overrides.set("FOO", "1"));
        assert!(known.ends_with(&format!("NCCL_NET_OVERHEAD, {})", Overrides::GATHERING)), "{known}");
    }

    #[test]
    fn numbers_are_what_nccl_takes_them_for() {
        for (text, read) in [
            ("16", Some(16)),
            (" 16 ", Some(16)),
            ("0x10", Some(16)),
            ("0X1f", Some(31)),
            ("010", Some(8)),
            ("0", Some(0)),
        ] {
            assert_eq!(number(text), read, "{text}");
        }
        for text in ["", "many", "0x", "0x+1", "08", "-1", "1.5", "4294967296"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
