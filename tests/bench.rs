//! `bench`: its document. How fast the machine under a test is says nothing about the program.

use crate::util::{Dir, fields, number};

#[test]
fn every_figure_is_there_and_above_zero() {
    let document = Dir::new().run("bench --json --seed 3").json();
    let figures = [
        "sim_calls_per_s",
        "sim_call_ns",
        "cost_table_ns",
        "decide_ns",
        "realise_ns",
        "model_ns",
        "world_draw_us",
        "simulator_us",
        "env_steps_per_s",
        "env_two_cores",
        "decide_memo_ns",
        "decide_full_ns",
        "lstm_step_ns",
        "calls",
        "places",
    ];
    let mut expected: Vec<_> = figures.into_iter().chain(["schema", "command", "seed"]).collect();
    expected.sort_unstable();
    assert_eq!(fields(&document), expected);
    assert_eq!((&document["command"], &document["seed"]), (&"bench".into(), &3.into()));
    for figure in figures {
        assert!(number(&document[figure]) > 0.0, "{figure}");
    }
}

#[test]
fn the_text_names_the_parts() {
    insta::assert_snapshot!(Dir::new().run("bench --progress never").shape(), @r"
    # dynamiccl 0.1.0 bench, seed N
    # one core, medians over N calls on N communicators
    #
    # what time unit
    cost table N ns
    decision N ns
    environment step N ns
    knobs realised N ns
    policy's LSTM step N ns
    policy's decision, a new one N ns
    policy's decision, made before N ns
    simulated call N ns
    simulator made N us
    true time N ns
    world drawn N us
    Summary N million simulated calls and N million environment steps per second on one core; N times as many steps on two
    ");
}
