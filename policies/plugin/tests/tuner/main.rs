//! The built library as NCCL meets it: a plain C host, compiled here, opens it and drives every version of the
//! tuner interface.

mod digests;
mod documented;
mod faults;
mod host;
mod latency;
mod logged;
mod memory;
mod symbols;

/// The facts that a plugin must get right, in one process, in every version.
#[test]
fn every_fact_holds() {
    let run = host::run(&host::PLAIN, &["facts"], &[]);
    assert!(run.succeeded, "{}", run.said);
    for fact in 1..=15 {
        assert!(run.said.contains(&format!("PASS fact {fact}\n")), "{}", run.said);
    }
    assert!(run.said.contains("PASS calls that came before allocate nothing"), "{}", run.said);
}
