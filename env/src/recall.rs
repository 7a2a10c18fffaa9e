//! A recorded job as a tuner would have been asked about it, call by call, with what was measured.
//!
//! Nothing is simulated here: what was called and how long it took is the recording's, what NCCL says is
//! the cluster's. A policy that is shown these questions remembers the machine on which they were recorded.

use dynamiccl_spec::{Choice, Knobs, Pair, Query};

use crate::asking::{Asked, Asking};
use crate::job::{Job, ReplayError, Source, Traced};
use crate::memory::{Finished, Memory};
use crate::nccl::Realised;
use crate::trace::{Trace, TracedCall};
use crate::trigger::{Key, Ran};

/// What was shown of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recalled {
    /// Calls.
    pub calls: usize,
    /// Calls of which the time was known.
    pub measured: usize,
}

/// Shows every question of a recorded job, on the cluster that it names or on this one. The last call is
/// asked about once more at the end, so that whoever listens hears what became of it.
pub fn recall(
    trace: &Trace,
    cluster: Option<&str>,
    each: &mut dyn FnMut(&Query<'_>),
) -> Result<Recalled, ReplayError> {
    let job = Job::replay(trace, cluster)?;
    let Source::Trace(traced) = &job.source else { return Ok(Recalled::default()) };
    let mut recall = Recall::new(&job, traced)?;
    for call in &trace.calls {
        recall.ask(call, each);
        recall.remember(call);
    }
    if let Some(last) = trace.calls.last() {
        recall.ask(last, each);
    }
    Ok(recall.recalled)
}

struct Recall {
    lines: Vec<Asking>,
    memory: Memory,
    recalled: Recalled,
}

impl Recall {
    fn new(job: &Job, traced: &Traced) -> Result<Self, ReplayError> {
        let lines = traced.placements.iter().map(|place| Ok(Asking::in_job(job, place).map_err(Box::new)?));
        let lines: Vec<Asking> = lines.collect::<Result<_, ReplayError>>()?;
        let memory = Memory::new(lines.len(), Some(1));
        Ok(Recall { lines, memory, recalled: Recalled::default() })
    }

    fn ask(&mut self, call: &TracedCall, each: &mut dyn FnMut(&Query<'_>)) {
        self.memory.asked(call.comm as usize, call.collective, self.recalled.calls as u32);
        let asking = &mut self.lines[call.comm as usize];
        asking.tell_role(call.role);
        let asked = asking.call(call.collective, call.bytes, call.pipelined);
        each(&asking.query_after(call.comm, &asked, &self.memory.past));
    }

    fn remember(&mut self, call: &TracedCall) {
        let asking = &self.lines[call.comm as usize];
        let asked = asking.call(call.collective, call.bytes, call.pipelined);
        let ran = ran(asking, &asked, call);
        let predicted = ran.and_then(|(_, realised)| asked.call.table.get(realised.pair));
        self.memory.remember(&Finished {
            key: Key::new(call.comm as u16, call.collective, call.bytes),
            choice: ran.map(|(knobs, realised)| Choice::of(&knobs, realised.pair)),
            launched: ran.map_or(0, |(_, realised)| call.channels.unwrap_or(realised.channels)),
            ran: ran.map_or(Ran::default(), |(_, realised)| Ran::of(&realised)),
            measured: call.duration_us,
            predicted,
        });
        self.recalled.calls += 1;
        self.recalled.measured += usize::from(self.memory.past.feedback.is_some());
    }
}

/// What ran: the recorded pair where NCCL has it, its own choice otherwise. A recording tells the channels
/// that ran and not those that were asked for, so none are taken to have been.
fn ran(asking: &Asking, asked: &Asked, call: &TracedCall) -> Option<(Knobs, Realised)> {
    let recorded =
        call.algorithm.zip(call.protocol).map(|(algorithm, protocol)| Pair::new(algorithm, protocol));
    let pair = recorded.filter(|&pair| asked.call.table.get(pair).is_some());
    let knobs = Knobs { pair: pair.or(asked.gated.own), ..Knobs::OWN };
    Some((knobs, asking.realise(asked, &knobs)?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dynamiccl_spec::Role;
    use dynamiccl_spec::features::PastCall;

    use super::*;

    const TRACE: &str = r#"{"schema":"dynamiccl-trace-1","cluster":"dgx_h100","nodes":2,"communicators":[{"id":"tp","ranks":8,"nodes":1,"role":"intra_stage"},{"id":"dp","ranks":16,"nodes":2}]}
{"comm":"tp","coll":"allreduce","bytes":33554432,"us":310.25,"algo":"nvls","proto":"simple","nchannels":16}
{"comm":"dp","coll":"sendrecv","bytes":4096,"us":20}
{"comm":"dp","coll":"allreduce","bytes":26214400,"us":1204.75}
{"comm":"dp","coll":"allreduce","bytes":26214400}
"#;

    /// What was asked: communicator, ranks, and the call before.
    type Questions = Vec<(u32, u32, PastCall)>;

    fn asked(trace: &str, cluster: Option<&str>) -> Result<(Recalled, Questions), ReplayError> {
        let trace = Trace::read_from(trace.as_bytes(), Path::new("x")).unwrap();
        let mut asked = Questions::new();
        let recalled =
            recall(&trace, cluster, &mut |query| asked.push((query.communicator, query.ranks, *query.past)))?;
        Ok((recalled, asked))
    }

    #[test]
    fn every_call_is_asked_about_with_what_became_of_the_one_before() {
        let (recalled, asked) = asked(TRACE, None).unwrap();
        assert_eq!(recalled, Recalled { calls: 4, measured: 2 });
        let communicators: Vec<_> = asked.iter().map(|&(comm, ranks, _)| (comm, ranks)).collect();
        assert_eq!(communicators, [(0, 8), (1, 16), (1, 16), (1, 16), (1, 16)]);
        let past: Vec<&PastCall> = asked.iter().map(|(_, _, past)| past).collect();
        assert_eq!(*past[0], PastCall::default());
        let (choice, feedback) = (past[1].choice.unwrap(), past[1].feedback.unwrap());
        assert_eq!(choice.knobs().unwrap().pair.unwrap().to_string(), "nvls/simple");
        assert_eq!((past[1].launched, past[1].since_feedback), (16, Some(0)));
        assert!(feedback.ratio.is_finite() && feedback.ratio != 0.0);
        // Nothing is chosen in a send, and nothing told of its time.
        assert_eq!((past[2].choice, past[2].feedback, past[2].since_feedback), (None, None, Some(1)));
        assert!(past[3].choice.is_some() && past[3].feedback.is_some());
        assert_eq!((past[3].since_kind, past[4].feedback, past[4].since_feedback), (Some(1), None, Some(1)));
    }

    #[test]
    fn roles_are_told_as_recorded() {
        let trace = Trace::read_from(TRACE.as_bytes(), Path::new("x")).unwrap();
        let mut roles = Vec::new();
        let slot = dynamiccl_spec::features::catalogue::slot("pipeline_role").unwrap();
        recall(&trace, None, &mut |query| {
            let mut context = [0.0; dynamiccl_spec::features::CONTEXT_WIDTH];
            query.encoder.context(query.call, &mut context);
            roles.push(context[slot.clone()].iter().position(|&x| x == 1.0).unwrap());
        })
        .unwrap();
        assert_eq!(roles[..2], [Role::IntraStage.id(), Role::Unknown.id()]);
    }

    #[test]
    fn a_recording_without_a_machine_needs_one() {
        let nowhere = TRACE.replace("\"cluster\":\"dgx_h100\",", "");
        assert!(matches!(asked(&nowhere, None), Err(ReplayError::NoCluster)));
        assert_eq!(asked(&nowhere, Some("dgx_h100")).unwrap(), asked(TRACE, None).unwrap());
    }
}
