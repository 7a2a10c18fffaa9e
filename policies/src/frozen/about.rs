//! What a file says about itself, as words: which build can run it, where it comes from, how good it is.
//!
//! Lists are separated by commas and nothing is nested, so that a person, a shell and any language can
//! read it without a second parser.

use std::collections::BTreeMap;
use std::str::FromStr;

use dynamiccl_spec::features::{VERSION, hash};
use dynamiccl_spec::gates::Gate;
use dynamiccl_spec::{GateSet, Head};

use super::FORMAT;
use super::container::repeated;
use super::error::FrozenError;
use super::fingerprint;

/// Number of keys that a file has, its fingerprint among them.
pub const KEYS: usize = OWN_KEYS.len() + KNOB_KEYS.len();

const FORMAT_KEY: &str = "format";
const OWN_KEYS: [&str; 15] = [
    FORMAT_KEY,
    "features",
    "encoder",
    "gates",
    "nccl",
    "margin",
    "name",
    "curriculum",
    "seeds",
    "steps",
    "version",
    "command",
    "created",
    "parent",
    "results",
];
// A list of its own, so that an error can say which.
const KNOB_KEYS: [&str; 6] =
    ["knobs.path", "knobs.pair", "knobs.channels", "knobs.chunk", "knobs.threads", fingerprint::KEY];

/// What a file says about itself, beside what this build holds it to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct About {
    /// What it is called.
    pub name: String,
    /// The gates that stood before it while it was trained.
    pub gates: GateSet,
    /// The releases of NCCL that it was trained for, for instance 2.30.
    pub nccl: Vec<String>,
    /// Spreads of its expected gain that this must exceed before it departs from NCCL's choice.
    pub margin: f32,
    /// Where it comes from.
    pub training: Training,
    /// What it reached, by what was judged; words without comma or equals sign.
    pub results: Vec<(String, f64)>,
}

/// Where a policy comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Training {
    /// The curriculum.
    pub curriculum: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Steps of the environment.
    pub steps: u64,
    /// The release of DynamICCL that made it.
    pub version: String,
    /// The command that made it.
    pub command: String,
    /// When, in UTC.
    pub created: String,
    /// The hash of the policy that it was made from, if it was.
    pub parent: Option<u64>,
}

type Words = BTreeMap<String, String>;

/// Whether a file is a policy of this form at all.
pub fn check_format(words: &Words) -> Result<(), FrozenError> {
    let found = words.get(FORMAT_KEY).ok_or(FrozenError::NoFormat)?;
    if found == FORMAT { Ok(()) } else { Err(FrozenError::Format { found: repeated(found) }) }
}

impl About {
    /// What the metadata of a file say, if this build can run it.
    pub fn read(words: &Words) -> Result<About, FrozenError> {
        check_build(words)?;
        let known = |key: &str| OWN_KEYS.contains(&key) || KNOB_KEYS.contains(&key);
        if let Some(key) = words.keys().find(|key| !known(key)) {
            return Err(FrozenError::UnexpectedKey { key: repeated(key) });
        }
        let about = About {
            name: text(words, "name")?,
            gates: gates(get(words, "gates")?)?,
            nccl: list(get(words, "nccl")?).map(str::to_owned).collect(),
            margin: number(words, "margin", "a number of spreads", |x: &f32| x.is_finite())?,
            training: Training::read(words)?,
            results: results(words)?,
        };
        about.check_spelling(words)?;
        Ok(about)
    }

    /// The metadata of a file that says this, but for its fingerprint. What is no printable character is a
    /// space there.
    pub fn metadata(&self) -> BTreeMap<&'static str, String> {
        let Training { curriculum, seeds, steps, version, command, created, parent } = &self.training;
        let results = self.results.iter().map(|(what, value)| format!("{what}={value}"));
        let mut words = BTreeMap::from([
            (FORMAT_KEY, FORMAT.to_owned()),
            ("features", VERSION.to_owned()),
            ("encoder", fingerprint::text(hash())),
            ("gates", joined(self.gates.iter())),
            ("nccl", self.nccl.join(",")),
            ("margin", self.margin.to_string()),
            ("name", self.name.clone()),
            ("curriculum", curriculum.clone()),
            ("seeds", joined(seeds.iter())),
            ("steps", steps.to_string()),
            ("version", version.clone()),
            ("command", command.clone()),
            ("created", created.clone()),
            ("parent", parent.map_or(String::new(), fingerprint::text)),
            ("results", joined(results)),
        ]);
        words.extend(Head::ALL.iter().map(|&head| (KNOB_KEYS[head.id()], labels(head))));
        words.values_mut().for_each(|word| *word = word.replace(|c: char| c.is_control(), " "));
        words
    }

    /// A value that is written otherwise than it would be has another hash for the same meaning.
    fn check_spelling(&self, words: &Words) -> Result<(), FrozenError> {
        for (key, expected) in self.metadata() {
            let value = get(words, key)?;
            if *value != expected {
                let (value, expected) = (repeated(value), repeated(&expected));
                return Err(FrozenError::Spelling { key, value, expected });
            }
        }
        Ok(())
    }
}

impl Training {
    fn read(words: &Words) -> Result<Training, FrozenError> {
        let whole = "a whole number";
        let seeds = list(get(words, "seeds")?).map(|seed| parsed("seeds", seed, whole));
        let parent = get(words, "parent")?;
        let parent_hash = || {
            let expected = "the 16 hexadecimal digits of a hash, or nothing";
            let refused = || FrozenError::Number { key: "parent", value: repeated(parent), expected };
            u64::from_str_radix(parent, 16).map_err(|_| refused())
        };
        Ok(Training {
            curriculum: text(words, "curriculum")?,
            seeds: seeds.collect::<Result<_, _>>()?,
            steps: number(words, "steps", whole, |_| true)?,
            version: text(words, "version")?,
            command: text(words, "command")?,
            created: text(words, "created")?,
            parent: if parent.is_empty() { None } else { Some(parent_hash()?) },
        })
    }
}

/// Holds a file to what this build would show a policy and let it choose.
fn check_build(words: &Words) -> Result<(), FrozenError> {
    let features = get(words, "features")?;
    if features != VERSION {
        return Err(FrozenError::Features { found: repeated(features) });
    }
    let encoder = get(words, "encoder")?;
    if *encoder != fingerprint::text(hash()) {
        return Err(FrozenError::Encoder { found: repeated(encoder), expected: hash() });
    }
    for &head in Head::ALL {
        let (found, expected) = (get(words, KNOB_KEYS[head.id()])?, labels(head));
        if *found != expected {
            return Err(FrozenError::Knobs { head, found: repeated(found), expected });
        }
    }
    Ok(())
}

fn labels(head: Head) -> String {
    joined((0..head.size()).filter_map(|index| head.label(index)))
}

fn gates(text: &str) -> Result<GateSet, FrozenError> {
    list(text).try_fold(GateSet::default(), |gates, word| match word.parse::<Gate>() {
        Ok(gate) => Ok(gates.with(gate)),
        Err(_) => Err(FrozenError::Gates { found: repeated(text), known: joined(Gate::ALL.iter()) }),
    })
}

fn results(words: &Words) -> Result<Vec<(String, f64)>, FrozenError> {
    let expected = "words with a number each, such as speedup=1.2";
    let results = list(get(words, "results")?).map(|result| {
        let refused = || FrozenError::Number { key: "results", value: repeated(result), expected };
        let (what, value) = result.split_once('=').ok_or_else(refused)?;
        let value = value.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(refused)?;
        Ok((what.to_owned(), value))
    });
    results.collect()
}

fn get<'a>(words: &'a Words, key: &'static str) -> Result<&'a String, FrozenError> {
    words.get(key).ok_or(FrozenError::MissingKey { key })
}

fn text(words: &Words, key: &'static str) -> Result<String, FrozenError> {
    get(words, key).cloned()
}

fn number<T: FromStr>(
    words: &Words,
    key: &'static str,
    expected: &'static str,
    fits: impl Fn(&T) -> bool,
) -> Result<T, FrozenError> {
    let value = get(words, key)?;
    let refused = || FrozenError::Number { key, value: repeated(value), expected };
    value.parse().ok().filter(fits).ok_or_else(refused)
}

fn parsed<T: FromStr>(key: &'static str, value: &str, expected: &'static str) -> Result<T, FrozenError> {
    value.parse().map_err(|_| FrozenError::Number { key, value: repeated(value), expected })
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|_| !text.is_empty())
}

fn joined<T: ToString>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}
