//! What is sent and what must arrive: whole numbers that floats add without error.

use dynamiccl_gpu::Call;
use dynamiccl_spec::Collective;

/// The numbers repeat after so many, a prime, so that no part looks like another.
const PERIOD: usize = 251;
/// Floats of 16 bytes, in whole numbers of which nccl-tests counts what each rank has. NCCL moves no more than that at a time;
/// with other parts, PAT among six ranks takes up to half as long again.
const LINE: usize = 4;
/// Rooted collectives have this root.
const ROOT: u32 = 0;

/// What rank `rank` sends at a position.
pub fn sent(rank: u32, at: usize) -> f32 {
    (at % PERIOD) as f32 + rank as f32
}

/// A collective of so many bytes, as NCCL's function counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// NCCL's function.
    pub call: Call,
    /// Floats that it counts.
    pub floats: usize,
    /// Floats that a rank receives.
    pub received: usize,
}

impl Shape {
    /// Bytes in nccl-tests' convention: those of all ranks where every rank has a part.
    pub fn new(collective: Collective, bytes: u64, ranks: u32) -> Option<Self> {
        let all = usize::try_from(bytes).ok()? / size_of::<f32>();
        let part = all / ranks as usize;
        let part = if part < LINE { part } else { part / LINE * LINE };
        let (call, floats, received) = match collective {
            Collective::Broadcast => (Call::Broadcast(ROOT), all, all),
            Collective::Reduce => (Call::Reduce(ROOT), all, all),
            Collective::AllGather => (Call::AllGather, part, part * ranks as usize),
            Collective::ReduceScatter => (Call::ReduceScatter, part, part),
            Collective::AllReduce => (Call::AllReduce, all, all),
            _ => return None,
        };
        Some(Shape { call, floats, received })
    }

    /// How many of the numbers that a rank has received are wrong. Where a rank receives nothing, none is.
    pub fn wrong(&self, rank: u32, ranks: u32, got: &[f32]) -> u64 {
        let (part, all) = (self.floats, ranks as f32);
        let others = (0..ranks).map(|rank| rank as f32).sum::<f32>();
        let sum = |at: usize| sent(0, at) * all + others;
        let expected = |at: usize| match self.call {
            Call::Broadcast(root) => sent(root, at),
            Call::Reduce(_) | Call::AllReduce => sum(at),
            Call::AllGather => sent((at / part.max(1)) as u32, at % part.max(1)),
            Call::ReduceScatter => sum(rank as usize * part + at),
        };
        if matches!(self.call, Call::Reduce(root) if root != rank) {
            return 0;
        }
        got.iter().enumerate().filter(|&(at, &number)| number != expected(at)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANKS: u32 = 3;

    /// What a collective gives to a rank, worked out from what all ranks send.
    fn received(collective: Collective, shape: &Shape, rank: u32) -> Vec<f32> {
        let sum = |at: usize| (0..RANKS).map(|rank| sent(rank, at)).sum::<f32>();
        let all = shape.received;
        match collective {
            Collective::Broadcast => (0..all).map(|at| sent(0, at)).collect(),
            Collective::AllGather => {
                (0..RANKS).flat_map(|rank| (0..shape.floats).map(move |at| sent(rank, at))).collect()
            }
            Collective::ReduceScatter => (0..all).map(|at| sum(rank as usize * shape.floats + at)).collect(),
            _ => (0..all).map(sum).collect(),
        }
    }

    #[test]
    fn what_arrives_is_told_from_what_does_not() {
        for collective in Collective::TUNED {
            let shape = Shape::new(collective, 4096, RANKS).unwrap();
            for rank in 0..RANKS {
                let mut got = received(collective, &shape, rank);
                assert_eq!(shape.wrong(rank, RANKS, &got), 0, "{collective} rank {rank}");
                got[7] += 1.0;
                let last = got.len() - 1;
                got[last] = f32::NAN;
                let looks = collective != Collective::Reduce || rank == 0;
                assert_eq!(shape.wrong(rank, RANKS, &got), if looks { 2 } else { 0 }, "{collective}");
            }
        }
        assert_eq!(Shape::new(Collective::AllToAll, 4096, 2), None);
    }

    #[test]
    fn every_rank_has_whole_lines_as_in_nccl_tests() {
        let floats = |collective, bytes, ranks| Shape::new(collective, bytes, ranks).unwrap().floats;
        assert_eq!(floats(Collective::AllGather, 16384, 6), 680, "of 682 and two thirds");
        assert_eq!(floats(Collective::ReduceScatter, 24576, 6), 1024);
        assert_eq!(floats(Collective::AllReduce, 16388, 6), 4097);
        assert_eq!(floats(Collective::AllGather, 64, 8), 2, "less than a line is still sent");
    }
}
