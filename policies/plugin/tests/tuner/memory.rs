//! The facts once more, watched for memory that is misused or never given back.

use std::process::Command;

use crate::host::{ASAN, VALGRIND, command, finished, run};

#[test]
fn every_fact_holds_under_address_sanitizer() {
    let run = run(&ASAN, &["facts"], &[("ASAN_OPTIONS", "detect_leaks=1:halt_on_error=1")]);
    assert!(run.succeeded && run.said.contains("PASS fact 15\n"), "{}", run.said);
}

/// Takes half a minute, so only where it is asked for.
#[test]
fn every_fact_holds_under_valgrind() {
    if std::env::var_os("DYNAMICCL_VALGRIND").is_none() {
        println!("left out: set DYNAMICCL_VALGRIND=1 to run it");
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("left out: valgrind is not installed");
        return;
    }
    let watched = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full"];
    let run = finished(command(VALGRIND.path(), &watched, &["facts"], &[]));
    assert!(run.succeeded && run.said.contains("PASS fact 15\n"), "{}", run.said);
}
