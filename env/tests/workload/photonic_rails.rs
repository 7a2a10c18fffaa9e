//! The job of "Photonic Rails in ML Datacenters", §3.1: Llama3-8B, TP 4, FSDP 2, PP 2 or 3, micro-batches
//! of 2. The paper does not give the sequence; 4096 is what makes a transfer 64 MiB.

use dynamiccl_env::workload::{Group, Layout, ModelShape, Phase, Planned, Recipe};
use dynamiccl_spec::Collective::{AllGather, AllReduce, ReduceScatter, SendRecv};

use crate::timeline::{Event, Timeline, timeline};
use crate::{A100, program, volumes};

const MIB: f64 = (1 << 20) as f64;

fn job(pp: u32, micro_batches: u32) -> Recipe {
    let mut model = ModelShape::preset("llama3_8b").unwrap();
    model.sequence = 4096;
    let layout = Layout { dp: 2, tp: 4, pp, fsdp: true, ..Layout::default() };
    Recipe { micro_batches, micro_batch_size: 2, ..Recipe::new(model, layout) }
}

/// Roughly Perlmutter: NVLink inside a node, one Slingshot port per GPU between nodes.
fn perlmutter(call: &Planned) -> f64 {
    let bytes_per_us = if call.group == Group::Tensor { 200e3 } else { 22e3 };
    20.0 + call.bytes as f64 / bytes_per_us
}

/// Tensor parallelism stays inside a node.
fn on_rail(group: Group) -> bool {
    group != Group::Tensor
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.1
}

#[test]
fn volumes_are_the_papers() {
    for stage in [0, 1] {
        let program = program(&job(2, 4), stage);
        let data = volumes(&program, Group::Data);
        // The paper counts each rank's bf16 shard, NCCL both of them.
        assert!(near(data[&AllGather].1 as f64 / 2.0 / MIB, 957.0), "{data:?}");
        // The whole fp32 input.
        assert!(near(data[&ReduceScatter].1 as f64 / MIB, 3829.0), "{data:?}");
        assert!(program.calls.iter().filter(|call| call.is_transfer()).all(|call| call.bytes == 64 << 20));
        let step: Vec<_> = program.calls.iter().filter(|call| call.phase == Phase::Optimizer).collect();
        assert!(step.len() >= 3);
        assert!(step.iter().all(|call| call.collective == AllReduce && call.bytes < 1 << 20));
    }
}

/// What the rail carries in turn, with stages.
fn figure(timeline: &Timeline) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for phase in timeline.phases(on_rail) {
        let from = phase.first.stage;
        let word = match (phase.first.collective, phase.first.peer) {
            (SendRecv, Some(to)) => format!("{from}>{to}"),
            (AllGather, _) => format!("AG{from}"),
            (ReduceScatter, _) => format!("RS{from}"),
            _ => "AR".to_owned(),
        };
        words.extend((words.last() != Some(&word)).then_some(word));
    }
    words
}

#[test]
fn two_stages_take_turns_as_in_figure_3a() {
    let figure = figure(&timeline(&job(2, 2), A100, perlmutter));
    assert_eq!(figure.join(" "), "AG0 0>1 AG1 0>1 1>0 RS1 RS0 AR");
}

#[test]
fn three_stages_take_turns_as_in_figure_3b() {
    let figure = figure(&timeline(&job(3, 3), A100, perlmutter));
    let warm_up = "AG0 0>1 AG1 0>1 1>2 AG2";
    let steady = "1>2 2>1 0>1 1>0 1>2 2>1";
    let cool_down = "1>0 2>1 RS2 1>0 RS1 RS0 AR";
    assert_eq!(figure.join(" "), format!("{warm_up} {steady} {cool_down}"));
}

#[test]
fn a_stage_gathers_only_once_its_input_is_there() {
    let timeline = timeline(&job(2, 4), A100, perlmutter);
    let first = |stage, collective| {
        let of = |event: &&Event| event.stage == stage && event.planned.collective == collective;
        *timeline.events.iter().find(of).unwrap()
    };
    assert_eq!(first(0, AllGather).start, 0.0);
    assert!(first(1, AllGather).start >= first(1, SendRecv).end);
    assert!(first(0, ReduceScatter).start > first(1, ReduceScatter).start);
}

#[test]
fn most_windows_are_longer_than_a_millisecond() {
    for (pp, micro_batches) in [(2, 2), (2, 4), (2, 8), (3, 3), (3, 6)] {
        let timeline = timeline(&job(pp, micro_batches), A100, perlmutter);
        let windows = timeline.windows(on_rail);
        let long = windows.iter().filter(|window| window.length > 1e3).count();
        assert!(long as f64 > 0.75 * windows.len() as f64, "{pp}, {micro_batches}: {long}");
        // The short ones come before the optimizer's scalars.
        let short = windows.iter().filter(|window| window.length <= 1e3);
        assert!(short.into_iter().all(|window| window.next.bytes < 1 << 20));
    }
}
