//! How long a policy takes to decide: calls that it has decided before, calls that it has not, and a step
//! of what it remembers by.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_policies::probe;
use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
use dynamiccl_spec::{Gated, Gates, JobContext, Overrides, Query};

use super::mix::{Call, Mix, Place};
use super::timing::Stopwatch;

/// Calls of a communicator that are decided anew.
const NEW: usize = 256;
/// Calls of a communicator that are made over and over, and how often in one round.
const KNOWN: usize = 64;
const REPEATED: usize = 16;
/// Steps of the LSTM in one round.
const STEPS: usize = 64;
/// Decisions that a tuner keeps where none is to be found again.
const FEW: usize = 1;

/// ns of decisions, on one core with a network of the usual shape.
#[derive(Debug, Clone, Copy)]
pub struct Decisions {
    /// One that was made before.
    pub memo_ns: f64,
    /// One that was not: encoded, and answered by the network with what it remembers.
    pub full_ns: f64,
    /// One call taken in by what it remembers.
    pub lstm_step_ns: f64,
}

/// A communicator with its tuner and calls.
struct Line {
    encoder: Encoder,
    calls: Vec<(CallContext, Gated)>,
    past: PastCall,
    ranks: u32,
    nodes: u32,
    tuner: RefCell<PolicyTuner>,
}

impl Decisions {
    /// Number of timings that [`Decisions::measure`] takes.
    pub const TIMINGS: u64 = 3;

    /// Takes the timings.
    pub fn measure(mix: &Mix, seed: u64, least: Duration, stopwatch: &Stopwatch) -> Result<Self> {
        // Its weights are random: how long a decision takes does not depend on how good it is.
        let policy = Arc::new(probe::policy(seed));
        let lines = |calls, tuner: &dyn Fn() -> PolicyTuner| -> Vec<Line> {
            mix.places.iter().map(|place| Line::new(place, calls, tuner())).collect()
        };
        let known = lines(KNOWN, &|| PolicyTuner::new(Arc::clone(&policy), None));
        let new = lines(NEW, &|| PolicyTuner::with_memo(Arc::clone(&policy), None, FEW));
        Ok(Decisions {
            memo_ns: stopwatch
                .time(least, &known, KNOWN * REPEATED, |line| (0..REPEATED).for_each(|_| line.decide()))?,
            full_ns: stopwatch.time(least, &new, NEW, Line::decide)?,
            lstm_step_ns: lstm_step(&policy, least, stopwatch)?,
        })
    }
}

fn lstm_step(policy: &Policy, least: Duration, stopwatch: &Stopwatch) -> Result<f64> {
    let network = policy.network();
    let (mut memory, mut scratch) = (network.memory(), network.scratch());
    let call = vec![0.25; network.remembered()];
    stopwatch.time(least, &[network], STEPS, |network| {
        for _ in 0..STEPS {
            network.steps(black_box(&call), &mut memory, &mut scratch);
        }
        black_box(&memory);
    })
}

impl Line {
    fn new(place: &Place, calls: usize, tuner: PolicyTuner) -> Self {
        let (nodes, ranks) = (place.nodes, place.nodes * place.cluster.gpus_per_node);
        let mut job = JobContext::default();
        (job.topology.ranks, job.topology.nodes) = (ranks, nodes);
        let gates = Gates::new(&job.topology, false, Overrides::default());
        let asked = |call: &Call| {
            let Call { collective, bytes, table, .. } = *call;
            let gated = gates.narrow(collective, &table);
            let pairs = gated.mask.pairs();
            (CallContext { collective, bytes, pipelined: 1, table, pairs, synthesised: None }, gated)
        };
        Line {
            encoder: Encoder::new(&job),
            calls: place.calls.iter().take(calls).map(asked).collect(),
            past: PastCall::default(),
            ranks,
            nodes,
            tuner: RefCell::new(tuner),
        }
    }

    /// Decides every call once.
    fn decide(&self) {
        let Line { encoder, past, ranks, nodes, .. } = self;
        let mut tuner = self.tuner.borrow_mut();
        for (call, gated) in &self.calls {
            let query = Query { communicator: 0, ranks: *ranks, nodes: *nodes, encoder, call, gated, past };
            black_box(tuner.answer(black_box(&query)));
        }
    }
}
