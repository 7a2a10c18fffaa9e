//! The figures of TuCCL that follow from what its paper states, with the tolerances that were promised.

use dynamiccl_spec::Collective::{self, AllGather, AllReduce};
use dynamiccl_synth::bound::lower_bound;
use dynamiccl_synth::{Backend, Executor, Machine, Mode, Recipe, Sketch, Synthesizer, synthesize};

use crate::testbed;

const GIB: u64 = 1 << 30;

fn micros(
    machine: &Machine,
    mode: Mode,
    collective: Collective,
    bytes: u64,
    recipe: &Recipe,
    backend: &Backend,
) -> f64 {
    let sketch = Sketch::new(machine, mode);
    let schedule = synthesize(machine, &sketch, collective, bytes, recipe).unwrap();
    dynamiccl_synth::verify::verify(&schedule, &sketch).unwrap();
    Executor::new(machine, &sketch, &schedule).micros(bytes, backend)
}

fn close(found: f64, expected: f64, percent: f64) {
    assert!((found / expected - 1.0).abs() <= percent / 100.0, "{found} is not {expected} ± {percent} %");
}

#[test]
fn two_v100_nodes_wait_for_their_nic_four_times_unless_the_synthesizer_knows_it() {
    let machine = testbed("tuccl_v100", 2);
    let time = |mode, recipe: &Recipe| micros(&machine, mode, AllGather, GIB, recipe, &Backend::default());
    close(time(Mode::Full, &Recipe::unaware(2)), 172_400.0, 2.0);
    let bound = lower_bound(&machine, AllGather, GIB);
    close(bound, 42_950.0, 0.1);
    for mode in [Mode::Full, Mode::Pair] {
        close(time(mode, &Recipe::AWARE), 42_900.0, 5.0);
    }
    assert!(time(Mode::Pair, &Recipe::AWARE) >= bound);
}

#[test]
fn two_a100_nodes_gain_six_and_five_times_jointly() {
    let machine = testbed("tuccl_a100", 2);
    let plain =
        |collective| micros(&machine, Mode::Full, collective, GIB, &Recipe::unaware(2), &Backend::default());
    close(plain(AllGather), 86_200.0, 2.0);
    let backend = Backend { channels: 4, ..Backend::default() };
    let joint =
        |collective| micros(&machine, Mode::Pair, collective, GIB, &Recipe::AWARE.with_chunks(8), &backend);
    let gains = [AllGather, AllReduce].map(|collective| plain(collective) / joint(collective));
    assert!(gains[0] >= 6.0 && gains[1] >= 5.0, "{gains:?}");
    assert!(joint(AllGather) >= lower_bound(&machine, AllGather, GIB));
    assert!(joint(AllReduce) >= lower_bound(&machine, AllReduce, GIB));
}

#[test]
fn three_v100_nodes_gain_less_since_the_synthesizer_shares_per_gpu() {
    let machine = testbed("tuccl_v100", 3);
    // TACCL routes chunks along trees.
    let recipe = Recipe { synthesizer: Synthesizer::Tree, ..Recipe::unaware(3) };
    let time = |mode| micros(&machine, mode, AllGather, GIB, &recipe, &Backend::default());
    let gain = time(Mode::Full) / time(Mode::Relay);
    assert!((1.75..=2.2).contains(&gain), "{gain}");
}

/// Table III: sketch, channels and MiB of buffer of C0 to C5.
pub const TABLE_THREE: [(Mode, u32, u64); 6] = [
    (Mode::Full, 1, 4),
    (Mode::Full, 1, 8),
    (Mode::Full, 4, 4),
    (Mode::Pair, 1, 8),
    (Mode::Pair, 4, 4),
    (Mode::Pair, 4, 8),
];

#[test]
fn where_a_network_channel_is_slow_only_the_joint_setting_helps() {
    let mut machine = testbed("tuccl_a100", 2);
    machine.rates.network_channel = 1.6;
    for collective in [AllGather, AllReduce] {
        let time = |(mode, channels, mebibytes)| {
            let backend = Backend { channels, buffer: mebibytes << 20, ..Backend::default() };
            micros(&machine, mode, collective, 4 * GIB, &Recipe::unaware(2), &backend)
        };
        let times = TABLE_THREE.map(time);
        let gains = times.map(|time| times[0] / time);
        assert!(gains[1..4].iter().all(|&gain| gain <= 1.05), "{collective}: {gains:?}");
        assert!((3.8..=5.0).contains(&gains[4]), "{collective}: {gains:?}");
    }
}

#[test]
fn pruning_hurts_small_messages() {
    for (machine, recipe) in
        [(testbed("tuccl_a100", 2), Recipe::unaware(2)), (testbed("tuccl_v100", 3), Recipe::unaware(3))]
    {
        let time = |mode| micros(&machine, mode, AllGather, 64 << 10, &recipe, &Backend::default());
        let gain = time(Mode::Full) / time(Mode::Relay).min(time(Mode::Pair));
        assert!((0.3..0.95).contains(&gain), "{}: {gain}", machine.name);
    }
}

#[test]
fn a_time_is_never_below_what_the_links_allow_and_grows_with_bytes() {
    for machine in [testbed("tuccl_v100", 2), testbed("tuccl_a100", 2), testbed("tuccl_a100", 1)] {
        for &collective in &Collective::TUNED {
            let mut before = 0.0;
            for bytes in [64 << 10, 1 << 20, 64 << 20, GIB] {
                let time =
                    micros(&machine, Mode::Pair, collective, bytes, &Recipe::AWARE, &Backend::default());
                assert!(
                    time >= lower_bound(&machine, collective, bytes),
                    "{} {collective} {bytes}",
                    machine.name
                );
                assert!(time > before, "{} {collective} {bytes}: {time} after {before}", machine.name);
                before = time;
            }
        }
    }
}
