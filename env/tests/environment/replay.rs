//! Recorded jobs as episodes.

use std::path::Path;
use std::sync::Arc;

use dynamiccl_env::gym::{Env, Observation, RandomActor};
use dynamiccl_env::job::Job;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::trace::Trace;

use crate::scene::calm;

fn trace(name: &str) -> Trace {
    let file = format!("{}/tests/data/traces/{name}", env!("CARGO_MANIFEST_DIR"));
    Trace::read(Path::new(&file)).unwrap()
}

#[test]
fn a_trace_replays_call_by_call_and_then_the_job_is_done() {
    for (name, cluster) in [("job.jsonl", None), ("inspector.jsonl", Some("dgx_h100"))] {
        let trace = trace(name);
        let job = Job::replay(&trace, cluster).unwrap();
        let mut env = SimEnv::of_job(job, &calm(), Arc::new(ConstantsFile::full()));
        assert_eq!(env.spaces().id, "trace-v1");
        let mut observation = Observation::new(env.spaces());
        env.reset(Some(1), &mut observation).unwrap();
        let mut actor = RandomActor::new(1);
        for (at, call) in trace.calls.iter().enumerate() {
            let step = env.step(&actor.act(&observation), &mut observation).unwrap();
            let report = step.info.last.unwrap();
            assert_eq!((report.collective, report.bytes), (call.collective, call.bytes), "{name} {at}");
            assert_eq!(step.terminated, at + 1 == trace.calls.len());
        }
    }
}

#[test]
fn a_trace_that_does_not_fit_is_refused_with_the_remedy() {
    let error = Job::replay(&trace("job.jsonl"), Some("tier4")).unwrap_err().to_string();
    assert!(error.contains("do not fit cluster tier4"), "{error}");
    let mut nowhere = trace("job.jsonl");
    nowhere.header.cluster = None;
    let error = Job::replay(&nowhere, None).unwrap_err().to_string();
    assert!(error.contains("--cluster"), "{error}");
}
