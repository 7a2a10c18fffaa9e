//! No schedule fails its proof: five collectives on six clusters, sizes, sketches, synthesizers; as a
//! schedule, as an MSCCL file, and in what its run asks of the links.

use dynamiccl_spec::Collective;
use dynamiccl_synth::msccl::{self, export::export};
use dynamiccl_synth::verify::verify;
use dynamiccl_synth::{
    Backend, Executor, Machine, Mode, Recipe, Sketch, SynthError, Synthesizer, capacity, synthesize,
};

use crate::{machine, testbed};

fn machines() -> [Machine; 6] {
    [
        testbed("tuccl_v100", 2),
        testbed("tuccl_v100", 3),
        testbed("tuccl_a100", 2),
        machine("dgx1_v100", 1, 8),
        machine("a40_8_pcie", 2, 4),
        machine("tcp25g_1gpu", 4, 1),
    ]
}

#[test]
fn every_schedule_is_proved() {
    let mut proved = 0;
    for machine in machines() {
        for &mode in Mode::ALL {
            let sketch = Sketch::new(&machine, mode);
            for synthesizer in Synthesizer::ALL {
                for recipe in [Recipe::AWARE, Recipe::unaware(machine.nodes()).with_chunks(2)] {
                    let recipe = Recipe { synthesizer: *synthesizer, ..recipe };
                    for &collective in &Collective::TUNED {
                        for bytes in [16 << 10, 1 << 30] {
                            proved += usize::from(prove(&machine, &sketch, collective, bytes, &recipe));
                        }
                    }
                }
            }
        }
    }
    assert!(proved > 1200, "only {proved} schedules");
}

/// Proves one schedule; false where the sketch has no ring.
fn prove(machine: &Machine, sketch: &Sketch, collective: Collective, bytes: u64, recipe: &Recipe) -> bool {
    let what = || format!("{} {} {collective} {bytes} {recipe:?}", machine.name, sketch.name);
    let schedule = match synthesize(machine, sketch, collective, bytes, recipe) {
        Ok(schedule) => schedule,
        Err(SynthError::NoRing { .. }) => return false,
        Err(error) => panic!("{}: {error}", what()),
    };
    verify(&schedule, sketch).unwrap_or_else(|violation| panic!("{}: {violation}", what()));
    if bytes > 1 << 20 {
        return true;
    }
    let algorithm =
        export(&schedule, &Backend::default(), "test").unwrap_or_else(|e| panic!("{}: {e}", what()));
    msccl::run(&algorithm, 1).unwrap_or_else(|fault| panic!("{}: {fault}", what()));
    let run = Executor::new(machine, sketch, &schedule).run(bytes, &Backend::default(), 2, true);
    capacity::verify(machine, sketch, &run.flows).unwrap_or_else(|over| panic!("{}: {over:?}", what()));
    true
}

#[test]
fn a_file_reads_back_as_written_and_several_channels_are_proved_too() {
    let machine = testbed("tuccl_a100", 2);
    let sketch = Sketch::new(&machine, Mode::Pair);
    let schedule = synthesize(&machine, &sketch, Collective::AllReduce, 1 << 26, &Recipe::AWARE).unwrap();
    let backend = Backend { channels: 4, ..Backend::default() };
    let algorithm = export(&schedule, &backend, "a & \"b\"").unwrap();
    assert_eq!(msccl::read("x", &algorithm.to_xml()).unwrap(), algorithm);
    assert_eq!(msccl::run(&algorithm, msccl::SLOTS), Ok(()));
}

#[test]
fn what_executors_have_no_room_for_is_refused_with_the_limit() {
    let refused = |nodes: u32, recipe: Recipe| {
        let machine = machine("dgx_a100", nodes, 8);
        let sketch = Sketch::new(&machine, Mode::Full);
        let schedule = synthesize(&machine, &sketch, Collective::AllReduce, 1 << 26, &recipe).unwrap();
        export(&schedule, &Backend::default(), "x").unwrap_err().to_string()
    };
    let mesh = refused(8, Recipe { assume: dynamiccl_synth::Assume::Connection, ..Recipe::unaware(8) });
    assert!(mesh.contains("peers of a channel") && mesh.contains("limit of 32"), "{mesh}");
    let ring = Recipe { synthesizer: Synthesizer::Ring, ..Recipe::AWARE };
    let refused = refused(16, ring);
    assert!(refused.contains("steps of a thread block") && refused.contains("limit of 64"), "{refused}");
}

#[test]
fn published_files_are_accepted() {
    let mut accepted = 0;
    for entry in std::fs::read_dir(crate::data("msccl")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "xml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let algorithm = msccl::read(&path.display().to_string(), &text).unwrap();
            msccl::check_limits(&algorithm).unwrap();
            msccl::run(&algorithm, msccl::SLOTS)
                .unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
            assert_eq!(msccl::read("again", &algorithm.to_xml()).unwrap(), algorithm);
            accepted += 1;
        }
    }
    assert_eq!(accepted, 5);
}
