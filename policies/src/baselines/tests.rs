//! What the simplest tuners answer.

use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
use dynamiccl_spec::{
    Algorithm, ChannelChoice, Choice, Collective, CostTable, Fallback, Gates, Head, JobContext, Knobs, Pair,
    Protocol, Query, Reason, Tuner,
};

use super::{Fixed, Nccl, Uniform};

const RING: Pair = Pair::new(Algorithm::Ring, Protocol::LL);
const TREE: Pair = Pair::new(Algorithm::Tree, Protocol::Simple);
const NVLS: Pair = Pair::new(Algorithm::Nvls, Protocol::Simple);

/// A call with a ring, which NCCL would take, and a tree.
fn asked(check: impl FnOnce(&Query<'_>)) {
    let mut table = CostTable::default();
    table.set(RING, 20.0);
    table.set(TREE, 30.0);
    let gated = Gates::default().narrow(Collective::AllReduce, &table);
    let pairs = gated.mask.pairs();
    let call = CallContext {
        collective: Collective::AllReduce,
        bytes: 1 << 20,
        pipelined: 1,
        table,
        pairs,
        synthesised: None,
    };
    let (encoder, past) = (Encoder::new(&JobContext::default()), PastCall::default());
    let (communicator, ranks, nodes) = (0, 16, 2);
    check(&Query { communicator, ranks, nodes, encoder: &encoder, call: &call, gated: &gated, past: &past });
}

#[test]
fn nccl_keeps_its_own() {
    asked(|query| {
        let decision = Nccl.decide(query, &mut |_| None);
        assert_eq!((decision.knobs, decision.reason), (query.own(), Reason::Policy));
    });
}

#[test]
fn fixed_knobs_hold_where_they_are_legal() {
    asked(|query| {
        let wish = |pair| Knobs::with_pair(pair, ChannelChoice::of(8).unwrap());
        let legal = Fixed::new(wish(TREE)).decide(query, &mut |_| None);
        assert_eq!((legal.knobs, legal.reason), (wish(TREE), Reason::Policy));
        let illegal = Fixed::new(wish(NVLS)).decide(query, &mut |_| None);
        assert_eq!((illegal.knobs, illegal.reason), (query.own(), Reason::Fallback(Fallback::NoEntry)));
    });
}

#[test]
fn random_knobs_are_legal_and_each_as_likely() {
    asked(|query| {
        let mut tuner = Uniform::new(7);
        let mut counts = [[0_u32; 21]; 5];
        const DRAWS: u32 = 20_000;
        for _ in 0..DRAWS {
            let choice = Choice::of(&tuner.decide(query, &mut |_| None).knobs, RING);
            assert_eq!(query.gated.mask.refuses(&choice), None);
            Head::ALL.iter().for_each(|&head| counts[head as usize][choice.index(head)] += 1);
        }
        for &head in Head::ALL {
            let expected = f64::from(DRAWS) / f64::from(query.gated.mask.count(head));
            for index in query.gated.mask.indices(head) {
                let count = f64::from(counts[head as usize][index]);
                assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{head} {index}: {count}");
            }
        }
        let knobs = |seed| Uniform::new(seed).decide(query, &mut |_| None).knobs;
        assert_eq!(knobs(3), knobs(3));
    });
}
