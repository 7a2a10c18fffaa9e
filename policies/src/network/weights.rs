//! The weights of a network as plain numbers: what training hands over and files hold.

use super::shape::{Shape, TENSORS};

/// Every tensor of a network, in the order of [`Shape::tensors`].
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    shape: Shape,
    tensors: [Vec<f32>; TENSORS],
}

impl Weights {
    /// The weights under which a network is NCCL's default: only the anchor speaks.
    pub fn untrained(shape: Shape) -> Self {
        let dims = shape.tensors();
        let tensors = dims.map(|(name, dims)| {
            let start = if name == "pair.anchor" { 1.0 } else { 0.0 };
            vec![start; dims.iter().product()]
        });
        Weights { shape, tensors }
    }

    /// The widths.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// A tensor by its name.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.position(name).map(|at| self.tensors[at].as_slice())
    }

    /// A tensor by its name, to be filled.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut [f32]> {
        self.position(name).map(|at| self.tensors[at].as_mut_slice())
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.shape.tensors().iter().position(|(known, _)| *known == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrained_weights_have_their_shape_and_only_an_anchor() {
        let weights = Weights::untrained(Shape::default());
        for (name, dims) in Shape::default().tensors() {
            let tensor = weights.get(name).unwrap();
            assert_eq!(tensor.len(), dims.iter().product::<usize>(), "{name}");
            let anchor = name == "pair.anchor";
            assert!(tensor.iter().all(|x| (*x == 1.0) == anchor && (*x == 0.0) != anchor), "{name}");
        }
        assert_eq!(weights.get("nonsense"), None);
    }
}
