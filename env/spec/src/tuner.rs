//! What everything that answers "which knobs for this call" has in common.
//!
//! A tuner is asked before a call, in words that are the same on every rank, and answers with knobs,
//! the reason for them, and what it believes each pair would take. Whoever asks (the evaluation over
//! the simulator, live NCCL, the plugin inside a job) knows nothing of how the answer came about, so
//! that all of them are judged on the same calls by the same yardstick.

use crate::features::{CallContext, Encoder, PastCall};
use crate::gates::{Gate, Gated};
use crate::knobs::Knobs;
use crate::table::CostTable;
use crate::words::word_enum;

/// A call that wants knobs. Whatever it holds, every rank of the communicator holds the same.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The communicator: its number among those of this job.
    pub communicator: u32,
    /// Its ranks.
    pub ranks: u32,
    /// Its nodes.
    pub nodes: u32,
    /// What is known of the job on this communicator, encoded once.
    pub encoder: &'a Encoder,
    /// The call, with NCCL's predicted times.
    pub call: &'a CallContext,
    /// What may be chosen, NCCL's own pick among it, and the gates that took something away.
    pub gated: &'a Gated,
    /// The call before, and what was measured of it where all ranks have been told.
    pub past: &'a PastCall,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The knobs; always ones that the query's mask allows.
    pub knobs: Knobs,
    /// Why these.
    pub reason: Reason,
    /// µs that each pair is believed to take, with the tuner's knobs for it; NCCL's own prediction where the
    /// tuner has no better or leaves the call to NCCL. The chosen pair need not be the smallest: who hands the
    /// choice to NCCL makes it win.
    pub micros: CostTable,
    /// One spread of ln(time) that the tuner believes its estimate of the chosen entry to be wrong by; none
    /// where it has no estimate.
    pub spread: Option<f32>,
    /// Whether the knobs were tried to learn about them, and not because they are believed best.
    pub exploratory: bool,
}

/// Why a call got its knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The tuner chose them.
    Policy,
    /// A gate left no choice.
    Gate(Gate),
    /// The tuner left the call to NCCL.
    Fallback(Fallback),
}

word_enum! {
    /// Why a tuner left a call to NCCL.
    Fallback, "fallback", {
        /// NCCL tunes nothing here.
        Untuned = 0 => "untuned",
        /// What it would gain is within what its estimate may be wrong by.
        Unsure = 1 => "unsure",
        /// Its table has no entry for the call.
        NoEntry = 2 => "no_entry",
        /// It learns from measurements and has none yet.
        Unmeasured = 3 => "unmeasured",
    }
}

/// What came of a call, as every rank was told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The knobs that ran.
    pub knobs: Knobs,
    /// µs that it took.
    pub micros: f64,
}

/// Runs the call that is asked about with other knobs and says what that took, in µs; nothing where the
/// knobs cannot run, or where nobody measures. What it costs to ask is the asker's business.
pub type Measure<'a> = dyn FnMut(&Knobs) -> Option<f64> + 'a;

/// Answers "which knobs for this call".
pub trait Tuner: Send {
    /// Its name in tables and files.
    fn name(&self) -> &str;

    /// A job begins, or its topology has changed: what was measured before no longer counts.
    fn begin(&mut self) {}

    /// The knobs of a call.
    fn decide(&mut self, query: &Query<'_>, measure: &mut Measure<'_>) -> Decision;

    /// What came of the call that was asked about last; only called where every rank knows it.
    fn learn(&mut self, query: &Query<'_>, measured: &Measured) {
        let _ = (query, measured);
    }
}

impl Decision {
    /// The tuner's own choice.
    pub fn chosen(query: &Query<'_>, knobs: Knobs) -> Self {
        let (spread, exploratory) = (None, false);
        Decision { knobs, reason: Reason::Policy, micros: query.call.table, spread, exploratory }
    }

    /// NCCL's own choice, because the tuner left the call to it.
    pub fn fallback(query: &Query<'_>, why: Fallback) -> Self {
        Decision { reason: Reason::Fallback(why), ..Decision::chosen(query, query.own()) }
    }
}

impl Query<'_> {
    /// What happens without a tuner.
    pub fn own(&self) -> Knobs {
        self.gated.pass(&Knobs { pair: self.gated.own, ..Knobs::OWN }).0
    }

    /// The answer where there is nothing to choose; none where there is.
    pub fn settled(&self) -> Option<Decision> {
        let decided = |reason| Decision { reason, ..Decision::chosen(self, self.own()) };
        if self.gated.own.is_none() {
            return Some(decided(Reason::Fallback(Fallback::Untuned)));
        }
        let whole = [Gate::InNetwork, Gate::ForeignLibrary];
        if let Some(gate) = whole.into_iter().find(|&gate| self.gated.fired.contains(gate)) {
            return Some(decided(Reason::Gate(gate)));
        }
        let why = self.gated.fired.iter().last().unwrap_or(Gate::Unavailable);
        (!self.gated.mask.decides()).then(|| decided(Reason::Gate(why)))
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Policy => f.write_str("policy"),
            Reason::Gate(gate) => write!(f, "gate {gate}"),
            Reason::Fallback(why) => write!(f, "fallback {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Algorithm, CclLibrary, ChannelChoice, Collective, Gates, Head, JobContext, Overrides, Pair, Path,
        Protocol, Topology,
    };

    const RING: Pair = Pair::new(Algorithm::Ring, Protocol::LL);

    fn asked(change: impl Fn(&mut Topology), available: bool, check: impl Fn(&Query<'_>)) {
        let mut topology = Topology::default();
        change(&mut topology);
        let mut table = CostTable::default();
        if available {
            table.set(RING, 20.0);
            table.set(Pair::new(Algorithm::Tree, Protocol::Simple), 30.0);
        }
        let collective = Collective::AllReduce;
        let gated = Gates::new(&topology, false, Overrides::default()).narrow(collective, &table);
        let call = CallContext {
            collective,
            bytes: 1 << 20,
            pipelined: 1,
            table,
            pairs: gated.mask.pairs(),
            synthesised: None,
        };
        let (encoder, past) = (Encoder::new(&JobContext::default()), PastCall::default());
        let (communicator, ranks, nodes) = (0, 16, 2);
        check(&Query {
            communicator,
            ranks,
            nodes,
            encoder: &encoder,
            call: &call,
            gated: &gated,
            past: &past,
        });
    }

    #[test]
    fn a_free_call_is_not_settled_and_its_own_knobs_are_legal() {
        asked(
            |_| {},
            true,
            |query| {
                assert_eq!(query.settled(), None);
                let own = query.own();
                assert_eq!((own.pair, own.channels, own.path), (Some(RING), ChannelChoice::OWN, Path::Nccl));
                assert!(query.gated.mask.allows(Head::Pair, RING.index()));
                let unsure = Decision::fallback(query, Fallback::Unsure);
                assert_eq!((unsure.knobs, unsure.reason.to_string()), (own, "fallback unsure".to_owned()));
            },
        );
    }

    #[test]
    fn gates_settle_a_call() {
        asked(
            |t| t.in_network = Some(true),
            true,
            |query| {
                let settled = query.settled().unwrap();
                assert_eq!(settled.reason, Reason::Gate(Gate::InNetwork));
                assert_eq!(settled.knobs.path, Path::InNetwork);
            },
        );
        asked(
            |t| t.library = CclLibrary::Gloo,
            true,
            |query| {
                assert_eq!(query.settled().unwrap().reason, Reason::Gate(Gate::ForeignLibrary));
            },
        );
    }

    #[test]
    fn what_nccl_does_not_tune_is_settled() {
        asked(
            |_| {},
            false,
            |query| {
                assert_eq!(query.settled().unwrap().reason, Reason::Fallback(Fallback::Untuned));
            },
        );
    }
}
