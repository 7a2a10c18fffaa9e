//! Joint tuning on a small machine: short enough to run always. `examples/joint` does it on all tasks.

use dynamiccl_spec::Collective;
use dynamiccl_synth::joint::{SIZES, Setting, Task};
use dynamiccl_synth::msccl::export::export;
use dynamiccl_synth::{Mode, plan};

use crate::searches::{mraco, space};
use crate::{machine, testbed};

#[test]
fn a_joint_search_spends_a_fraction_of_the_grid_and_is_as_good() {
    let machine = testbed("tuccl_v100", 2);
    let task = Task::new(&machine, Collective::AllGather, 64 << 20);
    let best = task.grid(|_| true)[0].1;
    let found = mraco(&task, 1);
    assert_eq!(space().points(), SIZES.iter().product::<usize>());
    assert!(found.trials <= 0.1 * space().points() as f64, "{}", found.trials);
    assert!(best / found.micros >= 0.97, "{:?}: {} for {best}", found.setting, found.micros);
}

#[test]
fn small_messages_are_not_pruned_where_it_hurts() {
    let machine = testbed("tuccl_v100", 3);
    for bytes in [16 << 10, 64 << 10] {
        let task = Task::new(&machine, Collective::AllGather, bytes);
        let full = task.grid(|setting| setting.sketch == Mode::Full && setting.chunks <= 2)[0].1;
        let found = mraco(&task, 1);
        assert!(
            found.micros <= 1.03 * full,
            "{bytes}: {:?} takes {} µs, a full mesh {full}",
            found.setting,
            found.micros
        );
    }
}

#[test]
fn settings_begin_with_msccls_own_and_have_times_that_replay() {
    let start = Setting::start();
    assert_eq!(
        (start.sketch, start.chunks, start.backend),
        (Mode::Full, 1, dynamiccl_synth::Backend::default())
    );
    let machine = testbed("tuccl_v100", 2);
    let micros = || Task::new(&machine, Collective::AllReduce, 1 << 20).micros(&start);
    assert_eq!(micros().to_bits(), micros().to_bits());
}

#[test]
fn a_plan_that_is_to_be_exported_fits() {
    let machine = testbed("tuccl_a100", 2);
    let fits = |exportable| {
        let choice = plan::Choice { exportable, ..plan::Choice::usual(&machine) };
        let plan = plan::best(&machine, Collective::AllReduce, 1 << 30, &choice).unwrap();
        (export(&plan.schedule, &plan.backend, "x").is_ok(), plan.micros)
    };
    let (any, roomy) = (fits(false), fits(true));
    assert!(!any.0 && roomy.0 && roomy.1 > any.1, "{any:?} {roomy:?}");
}

#[test]
fn a_plan_is_no_slower_than_msccls_own_setting_and_proved() {
    for machine in [testbed("tuccl_a100", 2), machine("dgx_a100", 2, 4)] {
        let plan =
            plan::best(&machine, Collective::AllGather, 64 << 20, &plan::Choice::usual(&machine)).unwrap();
        let start = Task::new(&machine, Collective::AllGather, 64 << 20).micros(&Setting::start());
        assert!(plan.verified() && plan.micros < start, "{}: {} {start}", machine.name, plan.micros);
        let used = plan.utilisation(&machine, 64 << 20);
        assert!(used.nic > 0.3 && used.nic <= 1.0 && used.link > 0.0 && used.port <= 1.0, "{used:?}");
    }
}
