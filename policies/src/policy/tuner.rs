//! A policy at work: what it remembers, and what it has decided before.

use std::num::NonZeroUsize;
use std::sync::Arc;

use dynamiccl_spec::features::CALL_WIDTH;
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Decision, Fallback, Head, Knobs, Measure, Measured, Pair, Path, Query, Tuner};

use super::Policy;
use super::belief::Belief;
use super::history::History;
use super::jobs::Jobs;
use super::notes::{Notes, Trial};
use crate::memo::{Key, Memo};
use crate::network::activation::exp;
use crate::network::{Memory, Scratch};

/// Decisions that a tuner keeps.
const MEMO: usize = 512;

/// Decides by a policy.
///
/// What it remembers is of one rank's calls, in their order. Deployed, it never refreshes its memory and takes no notes;
/// a decision is then a pure function of the policy and the query, and it allocates when it is made and never again.
#[derive(Debug, Clone)]
pub struct PolicyTuner {
    policy: Arc<Policy>,
    memory: Memory,
    /// Calls that wait for the next refresh; none where there is never one.
    history: Option<History>,
    /// What calls have taken; none where memory is never refreshed.
    notes: Option<Notes>,
    jobs: Jobs,
    memo: Memo,
    scratch: Scratch,
    call: [f32; CALL_WIDTH],
}

impl PolicyTuner {
    /// Calls between two refreshes where nothing else is said: few enough to notice a change, many enough that
    /// the LSTM costs a job next to nothing.
    pub const REFRESH: NonZeroUsize = NonZeroUsize::new(16).expect("not 0");

    /// A tuner that takes in what it has seen after every so many calls; never, where it is not said.
    pub fn new(policy: Arc<Policy>, refresh: Option<NonZeroUsize>) -> Self {
        PolicyTuner::with_memo(policy, refresh, MEMO)
    }

    /// The same with room for this many decisions, or for none.
    pub fn with_memo(policy: Arc<Policy>, refresh: Option<NonZeroUsize>, decisions: usize) -> Self {
        let network = policy.network();
        PolicyTuner {
            memory: network.memory(),
            history: refresh.map(|calls| History::new(calls.get(), network.shape().embedding)),
            notes: refresh.map(|_| Notes::default()),
            jobs: Jobs::new(network),
            memo: Memo::new(decisions),
            scratch: network.scratch(),
            call: [0.0; CALL_WIDTH],
            policy,
        }
    }

    /// The same, going by what the network remembers alone.
    pub fn without_notes(self) -> Self {
        PolicyTuner { notes: None, ..self }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What it remembers.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Decides a call. What a tuner that learns by measuring would want to know, a policy does not.
    ///
    /// It is always inlined, with all that costs time in it: a caller that has wider registers at hand has them used.
    #[inline(always)]
    pub fn answer(&mut self, query: &Query<'_>) -> Decision {
        if self.history.is_some() {
            self.take_in(query);
        }
        if let Some(settled) = query.settled() {
            return settled;
        }
        let decision = self.thought(query);
        let Some(notes) = &mut self.notes else { return decision };
        let decision = notes.weigh(query, decision);
        if decision.exploratory { decision } else { self.trial(query, &decision.knobs).unwrap_or(decision) }
    }

    /// What to try instead of these knobs, because it may be faster.
    #[inline(always)]
    fn trial(&mut self, query: &Query<'_>, knobs: &Knobs) -> Option<Decision> {
        let notes = self.notes.as_mut().filter(|notes| notes.may_try(query, knobs))?;
        let (network, guard, scratch) = (self.policy.network(), self.policy.guard(), &mut self.scratch);
        let (job, _) = self.jobs.of(network, query.encoder);
        query.encoder.call(query.call, &mut self.call);
        network.think(job, &self.call, &self.memory, scratch);
        let micros = scratch.estimates().micros(&query.call.table);
        let mask = guard.narrow(query);
        let ln_spreads = network.ln_spreads(scratch);
        let pairs = (0..PAIRS).filter(|&at| mask.allows(Head::Pair, at)).filter_map(|at| {
            let belief = Belief::new(micros.0.as_flattened()[at], ln_spreads[at])?;
            Pair::from_index(at).map(|pair| (pair, belief))
        });
        let knobs = match notes.trial(query, knobs, pairs)? {
            Trial::Again(knobs) => knobs,
            Trial::New(pair) => {
                let mut chooser = guard.chooser(query, true);
                chooser.takes(pair.index());
                let choose = |head, logits: &[f32]| match head {
                    Head::Path => Path::Nccl.id(),
                    Head::Pair => pair.index(),
                    head => chooser.choose(head, logits),
                };
                network.act(job, &self.call, &self.memory, &mask, scratch, choose).choice.knobs()?
            }
        };
        Some(Decision { exploratory: true, ..Decision::chosen(query, knobs) })
    }

    /// What the policy says, where there is something to choose.
    #[inline(always)]
    fn thought(&mut self, query: &Query<'_>) -> Decision {
        let (_, job) = self.jobs.of(self.policy.network(), query.encoder);
        let key = Key::new(query, job);
        if let Some(decision) = self.memo.get(&key) {
            return *decision;
        }
        let decision = self.work_out(query);
        self.memo.put(&key, &decision);
        decision
    }

    /// Asks the network, and the guard where the network would not do as NCCL does.
    #[inline(always)]
    fn work_out(&mut self, query: &Query<'_>) -> Decision {
        let (network, scratch) = (self.policy.network(), &mut self.scratch);
        let (job, _) = self.jobs.of(network, query.encoder);
        query.encoder.call(query.call, &mut self.call);
        let guard = self.policy.guard();
        let noted = self.notes.as_ref().is_some_and(Notes::begun);
        let mut chooser = guard.chooser(query, noted);
        let choose = |head, logits: &[f32]| chooser.choose(head, logits);
        let mask = guard.narrow(query);
        let acted = network.act(job, &self.call, &self.memory, &mask, scratch, choose);
        let own = query.own();
        let knobs = acted.choice.knobs().unwrap_or(own);
        if knobs != own && !guard.of_call(query).lets(&acted.gain) {
            return Decision::fallback(query, Fallback::Unsure);
        }
        let micros = scratch.estimates().micros(&query.call.table);
        // Deployed, nobody looks at the spread, and a job need not wait for it.
        let pair = knobs.pair.filter(|_| self.history.is_some());
        let spread = pair.map(|pair| exp(network.ln_spreads(scratch)[pair.index()]));
        Decision { micros, spread, ..Decision::chosen(query, knobs) }
    }

    /// Takes note of what became of the call before and of the one that now comes, and refreshes memory
    /// where it is time. A rank that is told nothing has nothing to remember, and decides as a deployed policy does.
    #[inline(always)]
    fn take_in(&mut self, query: &Query<'_>) {
        let (network, scratch) = (self.policy.network(), &mut self.scratch);
        let Some(history) = &mut self.history else { return };
        if history.became(query.past) {
            if history.is_told() {
                network.refresh(history.rows(), &mut self.memory, scratch);
                self.memo.clear();
            }
            history.clear();
        }
        query.encoder.call(query.call, &mut self.call);
        let (job, _) = self.jobs.of(network, query.encoder);
        let expected = network.expect(job, &self.call, scratch);
        history.call(scratch.embedding(), expected);
    }
}

impl Tuner for PolicyTuner {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn begin(&mut self) {
        self.policy.network().forget(&mut self.memory);
        self.memo.clear();
        if let Some(history) = &mut self.history {
            history.begin();
        }
        if let Some(notes) = &mut self.notes {
            notes.clear();
        }
    }

    #[inline]
    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        self.answer(query)
    }

    fn learn(&mut self, query: &Query<'_>, measured: &Measured) {
        if let Some(notes) = &mut self.notes {
            let before = notes.begun();
            notes.learn(query, measured);
            if notes.begun() != before {
                self.memo.clear();
            }
        }
    }
}
