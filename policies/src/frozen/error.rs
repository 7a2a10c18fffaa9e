//! Every way in which a file can be wrong: what was found, what was expected, what to do.

use std::io;

use dynamiccl_spec::Head;
use dynamiccl_spec::features::VERSION;

use super::FORMAT;
use crate::network::Shape;

/// What to do about a file that was damaged on its way.
const DAMAGED: &str = "it was damaged or is incomplete: copy or export it again";

/// Why a file is no policy that this build can run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrozenError {
    /// Shorter than the smallest policy.
    #[error("{found} bytes are too few: every policy has more than {least}; is it one, and complete?")]
    TooShort {
        /// Its bytes.
        found: usize,
        /// Fewer than any policy has.
        least: usize,
    },
    /// Longer than the largest policy.
    #[error("{found} bytes are too many: no policy has more than {most}; give a policy.safetensors")]
    TooLong {
        /// Its bytes.
        found: u64,
        /// More than any policy has.
        most: u64,
    },
    /// The length that it states for its header is not in the file.
    #[error(
        "it states a header of {header} bytes and has {file} in all: it is no safetensors file, or \
         incomplete; give a policy.safetensors"
    )]
    HeaderLength {
        /// Bytes of the header.
        header: u64,
        /// Bytes of the file.
        file: usize,
    },
    /// Reading the header would take far more memory than the file.
    #[error("its header has {entries} entries in {file} bytes: no policy looks like that; export it again")]
    Crowded {
        /// Entries of the header.
        entries: usize,
        /// Bytes of the file.
        file: usize,
    },
    /// The header is no text.
    #[error("its header is no UTF-8 text from byte {at} on: it is no safetensors file, or damaged")]
    HeaderText {
        /// Where in the header.
        at: usize,
    },
    /// The header is not what safetensors writes.
    #[error("its header is not that of a safetensors file: {why}; give a policy.safetensors")]
    Header {
        /// What the reader says.
        why: String,
    },
    /// Tensors overlap, leave gaps, or are not as long as their shape says.
    #[error("its tensors do not lie one after the other: {why}; {DAMAGED}")]
    Layout {
        /// What the reader says.
        why: String,
    },
    /// It ends before its last tensor does.
    #[error("it has {found} bytes and its tensors end at {expected}; {DAMAGED}")]
    Truncated {
        /// Bytes that it has.
        found: usize,
        /// Bytes that it should have.
        expected: usize,
    },
    /// It goes on after its last tensor.
    #[error("its tensors end at byte {expected} and it has {found}: something was appended; export it again")]
    Trailing {
        /// Bytes that it has.
        found: usize,
        /// Bytes that it should have.
        expected: usize,
    },
    /// A safetensors file that says nothing about itself.
    #[error("it is a safetensors file and no DynamICCL policy: its header has no \"format\"")]
    NoFormat,
    /// A safetensors file of something else.
    #[error(
        "it is no DynamICCL policy that this build knows: its format is \"{found}\", expected \"{FORMAT}\"; \
         a newer dynamiccl may read it"
    )]
    Format {
        /// The word that it has.
        found: String,
    },
    /// Something that the file must say is missing.
    #[error("its metadata have no \"{key}\"; export it again")]
    MissingKey {
        /// Its name.
        key: &'static str,
    },
    /// It says something that no policy of this format says.
    #[error("its metadata have \"{key}\", which {FORMAT} does not know; export it again")]
    UnexpectedKey {
        /// Its name.
        key: String,
    },
    /// Something was changed since it was written.
    #[error("its content has the fingerprint {found:016x}, and says {stated}; {DAMAGED}")]
    Altered {
        /// What it says.
        stated: String,
        /// What its content has.
        found: u64,
    },
    /// Trained on another encoding.
    #[error(
        "it was trained on features \"{found}\", this build has \"{VERSION}\"; use the dynamiccl that made \
         it, or train again"
    )]
    Features {
        /// The encoding that it was trained on.
        found: String,
    },
    /// Trained on features that have the same name and are others.
    #[error(
        "it was trained on a {VERSION} whose hash is {found}, this build's is {expected:016x}; use the \
         dynamiccl that made it, or train again"
    )]
    Encoder {
        /// The hash that it was trained on.
        found: String,
        /// The hash of this build.
        expected: u64,
    },
    /// Trained to choose among other values.
    #[error(
        "its head \"{head}\" chooses among \"{found}\", this build's among \"{expected}\"; use the \
         dynamiccl that made it, or train again"
    )]
    Knobs {
        /// The head.
        head: Head,
        /// Its values.
        found: String,
        /// This build's.
        expected: String,
    },
    /// Trained behind a gate that this build has not.
    #[error("it counts on the gates \"{found}\", this build has \"{known}\"; use the dynamiccl that made it")]
    Gates {
        /// What it counts on.
        found: String,
        /// What there is.
        known: String,
    },
    /// A number that is none, or out of its range.
    #[error("its \"{key}\" is \"{value}\", expected {expected}; export it again")]
    Number {
        /// What it is.
        key: &'static str,
        /// What stands there.
        value: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// A value that means the same as the one that would be written, and is written otherwise.
    #[error("its \"{key}\" is written \"{value}\" and would be \"{expected}\"; export it again")]
    Spelling {
        /// What it is.
        key: &'static str,
        /// What stands there.
        value: String,
        /// What would stand there.
        expected: String,
    },
    /// It decides something else than NCCL's knobs.
    #[error(
        "it was trained on \"{trained}\" and decides no knobs of NCCL; `dynamiccl wan` and `dynamiccl rails` take it with --policy"
    )]
    Foreign {
        /// What it was trained on.
        trained: String,
    },
    /// The header holds something twice, or something that a tensor does not have.
    #[error("its header has {found} entries, a policy has {expected}: some are there twice; export it again")]
    Repeated {
        /// Entries that it has.
        found: usize,
        /// Entries of a policy.
        expected: usize,
    },
    /// A tensor is described without the names of what is said of it, or the header has objects that no policy's has.
    #[error("its header has {found} objects, a policy has {expected}; export it again")]
    Objects {
        /// Objects that it has.
        found: usize,
        /// Objects of a policy.
        expected: usize,
    },
    /// A tensor is missing.
    #[error("it has no tensor \"{name}\"; export it again")]
    MissingTensor {
        /// Its name.
        name: &'static str,
    },
    /// A tensor that no network has.
    #[error("it has a tensor \"{name}\", which the network does not know; export it again")]
    UnexpectedTensor {
        /// Its name.
        name: String,
    },
    /// Numbers of another kind.
    #[error("its tensor \"{name}\" holds {found}, expected F32; convert and export it again")]
    Type {
        /// The tensor.
        name: String,
        /// What it holds.
        found: String,
    },
    /// A width that no network has.
    #[error(
        "its {width} is {found} wide (tensor \"{name}\"), expected a multiple of {grain} up to {widest}; \
         train one of that size",
        grain = Shape::GRAIN, widest = Shape::WIDEST
    )]
    Width {
        /// What is that wide.
        width: &'static str,
        /// The tensor that says so.
        name: &'static str,
        /// How wide.
        found: usize,
    },
    /// A tensor that does not fit the others.
    #[error("its tensor \"{name}\" has the shape {found:?}, expected {expected:?}; export it again")]
    Shape {
        /// The tensor.
        name: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that fits.
        expected: Vec<usize>,
    },
    /// A weight that is no number.
    #[error("its tensor \"{name}\" holds {value} at {at}: training has diverged; export an earlier state")]
    NotFinite {
        /// The tensor.
        name: &'static str,
        /// Which of its numbers.
        at: usize,
        /// What stands there, in words.
        value: String,
    },
}

/// Why a file could not be opened as a policy.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It could not be read at all.
    #[error("{path}: cannot be read: {why}; check the path")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        why: io::Error,
    },
    /// It is no policy that this build can run.
    #[error("{path}: {why}")]
    Wrong {
        /// The file.
        path: String,
        /// Why not.
        why: FrozenError,
    },
}

impl FrozenError {
    /// Whether the file may well be whole, and this build is the wrong one for it.
    pub fn is_foreign(&self) -> bool {
        matches!(
            self,
            FrozenError::Format { .. }
                | FrozenError::Features { .. }
                | FrozenError::Encoder { .. }
                | FrozenError::Knobs { .. }
                | FrozenError::Gates { .. }
        )
    }
}
