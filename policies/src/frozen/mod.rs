//! A policy as a file: one safetensors file that says what it holds and whether it is whole.
//!
//! Whoever loads a policy into a job must be able to trust it: reading is total, every way in which a
//! file can be wrong has its own error, and no file makes the reader hold more than four times its own
//! size. This knows nothing of how a policy decides. `docs/frozen-format.md` says the same for people.

mod about;
mod budget;
mod container;
mod earlier;
mod error;
mod fingerprint;
mod shipped;
mod tensors;
mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use about::{About, Training};
pub use error::{FrozenError, OpenError};
pub use shipped::SHIPPED;

use budget::Parts;
use container::Container;

use crate::guard::Guard;
use crate::network::Weights;
use crate::policy::Policy;

/// The word by which a file says that it is a policy, and of which form.
pub const FORMAT: &str = "dynamiccl-policy-1";

/// A policy as a file holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Frozen {
    /// The network's weights.
    pub weights: Weights,
    /// What the file says about itself.
    pub about: About,
}

/// The bytes of a file that may be a policy, or a table beside one. Whatever it claims to be, no more is
/// read than the longest policy has.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(container::MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > container::MOST {
        let most = container::MOST >> 20;
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("longer than {most} MiB, which no policy is"),
        ));
    }
    Ok(bytes)
}

impl Frozen {
    /// Reads a file that is in memory.
    pub fn read(bytes: &[u8]) -> Result<Frozen, FrozenError> {
        let mut container = container::read(bytes)?;
        about::check_format(&container.metadata)?;
        fingerprint::check(&container)?;
        let known = earlier::adopt(&mut container);
        let about = About::read(&container.metadata)?;
        let weights = tensors::read(&container, known)?;
        check_once(&container)?;
        Ok(Frozen { weights, about })
    }

    /// Reads a file.
    pub fn open(path: &Path) -> Result<Frozen, OpenError> {
        let name = || path.display().to_string();
        let unreadable = |why| OpenError::Unreadable { path: name(), why };
        let wrong = |why| OpenError::Wrong { path: name(), why };
        Frozen::read(&read_bytes(path).map_err(unreadable)?).map_err(wrong)
    }

    /// Reads a file whose policy is to decide NCCL's knobs.
    pub fn open_tuner(path: &Path) -> Result<Frozen, OpenError> {
        let wrong = |why| OpenError::Wrong { path: path.display().to_string(), why };
        Frozen::open(path)?.tuner().map_err(wrong)
    }

    /// The same, unless it was trained for something else than NCCL's knobs: its heads then mean something else.
    pub fn tuner(self) -> Result<Frozen, FrozenError> {
        let trained = &self.about.training.curriculum;
        match trained.split_whitespace().next() {
            Some("wan" | "rails") => Err(FrozenError::Foreign { trained: trained.clone() }),
            _ => Ok(self),
        }
    }

    /// The file; the same policy gives the same bytes. What no file may hold (a weight that is no number, a
    /// comma within a word of a list) is found by reading it back.
    pub fn to_bytes(&self) -> Vec<u8> {
        write::file(self)
    }

    /// The policy, ready to decide.
    pub fn policy(&self) -> Policy {
        Policy::new(self.about.name.clone(), &self.weights, Guard::Spreads(self.about.margin), self.hash())
    }

    /// What tells this policy from every other: the fingerprint of all that its file holds.
    pub fn hash(&self) -> u64 {
        let data = write::Data::new(&self.weights);
        fingerprint::of(&self.about.metadata(), &data.tensors())
    }
}

/// Refuses a header that holds something twice: readers differ in which of the two they take. Tensors that are described
/// without names, as safetensors' reader lets them be, would leave room for that in the count of names.
fn check_once(container: &Container<'_>) -> Result<(), FrozenError> {
    let (tensors, Parts { entries, objects, .. }) = (container.tensors.len(), container.parts);
    let expected = tensors + container::OTHER_OBJECTS;
    if objects != expected {
        return Err(FrozenError::Objects { found: objects, expected });
    }
    let expected = about::KEYS + 1 + tensors * container::ENTRIES_OF_TENSOR;
    if entries != expected {
        return Err(FrozenError::Repeated { found: entries, expected });
    }
    Ok(())
}

/// What any safetensors file says about itself, even one that this build cannot run.
pub fn metadata(bytes: &[u8]) -> Result<BTreeMap<String, String>, FrozenError> {
    container::read(bytes).map(|container| container.metadata)
}
