//! Every mutation of a right schedule or file is found.

use dynamiccl_spec::Collective::{self, AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
use dynamiccl_synth::msccl::{self, Algorithm, Op, Rule, export::export};
use dynamiccl_synth::verify::{self, verify};
use dynamiccl_synth::{Backend, Mode, Phase, Recipe, Schedule, Sketch, synthesize};

use crate::{data, testbed};

fn schedule(collective: Collective) -> (Schedule, Sketch) {
    let machine = testbed("tuccl_v100", 2);
    let sketch = Sketch::new(&machine, Mode::Pair);
    (synthesize(&machine, &sketch, collective, 1 << 20, &Recipe::AWARE).unwrap(), sketch)
}

#[test]
fn every_mutation_of_a_schedule_is_found() {
    for collective in [AllGather, ReduceScatter, AllReduce, Broadcast, Reduce] {
        let (right, sketch) = schedule(collective);
        assert_eq!(verify(&right, &sketch), Ok(()));
        let refused = |what: &str, at: usize, change: &dyn Fn(&mut Schedule)| {
            let mut wrong = right.clone();
            change(&mut wrong);
            assert!(verify(&wrong, &sketch).is_err(), "{collective}: {what} at {at} passes");
        };
        for at in 0..right.sends.len() {
            refused("a dropped send", at, &|s| {
                s.sends.remove(at);
            });
            refused("a doubled send", at, &|s| s.sends.insert(at, s.sends[at]));
            refused("the other phase", at, &|s| {
                s.sends[at].phase = match s.sends[at].phase {
                    Phase::Reduce => Phase::Gather,
                    Phase::Gather => Phase::Reduce,
                };
            });
            refused("a send to itself", at, &|s| s.sends[at].to = s.sends[at].from);
            refused("an unknown rank", at, &|s| s.sends[at].to = 8);
            refused("a wrong chunk", at, &|s| s.sends[at].chunk = (s.sends[at].chunk + 1) % 8);
            refused("an unknown chunk", at, &|s| s.sends[at].chunk = 8);
            refused("a turned send", at, &|s| {
                let send = &mut s.sends[at];
                (send.from, send.to) = (send.to, send.from);
            });
        }
        // A send that needs another before it: exchanged, it breaks a rule.
        for (needs, later) in right.needs().iter().zip(0..) {
            for &earlier in needs {
                refused("exchanged sends", later, &|s| s.sends.swap(earlier as usize, later));
            }
        }
    }
}

#[test]
fn a_violation_says_rule_rank_and_send() {
    let (mut wrong, sketch) = schedule(AllGather);
    let first = wrong.sends[0];
    wrong.sends.insert(1, first);
    let violation = verify(&wrong, &sketch).unwrap_err();
    assert_eq!(
        (violation.rule, violation.rank, violation.send),
        (verify::Rule::PlacedOnce, first.to, Some(1))
    );
    let machine = testbed("tuccl_v100", 2);
    let (right, _) = schedule(AllReduce);
    let relay = Sketch::new(&machine, Mode::Relay);
    assert_eq!(verify(&right, &relay).unwrap_err().rule, verify::Rule::Link);
}

/// Files to mutate: ours and published ones.
fn files() -> Vec<(String, Algorithm)> {
    let ours = [AllGather, ReduceScatter, AllReduce].map(|collective| {
        let (schedule, _) = schedule(collective);
        (collective.to_string(), export(&schedule, &Backend::default(), "ours").unwrap())
    });
    let published = ["ncv4_ag_hier_4_Simple.xml", "ncv4_ar_hier_12_Simple.xml"].map(|name| {
        let text = std::fs::read_to_string(data("msccl").join(name)).unwrap();
        (name.to_owned(), msccl::read(name, &text).unwrap())
    });
    ours.into_iter().chain(published).collect()
}

#[test]
fn every_mutation_of_a_file_is_found() {
    let mut tried = 0;
    for (name, right) in files() {
        assert_eq!(msccl::run(&right, msccl::SLOTS), Ok(()), "{name}");
        let mut refused = |what: &str, place: (usize, usize, usize), change: &dyn Fn(&mut Algorithm)| {
            let mut wrong = right.clone();
            change(&mut wrong);
            tried += 1;
            assert!(msccl::run(&wrong, msccl::SLOTS).is_err(), "{name}: {what} at {place:?} passes");
        };
        let whole = (0, 0, 0);
        // None of these files copies what it has been given.
        refused("both placements", whole, &|a| (a.in_place, a.out_of_place) = (true, true));
        refused("the other placement", whole, &|a| {
            (a.in_place, a.out_of_place) = (a.out_of_place, a.in_place);
        });
        refused("no placement", whole, &|a| (a.in_place, a.out_of_place) = (false, false));
        refused("a channel too few", whole, &|a| a.channels -= 1);
        for (rank, program) in right.programs.iter().enumerate() {
            for (block, tb) in program.blocks.iter().enumerate() {
                for (number, step) in tb.steps.iter().enumerate() {
                    let place = (rank, block, number);
                    if step.op != Op::Nop {
                        refused("a dropped step", place, &|a| {
                            a.programs[rank].blocks[block].steps.remove(number);
                        });
                    }
                    if step.op.sends() || step.op.receives() {
                        refused("a doubled step", place, &|a| {
                            a.programs[rank].blocks[block].steps.insert(number, step.clone());
                        });
                    }
                    if step.op == Op::Send {
                        refused("a wrong chunk", place, &|a| {
                            a.programs[rank].blocks[block].steps[number].source.1 += 1;
                        });
                    }
                    if step.after.is_some() {
                        refused("a dependency on nothing", place, &|a| {
                            a.programs[rank].blocks[block].steps[number].after = Some((999, 0));
                        });
                    }
                    // Published files also have dependencies that follow from others.
                    if step.after.is_some() && right.name == "ours" {
                        refused("a dropped dependency", place, &|a| {
                            a.programs[rank].blocks[block].steps[number].after = None;
                        });
                    }
                    if step.awaited {
                        refused("a silent step", place, &|a| {
                            a.programs[rank].blocks[block].steps[number].awaited = false;
                        });
                    }
                }
                for number in 1..tb.steps.len() {
                    if tb.steps[number].op == Op::Recv && tb.steps[number - 1].op == Op::Recv {
                        refused("exchanged steps", (rank, block, number), &|a| {
                            a.programs[rank].blocks[block].steps.swap(number - 1, number);
                        });
                    }
                }
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn steps_that_wait_for_each_other_are_a_deadlock() {
    let (schedule, _) = schedule(AllReduce);
    let mut wrong = export(&schedule, &Backend::default(), "ours").unwrap();
    // The step that another waits for waits for that one.
    let blocks = &mut wrong.programs[0].blocks;
    let (block, step, (other, awaited)) = blocks
        .iter()
        .enumerate()
        .flat_map(|(block, tb)| tb.steps.iter().enumerate().map(move |(step, s)| (block, step, s.after)))
        .find_map(|(block, step, after)| after.map(|after| (block, step, after)))
        .unwrap();
    blocks[other as usize].steps[awaited as usize].after = Some((block as u32, step as u32));
    blocks[block].steps[step].awaited = true;
    assert_eq!(msccl::run(&wrong, msccl::SLOTS).unwrap_err().rule, Rule::Progress);
}

#[test]
fn a_fault_says_which_placement_it_is_of() {
    let (schedule, _) = schedule(AllGather);
    let mut wrong = export(&schedule, &Backend::default(), "ours").unwrap();
    wrong.out_of_place = true;
    let fault = msccl::run(&wrong, msccl::SLOTS).unwrap_err();
    assert_eq!(fault.placement, Some(msccl::Placement::OutOfPlace));
    assert!(fault.to_string().contains("out of place: "), "{fault}");
    wrong.in_place = false;
    wrong.programs[0].blocks[0].steps[0].source.1 = i32::MAX;
    wrong.programs[0].blocks[0].steps[0].count = 2;
    assert!(msccl::run(&wrong, msccl::SLOTS).is_err());
}

#[test]
fn a_file_that_is_none_says_where() {
    let refused = |text: &str| msccl::read("mine.xml", text).unwrap_err().to_string();
    assert!(refused("<algo").starts_with("mine.xml: line 1"));
    assert!(refused("<x/>").contains("where <algo> is expected"));
    let (schedule, _) = schedule(AllGather);
    let text = export(&schedule, &Backend::default(), "ours").unwrap().to_xml();
    assert!(refused(&text.replacen("type=\"r\"", "type=\"rr\"", 1)).contains("unknown step type \"rr\""));
    assert!(refused(&text.replacen("<step s=\"0\"", "<step s=\"3\"", 1)).contains("where 0 is expected"));
    assert!(refused(&text.replacen("ngpus=\"8\"", "ngpus=\"9\"", 1)).contains("8 <gpu>"));
    for (right, wrong, says) in [
        ("inplace=\"1\"", "inplace=\"0\"", "neither inplace nor outofplace"),
        ("proto=\"Simple\"", "proto=\"simple\"", "give LL, LL128, Simple"),
        ("nchannels=\"1\"", "nchannels=\"0\"", "give 1 to 32"),
        ("nchannels=\"1\"", "nchannels=\"4000000000\"", "give 1 to 32"),
        ("nchunksperloop=\"8\"", "nchunksperloop=\"2147483648\"", "give 1 to 32768"),
        ("s_chunks=\"0\"", "s_chunks=\"4000000000\"", "give 0 to 32768"),
        ("cnt=\"1\"", "cnt=\"4000000000\"", "give 0 to 32768"),
    ] {
        assert!(text.contains(right), "{right}");
        let said = refused(&text.replacen(right, wrong, 1));
        assert!(said.starts_with("mine.xml: line ") && said.contains(says), "{said}");
    }
}
