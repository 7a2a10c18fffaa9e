//! What a rollout leaves behind: for each environment one sequence of calls, everything that the learner
//! needs to go through it again.
//!
//! Rows lie environment by environment, call after call: row `environment * steps + call`. Nothing here
//! knows where a number came from.

use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH};
use dynamiccl_spec::ids::PAIRS;

/// Experience of one update.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rollout {
    /// Environments, and so sequences.
    pub environments: usize,
    /// Calls of each sequence.
    pub steps: usize,
    /// Numbers that only the critic sees of each call.
    pub privileged_width: usize,
    /// Contexts as they were shown: `steps + 1` of each environment, the first of them that of the call before
    /// the sequence.
    pub contexts: Vec<f32>,
    /// History rows: seen together with a call, about the one before it.
    pub histories: Vec<f32>,
    /// What only the critic sees.
    pub privileged: Vec<f32>,
    /// What could be chosen.
    pub masks: Vec<[u32; HEADS]>,
    /// Whether there was anything to decide.
    pub decides: Vec<bool>,
    /// What was chosen.
    pub choices: Vec<[u8; HEADS]>,
    /// Whether that was drawn from the policy's probabilities. Where it was the most probable instead, or there was
    /// nothing to decide, there is no policy loss.
    pub drawn: Vec<bool>,
    /// ln of the probability with which it was.
    pub ln_probabilities: Vec<f32>,
    /// Whether an episode begins with this call. Its memory is then the one that every job begins with, and
    /// its history row means nothing.
    pub begins: Vec<bool>,
    /// Which state of the LSTM the decision saw.
    pub sources: Vec<Source>,
    /// Rewards of the calls.
    pub rewards: Vec<f32>,
    /// Whether the job ended with this call.
    pub terminated: Vec<bool>,
    /// Whether the episode was cut short after this call.
    pub truncated: Vec<bool>,
    /// ln(measured time ÷ NCCL's prediction for the pair that ran); NaN where there is none.
    pub ln_times: Vec<f32>,
    /// ln(NCCL's own time ÷ the time of what ran), both true times; NaN where there is none.
    pub gains: Vec<f32>,
    /// The state of the LSTM before the first call of each sequence, and what it held for decisions: three
    /// rows of the memory's width for each environment (hidden, cell, held).
    pub states: Vec<f32>,
    /// The state that each decision saw, by row: what the critic is shown of the memory.
    pub seen: Vec<f32>,
    /// What was seen after a sequence, and after episodes that were cut short: for the value of what would
    /// have come.
    pub afters: Vec<After>,
    /// What every choice of some calls would have been worth, by row.
    pub truths: Vec<Truth>,
}

/// What was seen after a call.
#[derive(Debug, Clone, PartialEq)]
pub struct After {
    /// The row of the call.
    pub row: usize,
    /// The next context.
    pub context: Box<[f32]>,
    /// What only the critic sees.
    pub privileged: Box<[f32]>,
}

/// Which state of the LSTM a decision saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// What was held when the sequence began.
    #[default]
    Held,
    /// The one with which every job begins.
    Initial,
    /// The one after the LSTM has seen the history row of this call of the sequence.
    After(u16),
}

/// What every choice of a call would have been worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// The row of the call.
    pub row: usize,
    /// ln(NCCL's own true time ÷ the choice's) for pair × channels × chunk, on NCCL's path with the threads
    /// of the job; NaN where it cannot run.
    pub gains: Box<[f32]>,
    /// The same for the synthesised schedule; NaN where none may be chosen.
    pub schedule: f32,
    /// ln(NCCL's own true time ÷ its predicted time of each pair); NaN where it has none.
    pub own: [f32; PAIRS],
    /// Pairs that are no news to the decision, as bits: those that its job is known to have tried for such a call,
    /// or all where decisions never see the history.
    pub tried: u32,
}

impl Rollout {
    /// Puts the sequence of one more environment behind the others.
    pub(super) fn append(&mut self, mut part: Rollout) {
        let rows = self.rewards.len();
        self.environments += 1;
        self.privileged_width = part.privileged.len() / part.rewards.len().max(1);
        let Rollout { contexts, histories, privileged, masks, decides, choices, drawn, .. } = &mut part;
        self.contexts.append(contexts);
        self.histories.append(histories);
        self.privileged.append(privileged);
        self.masks.append(masks);
        self.decides.append(decides);
        self.choices.append(choices);
        self.drawn.append(drawn);
        let Rollout { ln_probabilities, begins, sources, rewards, terminated, truncated, .. } = &mut part;
        self.ln_probabilities.append(ln_probabilities);
        self.begins.append(begins);
        self.sources.append(sources);
        self.rewards.append(rewards);
        self.terminated.append(terminated);
        self.truncated.append(truncated);
        let Rollout { ln_times, gains, states, seen, afters, truths, .. } = part;
        self.ln_times.extend(ln_times);
        self.gains.extend(gains);
        self.states.extend(states);
        self.seen.extend(seen);
        self.afters.extend(afters.into_iter().map(|after| After { row: rows + after.row, ..after }));
        self.truths.extend(truths.into_iter().map(|truth| Truth { row: rows + truth.row, ..truth }));
    }

    /// Rows in all.
    pub fn rows(&self) -> usize {
        self.environments * self.steps
    }

    /// The contexts of a sequence: that of the call before it, then one for each call.
    pub fn contexts_of(&self, environment: usize) -> &[f32] {
        let width = (self.steps + 1) * CONTEXT_WIDTH;
        &self.contexts[environment * width..][..width]
    }

    /// The history rows of a sequence.
    pub fn histories_of(&self, environment: usize) -> &[f32] {
        let width = self.steps * HISTORY_WIDTH;
        &self.histories[environment * width..][..width]
    }
}
