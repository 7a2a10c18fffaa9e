//! Who decides a call that was not decided before: a policy, or the walk of the tests.

use std::sync::{Arc, Mutex};

use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_spec::{Decision, Query};

use super::walk::Walk;
use crate::fault;

/// Who decides.
#[derive(Debug)]
pub enum Decider {
    /// A policy. A decision is a pure function of the policy and the query.
    Policy(Arc<Policy>, Box<Mutex<PolicyTuner>>),
    /// All settings in turn.
    Walk(Walk),
}

impl Decider {
    /// A policy, or the walk without one.
    pub fn new(policy: Option<Arc<Policy>>) -> Self {
        match policy {
            Some(policy) => Decider::Policy(Arc::clone(&policy), Box::new(Mutex::new(tuner(policy)))),
            None => Decider::Walk(Walk::default()),
        }
    }

    /// Whether the same question always has the same answer.
    #[inline]
    pub fn is_pure(&self) -> bool {
        matches!(self, Decider::Policy(..))
    }

    /// Decides. Threads of one communicator wait for each other here, which happens once for every new call.
    pub fn decide(&self, query: &Query<'_>) -> Decision {
        match self {
            Decider::Walk(walk) => walk.decide(query),
            Decider::Policy(policy, shared) => {
                let mut locked = shared.lock().unwrap_or_else(|poisoned| {
                    // What a panic has left behind is nothing to decide with.
                    let mut locked = poisoned.into_inner();
                    *locked = tuner(Arc::clone(policy));
                    shared.clear_poison();
                    locked
                });
                fault::point("decide");
                locked.answer(query)
            }
        }
    }
}

/// Never refreshes what it remembers, and leaves it to us to keep decisions.
fn tuner(policy: Arc<Policy>) -> PolicyTuner {
    PolicyTuner::with_memo(policy, None, 0)
}
