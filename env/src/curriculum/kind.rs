//! What a curriculum is about: which environment its jobs are for.
//!
//! A file says it itself, with the key `kind`; one without is about NCCL's knobs.

use std::fmt;

use dynamiccl_spec::words::look_up;
use serde::{Deserialize, Serialize};

use super::{CurriculumError, parse, read};

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

    /// What a file ending in `.toml` says that it is about; none of any other name.
    pub fn stated(curriculum: &str) -> Result<Option<Kind>, CurriculumError> {
        let Some(text) = read(curriculum)? else { return Ok(None) };
        let Some(word) = parse::<Form>(curriculum, &text)?.kind else { return Ok(Some(Kind::Knobs)) };
        let known = [Kind::Knobs, Kind::Wan, Kind::Rails].map(|kind| (kind.name(), kind));
        let wrong = |error| CurriculumError::Kind { file: curriculum.to_owned(), error };
        look_up("kind of curriculum", &word, &known).map(Some).map_err(wrong)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
