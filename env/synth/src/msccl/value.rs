//! What is in a place of a buffer: which chunk, with whose contributions.

use super::{Algorithm, Buffer, Coll, Placement};

/// A chunk with its contributors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    chunk: u32,
    from: Vec<u64>,
}

impl Value {
    /// A rank's own contribution to a chunk, among so many ranks.
    fn own(chunk: u32, rank: u32, ranks: usize) -> Self {
        let mut from = vec![0; ranks.div_ceil(64)];
        from[rank as usize / 64] |= 1 << (rank % 64);
        Value { chunk, from }
    }

    /// Whether two are contributions to the same chunk.
    pub fn alike(&self, other: &Value) -> bool {
        self.chunk == other.chunk
    }

    /// Whether two share a contributor.
    pub fn meets(&self, other: &Value) -> bool {
        self.from.iter().zip(&other.from).any(|(a, b)| a & b != 0)
    }

    /// Both together.
    pub fn joined(&self, other: &Value) -> Value {
        let from = self.from.iter().zip(&other.from).map(|(a, b)| a | b).collect();
        Value { chunk: self.chunk, from }
    }
}

/// The layout of the buffers of a collective.
pub struct Layout<'a> {
    algorithm: &'a Algorithm,
    placement: Placement,
    ranks: u32,
    /// Chunks of one rank.
    part: u32,
}

impl<'a> Layout<'a> {
    /// The layout of an algorithm that runs so.
    pub fn new(algorithm: &'a Algorithm, placement: Placement) -> Self {
        let ranks = algorithm.programs.len() as u32;
        Layout { algorithm, placement, ranks, part: algorithm.chunks / ranks }
    }

    /// How it runs.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Chunks of the input: a part for AllGather, else all.
    fn inputs(&self) -> u32 {
        if self.algorithm.coll == Coll::AllGather { self.part } else { self.algorithm.chunks }
    }

    /// Chunks of the output: a part for ReduceScatter, else all.
    fn outputs(&self) -> u32 {
        if self.algorithm.coll == Coll::ReduceScatter { self.part } else { self.algorithm.chunks }
    }

    /// Places of a rank's memory: output or both in one, then input, then scratch.
    pub fn places(&self, rank: u32) -> usize {
        let whole = self.algorithm.chunks;
        (2 * whole + self.algorithm.programs[rank as usize].scratch) as usize
    }

    /// Where a place of a buffer is in a rank's memory. In place, input and output are one.
    pub fn place(&self, rank: u32, buffer: Buffer, at: i32) -> Option<usize> {
        let at = u32::try_from(at).ok()?;
        let whole = self.algorithm.chunks;
        let size = match buffer {
            Buffer::Input => self.inputs(),
            Buffer::Output => self.outputs(),
            Buffer::Scratch => self.algorithm.programs[rank as usize].scratch,
        };
        let in_place = self.placement == Placement::InPlace;
        let own = rank * self.part;
        let place = match (buffer, self.algorithm.coll) {
            (Buffer::Scratch, _) => 2 * whole + at,
            (Buffer::Input, Coll::AllGather) if in_place => own + at,
            (Buffer::Output, Coll::ReduceScatter) if in_place => own + at,
            (Buffer::Input, _) if !in_place => whole + at,
            _ => at,
        };
        (at < size).then_some(place as usize)
    }

    /// What a rank's memory holds at first.
    pub fn start(&self, rank: u32) -> Vec<Option<Value>> {
        let mut memory = vec![None; self.places(rank)];
        let root = 0;
        for at in 0..self.inputs() {
            let chunk = match self.algorithm.coll {
                Coll::AllGather => rank * self.part + at,
                Coll::AllToAll => rank * self.algorithm.chunks + at,
                _ => at,
            };
            let given = self.algorithm.coll != Coll::Broadcast || rank == root;
            if let Some(place) = self.place(rank, Buffer::Input, at as i32).filter(|_| given) {
                memory[place] = Some(Value::own(chunk, rank, self.ranks as usize));
            }
        }
        memory
    }

    /// The places of a rank that must hold something in the end, each with what.
    pub fn end(&self, rank: u32) -> Vec<(usize, Value)> {
        let reduced = |chunk: u32| {
            let own = |rank| Value::own(chunk, rank, self.ranks as usize);
            (1..self.ranks).fold(own(0), |sum, rank| sum.joined(&own(rank)))
        };
        let expected = |at: u32| match self.algorithm.coll {
            Coll::AllGather => Value::own(at, at / self.part, self.ranks as usize),
            Coll::AllReduce | Coll::Reduce => reduced(at),
            Coll::ReduceScatter => reduced(rank * self.part + at),
            Coll::Broadcast => Value::own(at, 0, self.ranks as usize),
            Coll::AllToAll => {
                let (from, part) = (at / self.part, at % self.part);
                let chunk = from * self.algorithm.chunks + rank * self.part + part;
                Value::own(chunk, from, self.ranks as usize)
            }
        };
        let wanted = self.algorithm.coll != Coll::Reduce || rank == 0;
        let all = 0..if wanted { self.outputs() } else { 0 };
        all.filter_map(|at| Some((self.place(rank, Buffer::Output, at as i32)?, expected(at)))).collect()
    }
}
