//! What a gradient costs:
//! `cargo test --release -p dynamiccl-agent --lib speed -- --ignored --nocapture --test-threads 1`.

use burn::tensor::Device as Backend;

use super::made::{Made, only};
use crate::config::NetworkConfig;
use crate::learn::recall::Recalled;
use crate::learn::sequences::Inputs;
use crate::learn::work::Work;
use crate::learn::{Device, Learner};

const ROUNDS: usize = 100;

/// ns that this thread has had a core: on a machine with other work the clock on the wall says little.
fn on_core() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("ns on a core")
}

/// Mean µs per row.
fn mean(rows: usize, mut of: impl FnMut()) -> f64 {
    of();
    let begin = on_core();
    (0..ROUNDS).for_each(|_| of());
    (on_core() - begin) / 1e3 / (rows * ROUNDS) as f64
}

#[test]
#[ignore = "prints figures"]
fn microseconds_per_row() {
    for sequences in [16, 4] {
        println!("{sequences} sequences of 64 calls");
        figures(sequences);
    }
}

fn figures(sequences: usize) {
    let mut made = Made::new(NetworkConfig::default(), sequences, 64, 1);
    let rows = made.rollout.rows();
    made.rollout.truths.truncate(rows / 8);
    let (all, by) = (made.all(), only("all"));
    let layout = made.params.layout().clone();
    let memory = layout.shape.memory;
    let learner = Learner::new(layout.clone(), Device::Flex).unwrap();
    let graph = Learner::on_graph(layout, Device::Flex).unwrap();
    made.with_part(&all, &all, |part| {
        let work = || Work::new(&made.params, part, &by, Backend::flex().autodiff());
        let inputs = Inputs::new(&part.sequences(), memory);
        let mut into = vec![0.0; made.params.values().len()];
        let line = |name: &str, micros: f64| println!("{name:<34} {micros:6.2} µs/row");
        line("rows onto the host", mean(rows, || drop(work())));
        line("embeddings and LSTM", mean(rows, || drop(Recalled::new(&made.params, &inputs))));
        let there_and_back = || {
            let recalled = Recalled::new(&made.params, &inputs);
            let by = recalled.zeros();
            recalled.backward(by, &mut into);
        };
        line("the same, there and back", mean(rows, there_and_back));
        line("all", mean(rows, || drop(learner.gradient(&made.params, part, &by))));
        line(
            "all, the LSTM differentiated by burn",
            mean(rows, || drop(graph.gradient(&made.params, part, &by))),
        );
    });
}
