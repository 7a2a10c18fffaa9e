//! Prints the fingerprint of many decisions of a made-up policy.
//!
//! `scripts/bench/bit_exact.sh` runs it in builds for different CPUs and compares.

use std::process::ExitCode;

use dynamiccl_policies::probe::digest;

fn main() -> ExitCode {
    let decisions = match std::env::args().nth(1).map(|count| count.parse()) {
        None => 1_000_000,
        Some(Ok(decisions)) => decisions,
        Some(Err(_)) => {
            eprintln!("decision_digest [DECISIONS]: not a number of decisions");
            return ExitCode::from(2);
        }
    };
    let digest = digest(1, decisions);
    println!(
        "{} decisions, {} of them the policy's, {} different knobs, digest {:016x}",
        digest.decisions, digest.chosen, digest.distinct, digest.value
    );
    ExitCode::SUCCESS
}
