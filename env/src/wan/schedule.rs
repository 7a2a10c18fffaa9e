//! What goes over each hop of a ring in each round of a collective.
//!
//! Each GPU holds one chunk for an allgather, one chunk for every GPU for the others. A round is one message over
//! every hop; a GPU can send its message of a round once that of the round before has arrived.

use dynamiccl_spec::Collective;

use super::WanError;

/// The rounds of a collective on a ring.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    collective: Collective,
    gpus: usize,
    /// Chunks of each round's message.
    chunks: Vec<f64>,
    total: f64,
}

impl Schedule {
    /// The collectives that go round a ring.
    pub const KNOWN: [Collective; 4] =
        [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce, Collective::AllToAll];

    /// The rounds of a collective among this many GPUs.
    pub fn new(collective: Collective, gpus: usize) -> Result<Self, WanError> {
        let others = gpus.saturating_sub(1);
        let chunks: Vec<f64> = match collective {
            Collective::AllGather | Collective::ReduceScatter => vec![1.0; others],
            // What a reduce-scatter leaves goes round once more.
            Collective::AllReduce => vec![1.0; 2 * others],
            // All that is for GPUs farther on, less in every round.
            Collective::AllToAll => (1..=others).rev().map(|chunks| chunks as f64).collect(),
            other => {
                let known = Self::KNOWN.map(Collective::name).join(", ");
                return Err(WanError::value("is no collective of a ring", other, &format!("give {known}")));
            }
        };
        let total = chunks.iter().sum();
        Ok(Schedule { collective, gpus, chunks, total })
    }

    /// The collective.
    pub fn collective(&self) -> Collective {
        self.collective
    }

    /// Chunks of each round's message.
    #[inline]
    pub fn chunks(&self) -> &[f64] {
        &self.chunks
    }

    /// Chunks that every hop carries in all.
    #[inline]
    pub fn total(&self) -> f64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    impl Schedule {
        /// What a GPU sends in a round, as (whose, for whom), all by their place in the ring. Of a reduction, `whose`
        /// names the chunk, whoever has added to it.
        fn carried(&self, place: usize, round: usize) -> Vec<(usize, usize)> {
            let n = self.gpus;
            let back = |by: usize| (place + n * 2 - by) % n;
            let ahead = (place + 1) % n;
            match self.collective {
                Collective::AllReduce if round >= n - 1 => vec![(back(round + 1 - n), ahead)],
                // The last to add to a chunk is the one that keeps it.
                Collective::ReduceScatter | Collective::AllReduce => vec![(back(round + 1), ahead)],
                Collective::AllToAll => {
                    (round + 1..n).map(|far| (back(round), (back(round) + far) % n)).collect()
                }
                _ => vec![(back(round), ahead)],
            }
        }
    }

    /// Plays a schedule through and says what each GPU has received, contributions of reductions included.
    fn played(collective: Collective, gpus: usize) -> Vec<BTreeSet<(usize, usize)>> {
        let schedule = Schedule::new(collective, gpus).unwrap();
        let reduces = collective.reduces();
        // (chunk, contributor) for reductions, (whose, for whom) elsewhere.
        let mut held: Vec<BTreeSet<(usize, usize)>> = (0..gpus)
            .map(|place| match collective {
                Collective::AllGather => BTreeSet::from([(place, 0)]),
                Collective::AllToAll => (0..gpus).map(|to| (place, to)).collect(),
                _ => (0..gpus).map(|chunk| (chunk, place)).collect(),
            })
            .collect();
        for round in 0..schedule.chunks().len() {
            let before = held.clone();
            for (place, held_here) in before.iter().enumerate() {
                let carried = schedule.carried(place, round);
                assert_eq!(carried.len() as f64, schedule.chunks()[round]);
                for (whose, to) in carried {
                    let found: Vec<_> = held_here
                        .iter()
                        .filter(|&&(chunk, other)| {
                            chunk == whose && (reduces || collective == Collective::AllGather || other == to)
                        })
                        .copied()
                        .collect();
                    assert!(!found.is_empty(), "{collective} round {round}: {place} has no {whose} for {to}");
                    held[(place + 1) % gpus].extend(found);
                }
            }
        }
        held
    }

    #[test]
    fn every_chunk_is_delivered_to_every_gpu_that_needs_it() {
        for gpus in 2..=9 {
            let gathered = played(Collective::AllGather, gpus);
            assert!(gathered.iter().all(|held| held.len() == gpus), "allgather of {gpus}");
            for (place, held) in played(Collective::AllToAll, gpus).iter().enumerate() {
                assert!((0..gpus).all(|from| held.contains(&(from, place))), "alltoall of {gpus}");
            }
            for (place, held) in played(Collective::ReduceScatter, gpus).iter().enumerate() {
                assert!((0..gpus).all(|from| held.contains(&(place, from))), "reducescatter of {gpus}");
            }
            for held in played(Collective::AllReduce, gpus) {
                assert_eq!(held.len(), gpus * gpus, "allreduce of {gpus}");
            }
        }
    }

    #[test]
    fn what_goes_round_no_ring_is_refused() {
        let refused = Schedule::new(Collective::Broadcast, 4).unwrap_err().to_string();
        assert!(refused.contains("allgather, reducescatter, allreduce, alltoall"), "{refused}");
    }
}
