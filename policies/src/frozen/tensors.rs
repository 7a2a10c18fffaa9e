//! From the tensors of a file to the weights of a network.

use super::container::{Container, Tensor, repeated};
use super::earlier;
use super::error::FrozenError;
use super::write::DTYPE;
use crate::network::{Shape, TRAINED, Weights};

/// The weights of a network whose widths its own tensors state, from a file that knows so many numbers of a context.
pub fn read(container: &Container<'_>, known: usize) -> Result<Weights, FrozenError> {
    let tensors = &container.tensors;
    let named = Shape::default().tensors();
    let names: Vec<_> = named.iter().map(|(name, _)| *name).chain(TRAINED).collect();
    if let Some(tensor) = tensors.iter().find(|tensor| !names.contains(&tensor.name.as_str())) {
        return Err(FrozenError::UnexpectedTensor { name: repeated(&tensor.name) });
    }
    if let Some(tensor) = tensors.iter().find(|tensor| tensor.dtype != DTYPE) {
        let found = tensor.dtype.clone();
        return Err(FrozenError::Type { name: repeated(&tensor.name), found });
    }
    let shape = shape(tensors)?;
    let mut weights = Vec::with_capacity(named.len());
    for (name, expected) in shape.tensors() {
        let mut numbers = numbers(tensors, name, earlier::dims(name, known, expected))?;
        earlier::pad(name, known, &mut numbers);
        weights.push(numbers);
    }
    // Every tensor was found, and is as long as its shape says.
    let weights =
        Weights::from_tensors(shape, weights).expect("as many tensors as a network has, each of its length");
    if tensors.iter().all(|tensor| !TRAINED.contains(&tensor.name.as_str())) {
        return Ok(weights);
    }
    let [hidden, cell] = TRAINED.map(|name| numbers(tensors, name, vec![shape.memory]));
    Ok(weights.with_trained([hidden?, cell?]).expect("each as wide as the memory"))
}

fn find<'a, 'b>(tensors: &'a [Tensor<'b>], name: &'static str) -> Result<&'a Tensor<'b>, FrozenError> {
    let found = tensors.iter().find(|tensor| tensor.name == name);
    found.ok_or(FrozenError::MissingTensor { name })
}

/// The widths, each from the last dimension of a tensor that has no other free one.
fn shape(tensors: &[Tensor<'_>]) -> Result<Shape, FrozenError> {
    let width = |width, name| {
        let found = find(tensors, name)?.shape.last().copied().unwrap_or(0);
        match found {
            1..=Shape::WIDEST if found % Shape::GRAIN == 0 => Ok(found),
            _ => Err(FrozenError::Width { width, name, found }),
        }
    };
    Ok(Shape {
        embedding: width("embedding", "embed.bias")?,
        memory: width("memory", "memory.hidden")?,
        expert: width("expert", "expert.bias")?,
        resource: width("resource", "resource.bias")?,
    })
}

/// The numbers of a tensor, which must have this shape.
fn numbers(
    tensors: &[Tensor<'_>],
    name: &'static str,
    expected: Vec<usize>,
) -> Result<Vec<f32>, FrozenError> {
    let tensor = find(tensors, name)?;
    if tensor.shape != expected {
        let found = tensor.shape.iter().take(8).copied().collect();
        return Err(FrozenError::Shape { name, found, expected });
    }
    let (chunks, _) = tensor.data.as_chunks::<4>();
    let numbers: Vec<f32> = chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    match numbers.iter().position(|x| !x.is_finite()) {
        Some(at) => Err(FrozenError::NotFinite { name, at, value: numbers[at].to_string() }),
        None => Ok(numbers),
    }
}
