//! What a call costs. The bars are `scripts/bench/plugin_latency.sh`'s, on a machine that does nothing else;
//! here only what cannot be noise.

use crate::host::{PLAIN, run};

#[test]
fn calls_that_came_before_cost_little_and_keep_nothing() {
    let run = run(&PLAIN, &["latency", "64", "16", "20000"], &[]);
    assert!(run.succeeded, "{}", run.said);
    println!("{}", run.said);
    let words: Vec<&str> = run.said.split_whitespace().collect();
    let number = |name: &str| {
        let at =
            words.iter().position(|word| *word == name).unwrap_or_else(|| panic!("no {name}: {}", run.said));
        words[at + 1].parse::<i64>().expect("a number")
    };
    assert_eq!(number("allocations"), 0, "{}", run.said);
    assert!(number("grown_kib") < 2048, "{}", run.said);
    assert!(number("call_p50_ns") < 2000, "{}", run.said);
}
