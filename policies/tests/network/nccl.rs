//! Untrained, a policy is NCCL.

use std::sync::Arc;

use dynamiccl_policies::guard::Guard;
use dynamiccl_policies::network::{Shape, Weights};
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_policies::probe::Call;
use dynamiccl_policies::random::Random;
use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
use dynamiccl_spec::{Collective, CostTable, Gates, JobContext, Overrides, Pair, Query, Reason, Topology};

fn untrained() -> PolicyTuner {
    let policy = Policy::new("untrained", &Weights::untrained(Shape::default()), Guard::Off, 0);
    PolicyTuner::new(Arc::new(policy), None)
}

#[test]
fn untrained_it_decides_as_nccl_does() {
    let (mut tuner, mut random) = (untrained(), Random::new(1));
    let mut free = 0;
    for number in 0..20_000 {
        let call = Call::draw(&mut random);
        let query = call.query();
        let decision = tuner.answer(&query);
        assert_eq!(decision.knobs, query.own(), "call {number}: {query:?}");
        free += usize::from(decision.reason == Reason::Policy);
    }
    assert!(free > 15_000, "only {free} calls were free");
}

/// Costs that encode alike, or almost: below a nanosecond, above the ceiling, one step of a float apart.
#[test]
fn however_close_two_costs_are() {
    let mut tuner = untrained();
    let mut random = Random::new(2);
    let (encoder, past) = (Encoder::new(&JobContext::default()), PastCall::default());
    for number in 0..20_000 {
        let collective = Collective::AllReduce;
        let mut table = CostTable::default();
        let base =
            [1e-30, 1e-5, 0.37, 12.5, 8191.9, 3e7, 1e37][random.below(7)] * (1.0 + random.uniform() as f32);
        for pair in Pair::all().filter(|_| random.below(2) == 0).collect::<Vec<_>>() {
            let cost = match random.below(6) {
                0 => base,
                1 => base.next_up(),
                2 => base.next_down(),
                3 => base.next_up().next_up(),
                4 => base * 3000.0,
                _ => (base * 3000.0).next_up(),
            };
            table.set(pair, cost);
        }
        // In deterministic mode NCCL's pick is not always the table's smallest.
        let gates = Gates::new(&Topology::default(), random.below(2) == 0, Overrides::default());
        let gated = gates.narrow(collective, &table);
        let call = CallContext {
            collective,
            bytes: 1 << 20,
            pipelined: 1,
            table,
            pairs: gated.mask.pairs(),
            synthesised: None,
        };
        let (communicator, ranks, nodes) = (0, 8, 1);
        let (encoder, call, gated, past) = (&encoder, &call, &gated, &past);
        let query = Query { communicator, ranks, nodes, encoder, call, gated, past };
        assert_eq!(tuner.answer(&query).knobs, query.own(), "table {number}: {table:?}");
    }
}
