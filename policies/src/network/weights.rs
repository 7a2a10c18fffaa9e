//! The weights of a network as plain numbers: what training hands over and files hold.

use super::shape::{Shape, TENSORS};

/// The memory that a job begins with.
const MEMORY: [&str; 2] = ["memory.hidden", "memory.cell"];
/// The one that was trained, in files where [`Weights::remember`] has put another into its place.
pub const TRAINED: [&str; 2] = ["trained.hidden", "trained.cell"];

/// Every tensor of a network, in the order of [`Shape::tensors`].
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    shape: Shape,
    tensors: [Vec<f32>; TENSORS],
    /// h and c as they were trained, where jobs begin with others.
    trained: Option<[Vec<f32>; 2]>,
}

impl Weights {
    /// The weights under which a network is NCCL's default: only the anchor speaks.
    pub fn untrained(shape: Shape) -> Self {
        let dims = shape.tensors();
        let tensors = dims.map(|(name, dims)| {
            let start = if name == "pair.anchor" { 1.0 } else { 0.0 };
            vec![start; dims.iter().product()]
        });
        Weights { shape, tensors, trained: None }
    }

    /// These tensors, if they are as many as a network of this shape has and each as long as it must be.
    pub fn from_tensors(shape: Shape, tensors: Vec<Vec<f32>>) -> Option<Self> {
        let tensors: [Vec<f32>; TENSORS] = tensors.try_into().ok()?;
        let lengths = shape.tensors().map(|(_, dims)| dims.iter().product::<usize>());
        let fit = tensors.iter().zip(lengths).all(|(tensor, length)| tensor.len() == length);
        fit.then_some(Weights { shape, tensors, trained: None })
    }

    /// The same with such a memory (h and c) as it was trained, while jobs begin with another; none where the widths differ.
    pub fn with_trained(self, trained: [Vec<f32>; 2]) -> Option<Self> {
        let fit = trained.iter().all(|numbers| numbers.len() == self.shape.memory);
        fit.then_some(Weights { trained: Some(trained), ..self })
    }

    /// Lets jobs begin with this memory (h and c). What was trained stays beside it: calls are taken in by how far they
    /// are from what a network expects that remembers nothing.
    ///
    /// # Panics
    /// Where they are not as wide as the network's memory.
    pub fn remember(&mut self, memory: [&[f32]; 2]) {
        self.trained = Some(self.trained().map(<[f32]>::to_vec));
        for (name, numbers) in MEMORY.into_iter().zip(memory) {
            self.get_mut(name).expect("every network has a memory").copy_from_slice(numbers);
        }
    }

    /// Whether jobs begin with the memory of another one.
    pub fn remembers_a_job(&self) -> bool {
        self.trained.is_some()
    }

    /// The memory as it was trained, h and c.
    pub fn trained(&self) -> [&[f32]; 2] {
        match &self.trained {
            Some(trained) => trained.each_ref().map(Vec::as_slice),
            None => MEMORY.map(|name| self.get(name).expect("every network has a memory")),
        }
    }

    /// Every tensor with its name and dimensions, in the order of the file.
    pub fn tensors(&self) -> impl Iterator<Item = (&'static str, Vec<usize>, &[f32])> {
        let named = self.shape.tensors().into_iter().zip(&self.tensors);
        let trained = TRAINED.into_iter().zip(self.trained.iter().flatten());
        let trained = trained.map(|(name, tensor)| (name, vec![tensor.len()], tensor.as_slice()));
        named.map(|((name, dims), tensor)| (name, dims, tensor.as_slice())).chain(trained)
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

    #[test]
    fn only_tensors_that_fit_make_weights() {
        let weights = Weights::untrained(Shape::default());
        let mut tensors: Vec<Vec<f32>> = weights.tensors().map(|(_, _, tensor)| tensor.to_vec()).collect();
        assert_eq!(Weights::from_tensors(Shape::default(), tensors.clone()).as_ref(), Some(&weights));
        tensors[3].pop();
        assert_eq!(Weights::from_tensors(Shape::default(), tensors.clone()), None);
        tensors.pop();
        assert_eq!(Weights::from_tensors(Shape::default(), tensors), None);
    }
}
