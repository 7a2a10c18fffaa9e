//! What a user has set through the environment.
//!
//! Read once for every communicator, when it begins. Nothing here opens a file or decides.

use std::path::PathBuf;

use dynamiccl_policies::frozen::SHIPPED;
use dynamiccl_spec::Overrides;
use dynamiccl_spec::overrides::number;
use dynamiccl_spec::variables::{CONTEXT, DETERMINISTIC, EXPECT, MODE, POLICY, STRICT};
use dynamiccl_spec::words::{UnknownWord, look_up};

/// NCCL's variables that limit channels.
const LIMITS: [&str; 4] = ["NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS"];

/// The word by which [`POLICY`] asks for the walk over all knobs. For tests only.
pub const WALK: &str = "walk";

/// What is done with decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are handed to NCCL.
    Act,
    /// They are made and logged.
    Observe,
    /// None is made.
    Off,
    /// A program that measures says what is done.
    Driven,
}

impl Mode {
    const WORDS: [(&'static str, Mode); 4] =
        [("act", Mode::Act), ("observe", Mode::Observe), ("off", Mode::Off), ("driven", Mode::Driven)];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Act => "act",
            Mode::Observe => "observe",
            Mode::Off => "off",
            Mode::Driven => "driven",
        }
    }
}

/// Where decisions come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The policy that is built in.
    Shipped,
    /// A policy's file.
    File(PathBuf),
    /// Every legal setting in turn, for tests.
    Walk,
}

/// What a user has set.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where decisions come from.
    pub source: Source,
    /// The deployment file.
    pub context: Option<PathBuf>,
    /// The hashes that the policy, and after it the deployment file, must have.
    pub expect: Vec<u64>,
    /// What is done with decisions.
    pub mode: Mode,
    /// Whether sums must come out the same at every call.
    pub deterministic: bool,
    /// What NCCL's own variables fix.
    pub overrides: Overrides,
    /// NCCL's own variables that are set, as `NAME=value`, and what is wrong with those that we cannot read.
    pub fixed: Vec<String>,
}

/// A file that is not the one that the launcher meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{EXPECT}: the {what} of this rank is {found}, not {wanted:016x}")]
pub struct Unexpected {
    what: &'static str,
    found: String,
    wanted: u64,
}

/// A variable of ours with a value that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A mode that there is not.
    #[error("{MODE}: {0}")]
    Mode(UnknownWord),
    /// No hashes.
    #[error(
        "{EXPECT}=\"{0}\": write the hash of the policy in 16 digits as inspect says it, and after a comma that of the \
         deployment file; unset it where any will do"
    )]
    Expect(String),
    /// Neither yes nor no.
    #[error("{variable}=\"{value}\": write 1 or 0")]
    Flag {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
}

impl Settings {
    /// Reads the variables through `get`, which answers as the environment would.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        // Empty, it is what a launcher exports whose command for the hash has failed: nobody means any policy by it.
        let expect = get(EXPECT);
        let get = |variable: &str| get(variable).filter(|value| !value.is_empty());
        let mode = get(MODE).map_or(Ok(Mode::Act), |word| look_up("mode", word.trim(), &Mode::WORDS));
        let mode = mode.map_err(SettingsError::Mode)?;
        // Where nothing is decided, nothing else matters.
        let flag = |variable| if mode == Mode::Off { Ok(None) } else { flag(&get, variable) };
        let source = match get(POLICY) {
            None => Source::Shipped,
            Some(word) if word == SHIPPED => Source::Shipped,
            Some(word) if word == WALK => Source::Walk,
            Some(path) => Source::File(path.into()),
        };
        flag(STRICT)?;
        let (overrides, fixed) = fixed(&get);
        Ok(Settings {
            source,
            context: get(CONTEXT).map(PathBuf::from),
            expect: if mode == Mode::Off { Vec::new() } else { expected(expect)? },
            mode,
            deterministic: flag(DETERMINISTIC)?.unwrap_or(false),
            overrides,
            fixed,
        })
    }

    /// Whether the policy is the one that the launcher meant, as far as it said.
    pub fn expects_policy(&self, found: Option<u64>) -> Result<(), Unexpected> {
        self.expects(0, "policy", found)
    }

    /// The same of the deployment file.
    pub fn expects_context(&self, found: Option<u64>) -> Result<(), Unexpected> {
        self.expects(1, "context", found)
    }

    fn expects(&self, at: usize, what: &'static str, found: Option<u64>) -> Result<(), Unexpected> {
        match self.expect.get(at) {
            Some(&wanted) if found != Some(wanted) => {
                let found = found.map_or("none".to_owned(), |hash| format!("{hash:016x}"));
                Err(Unexpected { what, found, wanted })
            }
            _ => Ok(()),
        }
    }
}

/// A variable. One that is no text means nothing, and that is said where it is used.
pub fn environment(variable: &str) -> Option<String> {
    std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
}

/// Whether what cannot be loaded fails the communicator. Whatever else the variable says, it does.
pub fn strict(get: impl Fn(&str) -> Option<String>) -> bool {
    get(STRICT).is_none_or(|value| value.trim() != "0")
}

fn expected(said: Option<String>) -> Result<Vec<u64>, SettingsError> {
    let Some(said) = said else { return Ok(Vec::new()) };
    let hash = |word: &str| u64::from_str_radix(word.trim(), 16).ok().filter(|_| word.trim().len() == 16);
    let hashes: Option<Vec<u64>> = said.split(',').map(hash).collect();
    hashes.filter(|hashes| hashes.len() <= 2).ok_or(SettingsError::Expect(said))
}

fn flag(
    get: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
) -> Result<Option<bool>, SettingsError> {
    match get(variable) {
        None => Ok(None),
        Some(value) if value.trim() == "1" => Ok(Some(true)),
        Some(value) if value.trim() == "0" => Ok(Some(false)),
        Some(value) => Err(SettingsError::Flag { variable, value }),
    }
}

/// What NCCL's own variables fix. One that we cannot read is left out, for NCCL's table shows what came of it; but of
/// channels it says nothing, so that a limit that we cannot read is a limit still.
fn fixed(get: &impl Fn(&str) -> Option<String>) -> (Overrides, Vec<String>) {
    let gathers_broadcasts = get(Overrides::GATHERING).is_none_or(|value| number(&value) != Some(0));
    let (mut overrides, mut fixed) = (Overrides { gathers_broadcasts, ..Overrides::default() }, Vec::new());
    for variable in Overrides::VARIABLES {
        let Some(value) = get(variable) else { continue };
        fixed.push(match overrides.set(variable, &value) {
            Ok(()) => format!("{variable}={value}"),
            Err(bad) if LIMITS.contains(&variable) => {
                overrides.min_channels = overrides.min_channels.or(Some(1));
                format!("{bad} (channels stay NCCL's)")
            }
            Err(bad) => format!("{bad} (left out)"),
        });
    }
    (overrides, fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::read(|name| set.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn nothing_set_acts_by_the_shipped_policy() {
        let settings = read(&[(POLICY, "")]).unwrap();
        assert_eq!((settings.source, settings.mode), (Source::Shipped, Mode::Act));
        assert_eq!((settings.context, settings.deterministic, settings.expect), (None, false, vec![]));
        let gathering = Overrides { gathers_broadcasts: true, ..Overrides::default() };
        assert_eq!((settings.overrides, settings.fixed), (gathering, vec![]));
    }

    #[test]
    fn broadcasts_may_be_gathered_unless_nccl_is_told_not_to() {
        let gathers = |value| read(&[(Overrides::GATHERING, value)]).unwrap().overrides.gathers_broadcasts;
        assert_eq!(["", "1", "no", "0x0", " 0"].map(gathers), [true, true, true, false, false]);
    }

    #[test]
    fn a_limit_of_channels_that_cannot_be_read_is_a_limit_still() {
        let limited = |value| read(&[("NCCL_MAX_NCHANNELS", value)]).unwrap();
        assert_eq!(limited("0x10").overrides.max_channels, Some(16));
        let unread = limited("few");
        assert_eq!(unread.overrides.min_channels, Some(1));
        assert!(unread.fixed[0].ends_with("(channels stay NCCL's)"), "{:?}", unread.fixed);
    }

    #[test]
    fn every_variable_is_read() {
        let settings = read(&[
            (POLICY, "/p.safetensors"),
            (CONTEXT, "/c.toml"),
            (EXPECT, "00000000000000ff, 0123456789abcdef"),
            (MODE, "Observe"),
            (DETERMINISTIC, "1"),
            ("NCCL_ALGO", "Ring"),
            ("NCCL_NTHREADS", "many"),
        ])
        .unwrap();
        assert_eq!(settings.source, Source::File("/p.safetensors".into()));
        assert_eq!((settings.context, settings.mode), (Some("/c.toml".into()), Mode::Observe));
        assert_eq!(settings.expect, [0xff, 0x0123_4567_89ab_cdef]);
        assert!(settings.deterministic && settings.overrides.algorithms.is_some());
        assert_eq!(settings.fixed[0], "NCCL_ALGO=Ring");
        assert!(settings.fixed[1].starts_with("NCCL_NTHREADS=many: not a whole number"));
        assert_eq!(read(&[(POLICY, "walk")]).unwrap().source, Source::Walk);
        assert_eq!(read(&[(POLICY, "shipped")]).unwrap().source, Source::Shipped);
    }

    #[test]
    fn what_means_nothing_is_refused_with_the_remedy() {
        fn message(set: &[(&str, &str)]) -> String {
            read(set).unwrap_err().to_string()
        }
        assert!(message(&[(MODE, "obsrve")]).contains("did you mean \"observe\""));
        assert_eq!(message(&[(DETERMINISTIC, "yes")]), "DYNAMICCL_DETERMINISTIC=\"yes\": write 1 or 0");
        let hash = "00000000000000ff";
        let many = [hash, hash, hash].join(",");
        for hashes in ["", " ", "ff", "00000000000000fg", "00000000000000ff,", &many] {
            assert!(
                message(&[(EXPECT, hashes)]).starts_with(&format!("DYNAMICCL_EXPECT=\"{hashes}\": write"))
            );
        }
        for hashes in ["no", ""] {
            let set = [(MODE, "off\r"), (DETERMINISTIC, "yes"), (EXPECT, hashes)];
            assert_eq!(read(&set).unwrap().mode, Mode::Off);
        }
    }

    #[test]
    fn only_a_0_is_lenient() {
        let strict = |value: Option<&str>| strict(|_| value.map(str::to_owned));
        assert_eq!([None, Some("1"), Some("no"), Some("0")].map(strict), [true, true, true, false]);
    }
}
