//! What becomes of a choice of knobs when real NCCL carries it out through a tuner plugin.

use dynamiccl_spec::{Collective, CostTable, Knobs, Pair};

use super::comm::Communicator;
use super::launch::Launch;

/// A choice of knobs as NCCL runs it, after all of its caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realised {
    /// Algorithm and protocol.
    pub pair: Pair,
    /// The most channels that the scheduler could use.
    pub max_channels: u32,
    /// Channels that run: at most one more than `max_channels`, because NCCL rounds shares down.
    pub channels: u32,
    /// Threads per block.
    pub threads: u32,
    /// Payload of one step of a channel.
    pub chunk_bytes: u64,
}

impl Communicator {
    /// Carries out a choice of knobs; nothing where its pair is unavailable in NCCL's table.
    ///
    /// The path is not looked at: it says who carries the call, and this is what NCCL would do.
    pub fn realise(
        &self,
        collective: Collective,
        bytes: u64,
        table: &CostTable,
        knobs: &Knobs,
    ) -> Option<Realised> {
        let pair = match knobs.pair {
            Some(pair) => table.get(pair).map(|_| pair)?,
            None => table.best()?.0,
        };
        let most_threads = self.threads.requested(pair, knobs.threads.requested());
        let (own_channels, threads) = self.channels_threads_with(pair, bytes, most_threads);
        let limit = self.channel_limit(pair).max(1);
        let max_channels = knobs.channels.requested().unwrap_or(own_channels).clamp(1, limit);
        let Launch { channels, chunk_bytes, .. } =
            self.launch(collective, pair, bytes, max_channels, knobs.chunk);
        Some(Realised { pair, max_channels, channels, threads, chunk_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, CommOptions};
    use crate::nccl::Version;
    use dynamiccl_spec::{Algorithm::*, ChannelChoice, ChunkChoice, Protocol::*, ThreadChoice};

    const MIB: u64 = 1 << 20;

    fn communicator(name: &str, nodes: u32, options: &CommOptions) -> Communicator {
        Cluster::load(name).unwrap().communicator(nodes, options).unwrap()
    }

    fn realise(communicator: &Communicator, bytes: u64, knobs: Knobs) -> Realised {
        let table = communicator.cost_table(Collective::AllReduce, bytes, 1);
        communicator.realise(Collective::AllReduce, bytes, &table, &knobs).unwrap()
    }

    fn with(pair: Pair, channels: u8, threads: u16, chunk: ChunkChoice) -> Knobs {
        Knobs {
            pair: Some(pair),
            channels: ChannelChoice::of(channels).unwrap(),
            threads: ThreadChoice::of(threads).unwrap(),
            chunk,
            ..Knobs::OWN
        }
    }

    #[test]
    fn a_request_for_channels_replaces_nccls_count_within_its_caps() {
        let node = communicator("dgx_h100", 1, &CommOptions::default());
        let channels = |pair, asked, bytes| {
            let done = realise(&node, bytes, with(pair, asked, 0, ChunkChoice::Own));
            (done.max_channels, done.channels)
        };
        let ring = Pair::new(Ring, Simple);
        assert_eq!(channels(ring, 0, 64 * MIB), (24, 24));
        assert_eq!(channels(ring, 8, 64 * MIB), (8, 8));
        assert_eq!(channels(ring, 64, 64 * MIB), (24, 24));
        // Cells of 16 KiB: a 64 KiB allreduce has four.
        assert_eq!(channels(ring, 64, 64 << 10), (24, 4));
        // NVLS has channels of its own.
        assert_eq!(channels(Pair::new(Nvls, Simple), 64, 64 * MIB), (16, 16));
        // NCCL would give this size one channel only; a plugin may ask for more.
        assert_eq!(channels(Pair::new(Tree, LL), 0, 4096), (1, 1));
        assert_eq!(channels(Pair::new(Tree, LL), 2, 8192), (2, 2));
    }

    #[test]
    fn threads_follow_nccls_limits_and_size_rule() {
        let node = communicator("dgx_h100", 1, &CommOptions::default());
        let threads =
            |pair, asked, bytes| realise(&node, bytes, with(pair, 0, asked, ChunkChoice::Own)).threads;
        assert_eq!(
            [0, 64, 128, 512].map(|n| threads(Pair::new(Ring, Simple), n, 64 * MIB)),
            [544, 96, 160, 544]
        );
        assert_eq!([0, 64, 256].map(|n| threads(Pair::new(Ring, LL), n, 64 * MIB)), [512, 96, 256]);
        assert_eq!([0, 64, 512].map(|n| threads(Pair::new(Ring, LL128), n, 64 * MIB)), [640, 160, 512]);
        assert_eq!([0, 64].map(|n| threads(Pair::new(Tree, Simple), n, 64 * MIB)), [640, 640]);
        assert_eq!([0, 64].map(|n| threads(Pair::new(Nvls, Simple), n, 64 * MIB)), [640, 640]);
        // Small calls give up threads after channels.
        assert_eq!([0, 512].map(|n| threads(Pair::new(Ring, LL), n, 1024)), [96, 96]);
    }

    #[test]
    fn what_the_user_has_fixed_stands() {
        let mut options = CommOptions::default();
        options.overrides.set("NCCL_NTHREADS", "256").unwrap();
        let node = communicator("dgx_h100", 1, &options);
        let knobs = |protocol| with(Pair::new(Ring, protocol), 0, 64, ChunkChoice::Own);
        assert_eq!(realise(&node, 64 * MIB, knobs(Simple)).threads, 288);
        assert_eq!(realise(&node, 64 * MIB, knobs(LL128)).threads, 160);
    }

    #[test]
    fn a_chunk_is_scaled_clamped_and_rounded_to_grains() {
        let node = communicator("dgx_h100", 1, &CommOptions::default());
        let chunks = |pair, bytes| {
            [
                ChunkChoice::Quarter,
                ChunkChoice::Half,
                ChunkChoice::Own,
                ChunkChoice::Double,
                ChunkChoice::Quadruple,
            ]
            .map(|chunk| realise(&node, bytes, with(pair, 0, 0, chunk)).chunk_bytes)
        };
        let ring_simple = 2 << 20;
        let own_is_the_ceiling = [ring_simple / 4, ring_simple / 2, ring_simple, ring_simple, ring_simple];
        assert_eq!(chunks(Pair::new(Ring, Simple), 64 * MIB), own_is_the_ceiling);
        assert_eq!(chunks(Pair::new(Ring, LL), 64 * MIB)[0], 8192);
        // NCCL shows a plugin its chunk before rounding: four times 18,000 rounds to 71,040.
        assert_eq!(chunks(Pair::new(Tree, LL128), MIB)[2..], [17_280, 34_560, 71_040]);
        // NVLS never grows beyond its own buffers.
        let nvls = chunks(Pair::new(Nvls, Simple), 1 << 30);
        assert_eq!(nvls, [32 << 10, 64 << 10, 128 << 10, 128 << 10, 128 << 10]);
    }

    #[test]
    fn releases_without_the_chunk_knob_keep_their_own() {
        let options = CommOptions { version: Version::V2_29, ..CommOptions::default() };
        let node = communicator("dgx_h100", 1, &options);
        let done = realise(&node, 64 * MIB, with(Pair::new(Ring, Simple), 0, 0, ChunkChoice::Quarter));
        assert_eq!(done.chunk_bytes, 2 << 20);
    }

    #[test]
    fn an_unavailable_pair_is_refused() {
        let node = communicator("dgx_a100", 1, &CommOptions::default());
        let table = node.cost_table(Collective::AllReduce, MIB, 1);
        let knobs = with(Pair::new(Nvls, Simple), 0, 0, ChunkChoice::Own);
        assert_eq!(node.realise(Collective::AllReduce, MIB, &table, &knobs), None);
        let none = node.cost_table(Collective::AllToAll, MIB, 1);
        assert_eq!(node.realise(Collective::AllToAll, MIB, &none, &Knobs::OWN), None);
    }
}
