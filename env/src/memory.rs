//! What is remembered of the call before: the part of the state that depends on what was decided.
//!
//! Episodes of training and of evaluation tell a policy about its last call in the same words, so the words
//! are put together here once. It knows no cluster and no reward.

use dynamiccl_spec::features::{Feedback, PastCall};
use dynamiccl_spec::{Choice, Collective};

use crate::trigger::{Key, Ran, Trigger, TriggerConfig};

/// The memory of one job.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    trigger: Trigger,
    /// Calls between two times that feedback arrives; none where it never does.
    every: Option<u32>,
    /// Tuned calls since one was measured.
    unmeasured: u32,
    since_feedback: Option<u32>,
    /// The call in which each collective came last, on each communicator.
    kinds: Vec<[Option<u32>; Collective::ALL.len()]>,
    /// The call before, as a policy is told of it.
    pub past: PastCall,
}

/// A call that has run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    /// Its kind.
    pub key: Key,
    /// What was chosen; none where NCCL tunes nothing.
    pub choice: Option<Choice>,
    /// Channels that ran.
    pub launched: u32,
    /// What ran.
    pub ran: Ran,
    /// µs that it took; none where nobody knows.
    pub measured: Option<f64>,
    /// µs that NCCL predicted; none where NCCL tunes nothing.
    pub predicted: Option<f32>,
}

impl Memory {
    /// An empty memory of a job with this many communicators.
    pub fn new(communicators: usize, every: Option<u32>) -> Self {
        Memory {
            trigger: Trigger::new(TriggerConfig::default(), communicators),
            every,
            unmeasured: u32::MAX,
            since_feedback: None,
            kinds: vec![[None; Collective::ALL.len()]; communicators],
            past: PastCall::default(),
        }
    }

    /// Forgets everything, for the next job; nothing is allocated or freed.
    pub fn clear(&mut self) {
        self.trigger.clear();
        self.kinds.iter_mut().for_each(|kinds| kinds.fill(None));
        (self.unmeasured, self.since_feedback, self.past) = (u32::MAX, None, PastCall::default());
    }

    /// Takes in that call number `now` of the job is asked about: how long ago the last of its kind was.
    pub fn asked(&mut self, communicator: usize, collective: Collective, now: u32) {
        let before = self.kinds[communicator][collective.id()].replace(now);
        self.past.since_kind = before.map(|before| now - before);
    }

    /// Takes in a call; whether the trigger fired.
    pub fn remember(&mut self, finished: &Finished) -> bool {
        let tuned = finished.choice.is_some();
        self.unmeasured = self.unmeasured.saturating_add(u32::from(tuned));
        let arrives = self.every.is_some_and(|every| self.unmeasured >= every);
        let times = finished.measured.zip(finished.predicted).filter(|_| arrives && tuned);
        let signals = times.map(|(measured, predicted)| {
            self.trigger.observe(finished.key, finished.ran, measured, f64::from(predicted))
        });
        self.since_feedback = match signals {
            Some(_) => {
                self.unmeasured = 0;
                Some(0)
            }
            None => self.since_feedback.map(|calls| calls.saturating_add(1)),
        };
        self.past = PastCall {
            choice: finished.choice,
            launched: finished.launched,
            since_kind: None,
            since_feedback: self.since_feedback,
            feedback: signals.map(Feedback::from),
        };
        signals.is_some_and(|signals| signals.fired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_by_communicator_until_the_next_job() {
        let mut memory = Memory::new(2, None);
        let mut since = |communicator, collective, now| {
            memory.asked(communicator, collective, now);
            memory.past.since_kind
        };
        assert_eq!(since(0, Collective::AllReduce, 0), None);
        assert_eq!(since(1, Collective::AllReduce, 1), None);
        assert_eq!(since(0, Collective::Broadcast, 2), None);
        assert_eq!(since(0, Collective::AllReduce, 3), Some(3));
        assert_eq!(since(1, Collective::AllReduce, 4), Some(3));
        memory.clear();
        memory.asked(0, Collective::AllReduce, 0);
        assert_eq!(memory.past, PastCall::default());
    }
}
