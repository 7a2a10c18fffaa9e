//! What a run makes outside of its processes, and how that is taken away again: by the run, or by its guard.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::links::Links;
use super::mps::Mps;

/// Something that must be gone afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ward {
    /// A folder with all that is in it.
    Folder(PathBuf),
    /// A daemon of MPS.
    Mps(Mps),
    /// Namespaces and links.
    Links(Links),
}

impl Ward {
    /// Takes it away, however much of it there is.
    pub fn clear(&self) {
        match self {
            // One that was never made is gone.
            Ward::Folder(folder) => drop(fs::remove_dir_all(folder)),
            Ward::Mps(mps) => mps.clear(),
            Ward::Links(links) => links.clear(),
        }
    }
}
