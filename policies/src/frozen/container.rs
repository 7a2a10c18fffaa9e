//! The outside of a file: its header and where its tensors lie. It knows no policy.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{SafeTensorError, SafeTensors};

use super::budget::{self, Parts};
use super::error::FrozenError;

/// Entries that the header has for a tensor: its name, and what is said of it.
pub const ENTRIES_OF_TENSOR: usize = 4;

/// Objects of a header that are no tensor's: itself, and what the file says about itself.
pub const OTHER_OBJECTS: usize = 2;

/// Bytes that state the length of the header.
pub const LENGTH: usize = 8;

/// Fewer bytes than any policy has. A shorter file is refused before anything is allocated for it.
pub const LEAST: usize = 20 << 10;

/// More bytes than any policy has. A longer file is refused before it is read.
pub const MOST: u64 = 128 << 20;

/// Characters of a foreign text that an error repeats.
const REPEATED: usize = 80;

/// What a file holds.
#[derive(Debug)]
pub struct Container<'a> {
    /// What it says about itself.
    pub metadata: BTreeMap<String, String>,
    /// Its tensors, by name.
    pub tensors: Vec<Tensor<'a>>,
    /// What its header is made of, however often something is there.
    pub parts: Parts,
}

/// A tensor as it lies in a file.
#[derive(Debug, Clone)]
pub struct Tensor<'a> {
    /// Its name.
    pub name: String,
    /// What its numbers are, as safetensors calls it.
    pub dtype: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its numbers.
    pub data: &'a [u8],
}

/// Reads what is around the weights.
pub fn read(bytes: &[u8]) -> Result<Container<'_>, FrozenError> {
    if bytes.len() < LEAST {
        return Err(FrozenError::TooShort { found: bytes.len(), least: LEAST });
    }
    check_most(bytes.len() as u64)?;
    let (length, rest) = bytes.split_at(LENGTH);
    let header = length.iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
    let beyond = FrozenError::HeaderLength { header, file: bytes.len() };
    let length = usize::try_from(header).ok().filter(|&length| length <= rest.len()).ok_or(beyond)?;
    let (header, data) = rest.split_at(length);
    let header =
        str::from_utf8(header).map_err(|error| FrozenError::HeaderText { at: error.valid_up_to() })?;
    let parts = budget::within(header, bytes.len())?;
    let (_, found) =
        SafeTensors::read_metadata(bytes).map_err(|error| refused(&error, header, bytes.len()))?;
    Ok(Container { metadata: words(&found), tensors: tensors(&found, data), parts })
}

/// Refuses a file for its length alone.
pub fn check_most(found: u64) -> Result<(), FrozenError> {
    if found > MOST { Err(FrozenError::TooLong { found, most: MOST }) } else { Ok(()) }
}

fn words(found: &Metadata) -> BTreeMap<String, String> {
    found.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn tensors<'a>(found: &Metadata, data: &'a [u8]) -> Vec<Tensor<'a>> {
    let mut tensors: Vec<_> =
        found.tensors().into_iter().map(|(name, info)| tensor(name, info, data)).collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    tensors
}

fn tensor<'a>(name: String, info: &TensorInfo, data: &'a [u8]) -> Tensor<'a> {
    let (from, to) = info.data_offsets;
    // The library has checked that every tensor lies within the data.
    let data = data.get(from..to).unwrap_or_default();
    Tensor { name, dtype: info.dtype.to_string(), shape: info.shape.clone(), data }
}

/// What the library has to say, as one of our errors.
fn refused(error: &SafeTensorError, header: &str, file: usize) -> FrozenError {
    let why = || repeated(error);
    match error {
        SafeTensorError::MetadataIncompleteBuffer => {
            let expected = data_end(header).saturating_add(LENGTH).saturating_add(header.len());
            match expected > file {
                true => FrozenError::Truncated { found: file, expected },
                false => FrozenError::Trailing { found: file, expected },
            }
        }
        SafeTensorError::InvalidOffset(_)
        | SafeTensorError::TensorInvalidInfo
        | SafeTensorError::ValidationOverflow
        | SafeTensorError::MisalignedSlice => FrozenError::Layout { why: why() },
        _ => FrozenError::Header { why: why() },
    }
}

/// Where the last tensor ends, in a header that the library could read.
fn data_end(header: &str) -> usize {
    let ends = header.split("\"data_offsets\"").skip(1).filter_map(|after| {
        let (_, second) = after.split_once(']')?.0.split_once(',')?;
        second.trim().parse::<usize>().ok()
    });
    ends.max().unwrap_or(0)
}

/// The beginning of a text that came with the file: it may be as long as the file.
pub fn repeated(text: &(impl fmt::Display + ?Sized)) -> String {
    let mut clipped = Clipped { text: String::new(), left: REPEATED };
    // An error means that there is enough.
    let _ = write!(clipped, "{text}");
    clipped.text
}

/// A text that takes no more than so many characters.
struct Clipped {
    text: String,
    left: usize,
}

impl Write for Clipped {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for c in more.chars() {
            if self.left == 0 {
                self.text.push('…');
                return Err(fmt::Error);
            }
            self.left -= 1;
            self.text.extend(
                c.escape_debug().filter(|_| c.is_control()).chain(Some(c).filter(|c| !c.is_control())),
            );
        }
        Ok(())
    }
}
