//! Parts, threads, masks and episodes: what may and what may not make a difference.

use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH};
use dynamiccl_spec::{Head, Path};

use super::made::{Made, PRIVILEGED, SMALL, numbers_of, only};
use crate::critic::Values;
use crate::learn::{Device, Learner, Share};
use crate::rollout::{After, Source};

fn learner(made: &Made) -> Learner {
    Learner::new(made.params.layout().clone(), Device::Flex).unwrap()
}

fn share(made: &Made, environments: &[usize], by: &str) -> Share {
    let among = made.all();
    made.with_part(environments, &among, |part| learner(made).gradient(&made.params, part, &only(by)))
}

#[test]
fn shares_of_parts_add_up_to_the_whole() {
    let made = Made::new(SMALL, 5, 12, 11);
    let whole = share(&made, &made.all(), "all");
    let parts = [&[3, 0][..], &[1], &[2, 4]].map(|part| share(&made, part, "all"));
    let largest = whole.gradient.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    for (at, whole) in whole.gradient.iter().enumerate() {
        let sum: f32 = parts.iter().map(|part| part.gradient[at]).sum();
        assert!((sum - whole).abs() < 1e-5 * largest, "{at}: {sum}, {whole}");
    }
    let sum = |of: fn(&Share) -> f32| parts.iter().map(of).sum::<f32>() - of(&whole);
    let apart = [
        sum(|share| share.losses.policy),
        sum(|share| share.losses.value),
        sum(|share| share.losses.entropy[1]),
        sum(|share| share.losses.hindsight),
        sum(|share| share.losses.estimate),
        sum(|share| share.losses.gain),
        sum(|share| share.losses.divergence),
        sum(|share| share.losses.clipped),
    ];
    assert!(apart.iter().all(|apart| apart.abs() < 1e-5), "{apart:?}");
}

#[test]
fn threads_change_no_bit() {
    let made = Made::new(SMALL, 6, 12, 12);
    let alone = |at: usize| share(&made, &[at], "all");
    let expected: Vec<Share> = (0..6).map(alone).collect();
    for _ in 0..5 {
        let together: Vec<Share> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|at| scope.spawn(move || alone(at))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(together, expected);
    }
}

#[test]
fn what_is_forbidden_has_no_gradient() {
    const PAIR: usize = 7;
    let mut made = Made::new(SMALL, 3, 20, 13);
    for row in 0..made.rollout.rows() {
        let bits = &mut made.rollout.masks[row][Head::Pair as usize];
        *bits &= !(1 << PAIR);
        *bits |= 1 << 2;
        if made.rollout.choices[row][Head::Pair as usize] == PAIR as u8 {
            made.rollout.choices[row][Head::Pair as usize] = 2;
        }
    }
    let (said, _) = made.said();
    let ln = numbers_of(&said, Head::Pair as usize);
    assert!(ln.chunks_exact(21).all(|ln| ln[PAIR].exp() == 0.0));
    for by in ["policy", "entropy", "hindsight"] {
        let gradient = share(&made, &made.all(), by).gradient;
        let bias = &gradient[made.params.layout().tensor("pair.bias").range.clone()];
        assert_eq!(bias[PAIR], 0.0, "{by}");
        assert!(bias[2] != 0.0, "{by}");
    }
}

#[test]
fn a_head_with_nothing_to_choose_adds_nothing() {
    let mut made = Made::new(SMALL, 3, 20, 14);
    for row in 0..made.rollout.rows() {
        made.rollout.masks[row][Head::Threads as usize] =
            1 << made.rollout.choices[row][Head::Threads as usize];
    }
    for by in ["policy", "entropy"] {
        let Share { gradient, losses } = share(&made, &made.all(), by);
        assert_eq!(losses.entropy[Head::Threads as usize], 0.0);
        for name in ["threads.weight", "threads.bias"] {
            let of = &gradient[made.params.layout().tensor(name).range.clone()];
            assert!(of.iter().all(|x| *x == 0.0), "{by}, {name}");
        }
    }
}

/// What comes after a path is learned where it was taken, the path itself everywhere.
#[test]
fn paths_are_learned_where_every_call_took_the_schedule() {
    let mut made = Made::new(SMALL, 6, 40, 19);
    made.rollout.truths.retain(|truth| !truth.schedule.is_nan());
    assert!(!made.rollout.truths.is_empty());
    for truth in &made.rollout.truths {
        made.rollout.choices[truth.row][Head::Path as usize] = Path::Synthesised.id() as u8;
    }
    let Share { gradient, losses } = share(&made, &made.all(), "hindsight");
    assert!(losses.hindsight > 0.0 && losses.hindsight.is_finite(), "{}", losses.hindsight);
    assert_eq!((losses.resources, losses.lost), (0.0, 0.0));
    let of = |name: &str| &gradient[made.params.layout().tensor(name).range.clone()];
    assert!(of("path.bias").iter().any(|x| *x != 0.0));
    assert!(of("pair.bias").iter().all(|x| *x == 0.0));
}

#[test]
fn what_was_not_measured_teaches_nothing() {
    let (mut whole, mut made) = (Made::new(SMALL, 3, 20, 18), Made::new(SMALL, 3, 20, 18));
    // Only the calls of the first sequence have been measured; losses are means over these.
    made.rollout.ln_times[20..].fill(f32::NAN);
    made.rollout.gains[20..].fill(f32::NAN);
    made.rollout.truths.retain(|truth| truth.row < 20);
    for by in ["gain", "estimate"] {
        if by == "estimate" {
            // Where hindsight knows what every pair takes, measured times are not asked.
            whole.rollout.truths.clear();
            made.rollout.truths.clear();
        }
        let of = |share: &Share| if by == "gain" { share.losses.gain } else { share.losses.estimate };
        let measured =
            whole.with_part(&[0], &[0], |part| of(&learner(&whole).gradient(&whole.params, part, &only(by))));
        let all = of(&share(&made, &made.all(), by));
        assert!((all - measured).abs() < 1e-5 && all.abs() > 1e-2, "{by}: {all}, {measured}");
        let rest = share(&made, &[1, 2], by);
        assert_eq!(of(&rest), 0.0, "{by}");
        assert!(rest.gradient.iter().all(|x| *x == 0.0), "{by}");
    }
}

/// A job of calls that leave nothing to decide still teaches the critic, and nothing else.
#[test]
fn where_nothing_is_decided_only_the_critic_learns() {
    let mut made = Made::new(SMALL, 2, 6, 21);
    made.rollout.decides.fill(false);
    made.rollout.drawn.fill(false);
    made.rollout.truths.clear();
    for known in [&mut made.rollout.ln_times, &mut made.rollout.gains] {
        known.fill(f32::NAN);
    }
    let graph = Learner::on_graph(made.params.layout().clone(), Device::Flex).unwrap();
    for learner in [learner(&made), graph] {
        let share = made
            .with_part(&made.all(), &made.all(), |part| learner.gradient(&made.params, part, &only("all")));
        for tensor in made.params.layout().tensors() {
            let moves = share.gradient[tensor.range.clone()].iter().any(|slope| *slope != 0.0);
            assert_eq!(moves, tensor.name.starts_with("critic."), "{}", tensor.name);
        }
    }
}

#[test]
fn nothing_of_an_episode_reaches_the_next() {
    const BEGINS: usize = 6;
    let mut made = Made::new(SMALL, 1, 12, 15);
    made.rollout.begins = vec![false; 12];
    made.rollout.histories.iter_mut().for_each(|x| *x = if x.is_nan() { 0.5 } else { *x });
    made.rollout.sources = (0..12).map(Source::After).collect();
    let without = made.hidden();
    made.rollout.begins[BEGINS] = true;
    let before = made.hidden();
    assert_ne!(without[BEGINS + 1], before[BEGINS + 1]);
    assert_eq!(before[BEGINS], made.params.tensor("memory.hidden"));
    // Everything up to the beginning, and what came before the sequence.
    made.rollout.histories[..(BEGINS + 1) * HISTORY_WIDTH].fill(0.7);
    made.rollout.contexts[..(BEGINS + 1) * CONTEXT_WIDTH].fill(0.3);
    made.rollout.states.fill(0.1);
    let after = made.hidden();
    assert_ne!(before[..BEGINS], after[..BEGINS]);
    assert_eq!(before[BEGINS..], after[BEGINS..]);
}

#[test]
fn what_was_held_is_seen_and_is_no_parameter() {
    let mut made = Made::new(SMALL, 2, 12, 16);
    made.rollout.sources.fill(Source::Held);
    let gradient = share(&made, &made.all(), "policy").gradient;
    for name in ["memory.hidden", "memory.cell", "lstm.weight", "lstm.bias"] {
        let of = &gradient[made.params.layout().tensor(name).range.clone()];
        assert!(of.iter().all(|x| *x == 0.0), "{name}");
    }
    let (memory, before) = (SMALL.memory, numbers_of(&made.said().0, 1));
    made.rollout.states[..2 * memory].fill(0.9);
    assert_eq!(numbers_of(&made.said().0, 1), before, "hidden and cell of the first sequence");
    made.rollout.states[2 * memory..3 * memory].fill(0.9);
    assert_ne!(numbers_of(&made.said().0, 1), before, "what it held");
}

#[test]
fn values_are_the_critics_and_so_are_those_of_what_comes_next() {
    let mut made = Made::new(SMALL, 3, 12, 17);
    let (rollout, memory) = (&mut made.rollout, SMALL.memory);
    rollout.sources.fill(Source::Held);
    let rows: Vec<usize> = [5, 0, 11].into_iter().enumerate().map(|(at, step)| at * 12 + step).collect();
    let (mut contexts, mut privileged, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for &row in &rows {
        contexts.extend(super::replay::context(rollout, row));
        privileged.extend(&rollout.privileged[row * PRIVILEGED..][..PRIVILEGED]);
        hidden.extend(&rollout.states[(row / 12 * 3 + 2) * memory..][..memory]);
    }
    rollout.seen =
        (0..36).flat_map(|row| rollout.states[(row / 12 * 3 + 2) * memory..][..memory].to_vec()).collect();
    rollout.afters = rows
        .iter()
        .enumerate()
        .map(|(at, &row)| After {
            row,
            context: contexts[at * CONTEXT_WIDTH..][..CONTEXT_WIDTH].into(),
            privileged: privileged[at * PRIVILEGED..][..PRIVILEGED].into(),
        })
        .collect();
    let values = Values::of(&made.params, &made.rollout, &made.scaling()[0]);
    assert_eq!((values.rows.len(), values.afters.len()), (36, 3));
    for (at, row) in rows.into_iter().enumerate() {
        assert!((values.afters[at] - values.rows[row]).abs() < 1e-6);
        let expected =
            by_hand(&made, &contexts[at * CONTEXT_WIDTH..][..CONTEXT_WIDTH], row, &hidden[at * memory..]);
        assert!((values.rows[row] - expected).abs() < 1e-5, "{} is not {expected}", values.rows[row]);
    }
}

/// What the critic says of a row, sum by sum.
fn by_hand(made: &Made, context: &[f32], row: usize, hidden: &[f32]) -> f32 {
    let mut x = context.to_vec();
    crate::normal::normalise(&made.scaling()[0], &mut x);
    x.extend(&made.rollout.privileged[row * PRIVILEGED..][..PRIVILEGED]);
    x.extend(&hidden[..SMALL.memory]);
    for (name, last) in [("first", false), ("second", false), ("value", true)] {
        let [weight, bias] =
            ["weight", "bias"].map(|part| made.params.tensor(&format!("critic.{name}.{part}")));
        let sum = |at: usize| {
            bias[at] + x.iter().enumerate().map(|(input, x)| x * weight[input * bias.len() + at]).sum::<f32>()
        };
        x = (0..bias.len()).map(|at| if last { sum(at) } else { sum(at).tanh() }).collect();
    }
    x[0]
}
