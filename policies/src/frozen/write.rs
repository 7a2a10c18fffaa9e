//! Writing a file: the header in a fixed order, so that the same policy is the same bytes.
//!
//! The library would write metadata in the order of a hash map, which is another one each time.

use std::ops::Range;

use super::container::Tensor;
use super::{Frozen, fingerprint};
use crate::network::Weights;

/// What a tensor's numbers are.
pub const DTYPE: &str = "F32";

/// The numbers of a network one after the other, and where each tensor lies among them.
pub struct Data {
    bytes: Vec<u8>,
    places: Vec<(&'static str, Vec<usize>, Range<usize>)>,
}

impl Data {
    /// The numbers of these weights.
    pub fn new(weights: &Weights) -> Self {
        let mut data = Data { bytes: Vec::new(), places: Vec::new() };
        for (name, shape, numbers) in weights.tensors() {
            let from = data.bytes.len();
            data.bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
            data.places.push((name, shape, from..data.bytes.len()));
        }
        data
    }

    /// The tensors, sorted by name.
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let tensor = |(name, shape, range): &(&str, Vec<usize>, Range<usize>)| Tensor {
            name: (*name).to_owned(),
            dtype: DTYPE.to_owned(),
            shape: shape.clone(),
            data: &self.bytes[range.clone()],
        };
        let mut tensors: Vec<_> = self.places.iter().map(tensor).collect();
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        tensors
    }
}

/// The bytes of a policy.
pub fn file(frozen: &Frozen) -> Vec<u8> {
    let data = Data::new(&frozen.weights);
    let mut metadata = frozen.about.metadata();
    let hash = fingerprint::of(&metadata, &data.tensors());
    metadata.insert(fingerprint::KEY, fingerprint::text(hash));
    let words = metadata.iter().map(|(key, value)| format!("{}:{}", quoted(key), quoted(value)));
    let mut entries = vec![format!("\"__metadata__\":{{{}}}", words.collect::<Vec<_>>().join(","))];
    entries.extend(data.places.iter().map(|(name, shape, Range { start, end })| {
        let shape = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        format!(
            "{}:{{\"dtype\":\"{DTYPE}\",\"shape\":[{shape}],\"data_offsets\":[{start},{end}]}}",
            quoted(name)
        )
    }));
    let mut header = format!("{{{}}}", entries.join(","));
    // Numbers begin at a multiple of 8, as other readers want it.
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let length = header.len() as u64;
    [&length.to_le_bytes(), header.as_bytes(), &data.bytes].concat()
}

/// A JSON string. Metadata hold no control characters: those could be escaped in several ways.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
