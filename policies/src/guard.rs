//! When a policy is sure enough to overrule NCCL.
//!
//! A wrong choice costs a job more than a missed one gains it, so NCCL's own pick stays unless another is clearly
//! more likely to be right, and unless what a policy expects to win exceeds what its expectation may be wrong by.
//! That only allowed knobs are chosen is the business of the gates, which hold for every tuner.

use dynamiccl_spec::tuner::Query;
use dynamiccl_spec::{ChunkChoice, Head, Mask};

use crate::network::{Gain, greedy};

/// How sure a policy must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Guard {
    /// As it likes: while training, what it does must be what it chose.
    Off,
    /// The expected gain must exceed this many spreads of it; below 0, a loss must not.
    Spreads(f32),
}

impl Default for Guard {
    fn default() -> Self {
        Guard::Spreads(1.0)
    }
}

impl Guard {
    /// What a policy may choose of what is allowed: over kernel TCP that is not known to be of tier 4 (where it has 25 Gb/s
    /// at most), no chunk that is smaller than NCCL's own; no curriculum has a machine with faster TCP. Every chunk costs
    /// its hosts a system call and a copy; small ones make trees nearly twice as fast at 25 Gb/s, and at 100, which it had
    /// never seen, half as fast.
    #[inline]
    pub fn narrow(self, query: &Query<'_>) -> Mask {
        let mask = query.gated.mask;
        if self == Guard::Off || query.nodes < 2 || !query.encoder.over_fast_tcp() {
            return mask;
        }
        mask.with(Head::Chunk, mask.bits(Head::Chunk) & !SMALLER)
    }

    /// Who chooses for this call, head by head. `noted`: calls are measured, so that what turns out to be slower gives way.
    #[inline]
    pub fn chooser(self, query: &Query<'_>, noted: bool) -> Chooser {
        Chooser {
            guard: self,
            own_pair: query.gated.own.map_or(0, |pair| pair.index()),
            noted,
            departed: false,
        }
    }

    /// The guard of this call. Over kernel TCP, what changes a broadcast or a reduce must be expected to gain: no public table
    /// has a reduce there, or a broadcast with knobs that are not NCCL's.
    #[inline]
    pub fn of_call(self, query: &Query<'_>) -> Self {
        let unheard_of = query.call.collective.is_rooted() && query.nodes > 1 && query.encoder.over_tcp();
        match self {
            Guard::Spreads(margin) if unheard_of => Guard::Spreads(margin.max(UNHEARD_OF)),
            guard => guard,
        }
    }

    /// Whether knobs other than NCCL's own may be used for such a gain. Not for one that is no number, or
    /// whose spread is none.
    #[inline]
    pub fn lets(self, gain: &Gain) -> bool {
        match self {
            Guard::Off => true,
            Guard::Spreads(margin) => {
                let known = gain.mean.is_finite() && !gain.ln_spread.is_nan();
                known && gain.mean > margin * gain.spread()
            }
        }
    }
}

/// Chooses for one call what NCCL's own is not clearly better at, each head after those before it.
#[derive(Debug, Clone, Copy)]
pub struct Chooser {
    guard: Guard,
    own_pair: usize,
    noted: bool,
    /// The pair is not NCCL's.
    departed: bool,
}

impl Chooser {
    /// The most likely of these choices, or NCCL's own where that is hardly less likely.
    #[inline]
    pub fn choose(&mut self, head: Head, logits: &[f32]) -> usize {
        let own = if head == Head::Pair { self.own_pair } else { 0 };
        let best = greedy(logits, own);
        let chosen = if logits[own] + self.reluctance(head) >= logits[best] { own } else { best };
        if head == Head::Pair {
            self.takes(chosen);
        }
        chosen
    }

    /// Somebody else has chosen this pair.
    #[inline]
    pub fn takes(&mut self, pair: usize) {
        self.departed = pair != self.own_pair;
    }

    /// How much likelier (ln) than NCCL's own a choice must be to be taken. Close calls gain little and are the ones that go
    /// wrong somewhere: in the simulator this costs about half a point of regret and takes the worst cell from 0.88 to 0.97.
    /// Half as much stands for the channels that NCCL would give a pair which it does not take: they are no choice of its own
    /// to come back to. Where calls are measured a chunk may be tried sooner: in a fifth of the worlds of slow links small ones
    /// make trees in LL a third faster, and only a call shows in which. With channels the same gained nothing. Threads hold for
    /// a whole job, whichever call came first, and with fewer of them NCCL takes other channels, so that not even its own
    /// choice is left to come back to.
    #[inline]
    fn reluctance(&self, head: Head) -> f32 {
        match head {
            _ if self.guard == Guard::Off => 0.0,
            Head::Pair => 0.25,
            Head::Channels if self.departed => 0.75,
            Head::Channels | Head::Threads => 1.5,
            Head::Chunk if self.noted => 0.3,
            Head::Chunk => 1.0,
            Head::Path => 0.0,
        }
    }
}

/// What such a call must be expected to gain at least, in spreads. Policies that were free to lose one took reduces of 4K in
/// Simple, which real ranks ran at 0.63 of NCCL's speed; with 0.25, broadcasts of 16K in LL, at 0.66 to 0.95.
const UNHEARD_OF: f32 = 0.5;

/// Chunks that are smaller than NCCL's own, as bits.
const SMALLER: u32 = 1 << ChunkChoice::Quarter as u32 | 1 << ChunkChoice::Half as u32;

#[cfg(test)]
mod tests {
    use dynamiccl_spec::context::{JobContext, NetLink};
    use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
    use dynamiccl_spec::gates::GateSet;
    use dynamiccl_spec::ids::PAIRS;
    use dynamiccl_spec::{Algorithm, Collective, CostTable, Gated, Pair, PairMask, Protocol};

    use super::*;

    #[test]
    fn nccls_own_stays_unless_another_choice_is_clearly_likelier() {
        let chooser = |guard, noted| Chooser { guard, own_pair: 0, noted, departed: false };
        let choose = |guard, other: f32, noted| chooser(guard, noted).choose(Head::Chunk, &[0.5, other, 0.0]);
        assert_eq!([0.4, 1.4, 1.5, 1.6].map(|other| choose(Guard::default(), other, false)), [0, 0, 0, 1]);
        assert_eq!([0.4, 0.7, 0.9, 1.6].map(|other| choose(Guard::default(), other, true)), [0, 0, 1, 1]);
        assert_eq!([0.4, 0.5, 0.6].map(|other| choose(Guard::Off, other, false)), [0, 0, 1]);
        let forbidden = [f32::NEG_INFINITY, 0.0, 1.0];
        assert_eq!(chooser(Guard::default(), false).choose(Head::Pair, &forbidden), 2);
    }

    #[test]
    fn channels_that_nccl_would_give_another_pair_are_left_sooner() {
        let links = (NetLink::Infiniband, Some(2), 2);
        let (mut chooser, own) = asked(links, Collective::AllReduce, |query| {
            (Guard::default().chooser(query, false), query.gated.own.expect("there is one").index())
        });
        let channels =
            |mut chooser: Chooser| [0.7, 0.8, 1.4, 1.6].map(|x| chooser.choose(Head::Channels, &[0.0, x]));
        let mut pairs = [0.0; PAIRS];
        pairs[own] = 1.0;
        assert_eq!(chooser.choose(Head::Pair, &pairs), own);
        assert_eq!(channels(chooser), [0, 0, 0, 1]);
        pairs[own + 1] = 2.0;
        assert_eq!(chooser.choose(Head::Pair, &pairs), own + 1);
        assert_eq!(channels(chooser), [0, 1, 1, 1]);
        chooser.takes(own);
        assert_eq!(channels(chooser), [0, 0, 0, 1]);
    }

    /// What is made of a call over such links, for which NCCL would take a ring in LL.
    fn asked<T>(
        (inter, tier, nodes): (NetLink, Option<u8>, u32),
        collective: Collective,
        make: impl FnOnce(&Query<'_>) -> T,
    ) -> T {
        let mut context = JobContext::default();
        context.topology.inter = inter;
        context.topology.tier_max = tier;
        let (table, pairs) = (CostTable::default(), PairMask::ALL);
        let call = CallContext { collective, bytes: 1 << 20, pipelined: 1, table, pairs, synthesised: None };
        let own = Some(Pair::new(Algorithm::Ring, Protocol::LL));
        let gated = Gated { mask: Mask::ALL, own, fired: GateSet::default() };
        let (encoder, past) = (Encoder::new(&context), PastCall::default());
        let (encoder, call, gated, past) = (&encoder, &call, &gated, &past);
        make(&Query { communicator: 0, ranks: 8, nodes, encoder, call, gated, past })
    }

    #[test]
    fn over_fast_tcp_no_chunk_is_smaller_than_nccls_own() {
        let chunks = |guard: Guard, inter: NetLink, tier: Option<u8>, nodes: u32| {
            asked((inter, tier, nodes), Collective::AllReduce, |query| {
                let mask = guard.narrow(query);
                mask.indices(Head::Chunk).map(|at| ChunkChoice::ALL[at]).collect::<Vec<_>>()
            })
        };
        let (guard, tcp) = (Guard::default(), NetLink::CommodityEthernet);
        for tier in [None, Some(3)] {
            let larger = [ChunkChoice::Own, ChunkChoice::Double, ChunkChoice::Quadruple];
            assert_eq!(chunks(guard, tcp, tier, 2), larger);
            assert_eq!(chunks(Guard::Off, tcp, tier, 2), ChunkChoice::ALL);
            assert_eq!(chunks(guard, tcp, tier, 1), ChunkChoice::ALL);
            assert_eq!(chunks(guard, NetLink::Infiniband, tier, 2), ChunkChoice::ALL);
        }
        assert_eq!(chunks(guard, tcp, Some(4), 2), ChunkChoice::ALL);
    }

    #[test]
    fn over_tcp_what_changes_a_rooted_call_must_gain() {
        let tcp = (NetLink::CommodityEthernet, Some(4), 2);
        let of_call =
            |guard: Guard, links, collective| asked(links, collective, |query| guard.of_call(query));
        let (bold, wary) = (Guard::Spreads(-1.0), Guard::Spreads(UNHEARD_OF));
        for rooted in [Collective::Broadcast, Collective::Reduce] {
            assert_eq!(of_call(bold, tcp, rooted), wary);
            assert_eq!(of_call(bold, (NetLink::Infiniband, Some(2), 2), rooted), bold);
            assert_eq!(of_call(bold, (tcp.0, tcp.1, 1), rooted), bold);
            assert_eq!(of_call(Guard::Spreads(1.0), tcp, rooted), Guard::Spreads(1.0));
            assert_eq!(of_call(Guard::Off, tcp, rooted), Guard::Off);
        }
        assert_eq!(of_call(bold, tcp, Collective::AllReduce), bold);
    }

    #[test]
    fn what_a_margin_lets_through_a_smaller_one_does_too() {
        let [a, b, c, d, e] = [0.0, 0.5, 1.0, 2.0, f32::INFINITY].map(Guard::Spreads);
        let margins = [Guard::Off, a, b, c, d, e];
        for step in -40..40 {
            let gain = Gain { mean: step as f32 / 20.0, ln_spread: -0.5 };
            let lets = margins.map(|guard| guard.lets(&gain));
            assert!(lets.is_sorted_by(|narrow, wide| narrow >= wide), "{gain:?}: {lets:?}");
        }
    }

    #[test]
    fn one_spread_is_the_default_and_no_number_is_no_gain() {
        let guard = Guard::default();
        assert!(guard.lets(&Gain { mean: 1.01, ln_spread: 0.0 }));
        assert!(!guard.lets(&Gain { mean: 1.0, ln_spread: 0.0 }));
        assert!(!guard.lets(&Gain { mean: f32::NAN, ln_spread: 0.0 }));
        assert!(!guard.lets(&Gain { mean: 0.1, ln_spread: f32::INFINITY }));
        assert!(!guard.lets(&Gain { mean: 2.0, ln_spread: f32::NAN }));
        assert!(!guard.lets(&Gain { mean: f32::INFINITY, ln_spread: 0.0 }));
        assert!(!Guard::Spreads(f32::NAN).lets(&Gain { mean: 1e9, ln_spread: 0.0 }));
    }
}
