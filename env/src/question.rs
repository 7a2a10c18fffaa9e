//! A tuner's question as a value of its own, so that the asker can go on while the tuner thinks.

use std::sync::Arc;

use dynamiccl_spec::features::{CallContext, Encoder, PastCall};
use dynamiccl_spec::{Gated, Query};

/// A call that wants knobs.
#[derive(Debug, Clone)]
pub struct Question {
    /// The communicator.
    pub communicator: u32,
    /// Its ranks.
    pub ranks: u32,
    /// Its nodes.
    pub nodes: u32,
    /// What is known of the job.
    pub encoder: Arc<Encoder>,
    /// The call.
    pub call: CallContext,
    /// What may be chosen.
    pub gated: Gated,
    /// The call before.
    pub past: PastCall,
}

impl Question {
    /// Whether NCCL tunes the call.
    pub fn is_tuned(&self) -> bool {
        self.gated.own.is_some()
    }

    /// The same in a tuner's words.
    pub fn query(&self) -> Query<'_> {
        let Question { communicator, ranks, nodes, ref encoder, ref call, ref gated, ref past } = *self;
        Query { communicator, ranks, nodes, encoder, call, gated, past }
    }
}
