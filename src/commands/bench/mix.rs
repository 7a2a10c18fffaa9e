//! What is timed: calls as episodes make them, over clusters of every kind.

use anyhow::Result;
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::nccl::Realised;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_spec::{ChannelChoice, ChunkChoice, Collective, CostTable, Knobs, Pair, ThreadChoice};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Clusters and their nodes: every kind of link, every generation of GPU, one node and many.
const PLACES: [(&str, u32); 12] = [
    ("dgx1_v100", 1),
    ("dgx_a100", 1),
    ("dgx_a100", 2),
    ("dgx_h100", 1),
    ("dgx_h100", 16),
    ("hgx_b200", 4),
    ("gb200_nvl72", 1),
    ("aws_p5", 8),
    ("l40s_8pcie", 1),
    ("ib100g_1gpu", 8),
    ("a100_8_tcp25g", 4),
    ("tier4", 4),
];

/// Calls drawn in each place: more than a branch predictor learns by heart.
pub const CALLS: usize = 1024;

/// Sizes are 1 KiB to 1 GiB, each octave as likely as the next.
const OCTAVES: std::ops::Range<u32> = 10..30;

/// Communicators of all kinds, each in a world of its own, and calls on them.
#[derive(Debug)]
pub struct Mix {
    /// One per place.
    pub places: Vec<Place>,
}

/// One communicator with the calls that are made on it.
#[derive(Debug)]
pub struct Place {
    /// The cluster.
    pub cluster: Cluster,
    /// Its nodes.
    pub nodes: u32,
    /// The communicator in its world.
    pub simulator: Simulator,
    /// The calls.
    pub calls: Vec<Call>,
}

/// One call with legal knobs, and what comes out of each step of simulating it.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub bytes: u64,
    /// A setting that NCCL can run.
    pub knobs: Knobs,
    /// NCCL's cost table.
    pub table: CostTable,
    /// The setting as NCCL runs it.
    pub realised: Realised,
}

impl Mix {
    /// Draws the worlds and the calls.
    pub fn draw(constants: &ConstantsFile, seed: u64) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let place = |(name, nodes): (&str, u32)| {
            let cluster = Cluster::load(name)?;
            let world = World::draw(constants, rng.random());
            let simulator = Simulator::new(&cluster, nodes, &CommOptions::default(), &world)?;
            let calls = std::iter::repeat_with(|| Call::draw(&simulator, &mut rng)).flatten().take(CALLS);
            let calls = calls.collect();
            Ok(Place { cluster, nodes, simulator, calls })
        };
        Ok(Mix { places: PLACES.into_iter().map(place).collect::<Result<_>>()? })
    }
}

impl Call {
    /// A call with random legal knobs; nothing where NCCL has no algorithm for what was drawn.
    fn draw(simulator: &Simulator, rng: &mut ChaCha8Rng) -> Option<Self> {
        let collective = *pick(&Collective::TUNED, rng)?;
        let bytes = (1u64 << rng.random_range(OCTAVES)) + rng.random_range(0..1u64 << OCTAVES.start);
        let table = simulator.communicator().cost_table(collective, bytes, 1);
        let pairs: Vec<Pair> = table.mask().iter().collect();
        let knobs = Knobs {
            pair: Some(*pick(&pairs, rng)?),
            channels: ChannelChoice::of(*pick(&ChannelChoice::VALUES, rng)?)?,
            chunk: *pick(&ChunkChoice::ALL, rng)?,
            threads: ThreadChoice::of(*pick(&ThreadChoice::VALUES, rng)?)?,
            ..Knobs::OWN
        };
        let realised = simulator.communicator().realise(collective, bytes, &table, &knobs)?;
        Some(Call { collective, bytes, knobs, table, realised })
    }
}

/// One of them, all as likely; nothing of nothing.
fn pick<'a, T>(items: &'a [T], rng: &mut ChaCha8Rng) -> Option<&'a T> {
    (!items.is_empty()).then(|| &items[rng.random_range(0..items.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_calls_and_every_collective() {
        let constants = ConstantsFile::full();
        let [a, b, other] = [1, 1, 2].map(|seed| Mix::draw(&constants, seed).unwrap());
        let drawn = |mix: &Mix| -> Vec<_> {
            let calls = mix.places.iter().flat_map(|place| &place.calls);
            calls.map(|call| (call.collective, call.bytes, call.knobs)).collect()
        };
        assert_eq!(drawn(&a), drawn(&b));
        assert_ne!(drawn(&a), drawn(&other));
        assert_eq!(drawn(&a).len(), PLACES.len() * CALLS);
        assert!(Collective::TUNED.iter().all(|c| drawn(&a).iter().any(|call| call.0 == *c)));
    }
}
