//! What a curriculum is about: which environment its jobs are for.
//!
//! A file says it itself, with the key `kind`; one without is about NCCL's knobs.

use std::fmt;

use dynamiccl_spec::words::look_up;
use serde::{Deserialize, Serialize};

use super::{Curriculum, CurriculumError, parse, read};
use crate::rails::RailsStage;
use crate::wan::WanCurriculum;

/// What a curriculum is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// NCCL's knobs.
    Knobs,
    /// Rings across datacentres.
    Wan,
    /// Photonic rails.
    Rails,
}

/// What every file may say.
#[derive(Debug, Deserialize)]
struct Form {
    kind: Option<String>,
}

impl Kind {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Knobs => "knobs",
            Kind::Wan => "wan",
            Kind::Rails => "rails",
        }
    }

    /// The kind of a curriculum, by its name or from a file ending in `.toml`.
    pub fn of(curriculum: &str) -> Result<Kind, CurriculumError> {
        if let Some(text) = read(curriculum)? {
            let Some(word) = parse::<Form>(curriculum, &text)?.kind else { return Ok(Kind::Knobs) };
            let known = [Kind::Knobs, Kind::Wan, Kind::Rails].map(|kind| (kind.name(), kind));
            let wrong = |error| CurriculumError::Kind { file: curriculum.to_owned(), error };
            return look_up("kind of curriculum", &word, &known).map_err(wrong);
        }
        let knobs = Curriculum::names().map(|name| (name, Kind::Knobs));
        let wan = WanCurriculum::names().map(|name| (name, Kind::Wan));
        let known: Vec<_> = knobs.chain(wan).chain([(RailsStage::NAME, Kind::Rails)]).collect();
        look_up("curriculum", curriculum, &known).map_err(CurriculumError::Name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_file_says_what_it_is_about() {
        assert_eq!(Kind::of("smoke").unwrap(), Kind::Knobs);
        assert_eq!((Kind::of("wan").unwrap(), Kind::of("rails").unwrap()), (Kind::Wan, Kind::Rails));
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../curricula");
        for (name, kind) in [("stage1", Kind::Knobs), ("wan", Kind::Wan), ("rails", Kind::Rails)] {
            assert_eq!(Kind::of(&format!("{root}/{name}.toml")).unwrap(), kind);
        }
        let message = Kind::of("rials").unwrap_err().to_string();
        assert!(message.contains("did you mean \"rails\""), "{message}");
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), "kind = \"wam\"").unwrap();
        let message = Kind::of(file.path().to_str().unwrap()).unwrap_err().to_string();
        assert!(message.contains("did you mean \"wan\"") && message.contains(".toml: "), "{message}");
    }
}
