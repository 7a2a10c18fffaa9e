//! The fingerprint of all that a file holds: a changed bit anywhere changes it.

use std::collections::BTreeMap;

use dynamiccl_spec::fnv::Fnv;

use super::container::{Container, Tensor, repeated};
use super::error::FrozenError;

/// The key under which a file states its own fingerprint.
pub const KEY: &str = "content";

/// The fingerprint of metadata, without the one that they state, and of tensors sorted by name.
pub fn of<K: AsRef<str>>(metadata: &BTreeMap<K, String>, tensors: &[Tensor<'_>]) -> u64 {
    let mut hash = Fnv::new();
    for (key, value) in metadata.iter().filter(|(key, _)| key.as_ref() != KEY) {
        hash.text(key.as_ref());
        hash.text(value);
    }
    for tensor in tensors {
        hash.text(&tensor.name);
        hash.text(&tensor.dtype);
        tensor.shape.iter().for_each(|&width| hash.number(width as u64));
        hash.bytes(tensor.data);
    }
    hash.value()
}

/// A fingerprint as text.
pub fn text(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Holds a file to the fingerprint that it states.
pub fn check(container: &Container<'_>) -> Result<(), FrozenError> {
    let stated = container.metadata.get(KEY).ok_or(FrozenError::MissingKey { key: KEY })?;
    let found = of(&container.metadata, &container.tensors);
    if *stated != text(found) {
        return Err(FrozenError::Altered { stated: repeated(stated), found });
    }
    Ok(())
}
