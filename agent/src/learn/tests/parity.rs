//! What is learned is what acts: burn's network and the plain one are the same function.

use dynamiccl_policies::network::{Gain, greedy};
use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::ids::PAIRS;

use super::made::{Made, SMALL, numbers_of, only};
use super::replay::{ask, from_the_beginning, mask, network, replay};
use crate::config::NetworkConfig;
use crate::learn::leaves::numbers;
use crate::learn::{Device, Learner};

const CLOSE: f32 = 1e-5;

#[track_caller]
fn close(a: f32, b: f32, what: &str) {
    assert!((a - b).abs() <= CLOSE * a.abs().max(1.0), "{what}: {a}, {b}");
}

/// ln of the probabilities that logits stand for.
fn ln_softmax(logits: &[f32]) -> Vec<f32> {
    let wide = logits.iter().map(|&x| f64::from(x));
    let largest = wide.clone().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = wide.clone().map(|x| (x - largest).exp()).sum();
    wide.map(|x| (x - largest - sum.ln()) as f32).collect()
}

fn the_same_function(network: NetworkConfig) {
    let made = from_the_beginning(Made::new(network, 3, 20, 5));
    let mut ln = vec![vec![Vec::new(); HEADS]; made.rollout.rows()];
    let replayed = replay(&made, |row, head, logits| {
        ln[row][head as usize] = ln_softmax(logits);
        usize::from(made.rollout.choices[row][head as usize])
    });
    for (replayed, hidden) in replayed.iter().zip(made.hidden()) {
        replayed.hidden.iter().zip(hidden).for_each(|(a, b)| close(*a, b, "h"));
    }
    let (said, rows) = made.said();
    assert!(rows.len() > made.rollout.rows() / 2);
    for &head in Head::ALL {
        let of_head = numbers_of(&said, head as usize);
        for (said, &row) in of_head.chunks_exact(head.size()).zip(&rows) {
            for (said, plain) in said.iter().zip(&ln[row][head as usize]) {
                if plain.is_finite() {
                    close(*plain, *said, head.name());
                } else {
                    assert_eq!(said.exp(), 0.0, "what is forbidden has no probability");
                }
            }
        }
    }
    let (estimates, gains) = (numbers(said.estimates), numbers(said.gain));
    for ((&row, estimates), gain) in
        rows.iter().zip(estimates.chunks_exact(2 * PAIRS)).zip(gains.chunks_exact(2))
    {
        let plain = &replayed[row];
        let both = plain.means.iter().chain(&plain.spreads);
        both.zip(estimates).for_each(|(a, b)| close(*a, *b, "estimate"));
        close(plain.acted.gain.mean, gain[0], "gain");
        close(plain.acted.gain.ln_spread, gain[1], "spread of the gain");
    }
}

#[test]
fn acting_and_learning_are_one_function() {
    the_same_function(SMALL);
    the_same_function(NetworkConfig::default());
}

#[test]
fn the_most_probable_choice_is_the_one_that_is_taken() {
    let mut made = from_the_beginning(Made::new(NetworkConfig::default(), 40, 64, 6));
    let replayed = replay(&made, |_, _, logits| greedy(logits, 0));
    for (choice, replayed) in made.rollout.choices.iter_mut().zip(&replayed) {
        *choice = replayed.acted.choice.0;
    }
    let (said, rows) = made.said();
    assert!(rows.len() > 2000);
    for head in 0..HEADS {
        let ln = numbers_of(&said, head);
        for (ln, &row) in ln.chunks_exact(Head::ALL[head].size()).zip(&rows) {
            let taken = usize::from(made.rollout.choices[row][head]);
            assert_eq!(greedy(ln, taken), taken, "row {row}, {}: {ln:?}", Head::ALL[head]);
        }
    }
}

/// How likely choices with these gains should have been, by the words of the lesson.
fn should(gains: &[f32], temperature: f32) -> Vec<f64> {
    let weights: Vec<f64> = gains.iter().map(|&gain| f64::from(gain / temperature).exp()).collect();
    let runs = |weight: &f64| if weight.is_nan() { 0.0 } else { *weight };
    let sum: f64 = weights.iter().map(runs).sum();
    weights.iter().map(|weight| if sum > 0.0 { runs(weight) / sum } else { 0.0 }).collect()
}

/// Of a gain under a normal distribution.
fn ln_likelihood(gain: f32, expected: Gain) -> f64 {
    let [gain, mean, ln_spread] = [gain, expected.mean, expected.ln_spread].map(f64::from);
    let ln_spread = ln_spread.clamp(-5.0, 3.0);
    let off = (gain.clamp(-3.0, 3.0) - mean) / ln_spread.exp();
    -0.5 * off * off - ln_spread - 0.5 * std::f64::consts::TAU.ln()
}

#[test]
fn hindsight_is_the_likelihood_of_what_should_have_been_chosen() {
    let mut made = from_the_beginning(Made::new(SMALL, 6, 40, 7));
    assert!(made.rollout.truths.len() > 5);
    // What is learned of gains is the lesson alone.
    made.rollout.gains.fill(f32::NAN);
    let (network, all, by) = (network(&made), made.all(), only("all").of);
    let replayed = replay(&made, |row, head, _| usize::from(made.rollout.choices[row][head as usize]));
    let (mut of_pairs, mut of_resources, mut lost, mut of_gains) = (0.0, 0.0, 0.0, 0.0);
    let (mut paths, mut scheduled) = (0, 0);
    for truth in &made.rollout.truths {
        let (row, mask) = (truth.row, mask(&made.rollout, truth.row));
        let best = |gains: &[f32]| gains.iter().copied().fold(f32::NAN, f32::max);
        let of_pair = |pair: usize| -> Vec<f32> {
            let legal = |at: usize| mask.allows(Head::Channels, at / 5) && mask.allows(Head::Chunk, at % 5);
            (0..50).map(|at| if legal(at) { truth.gains[pair * 50 + at] } else { f32::NAN }).collect()
        };
        let runs: Vec<usize> =
            mask.indices(Head::Pair).filter(|&pair| !best(&of_pair(pair)).is_nan()).collect();
        let by_nccl = runs.iter().map(|&pair| best(&of_pair(pair))).fold(f32::NAN, f32::max);
        if !truth.schedule.is_nan() && !by_nccl.is_nan() {
            let mut ln = Vec::new();
            ask(&made, &network, row, &replayed[row].memory, |head, logits| {
                if head == Head::Path {
                    ln = ln_softmax(logits);
                }
                usize::from(made.rollout.choices[row][head as usize])
            });
            for (path, likely) in [0, 2].into_iter().zip(should(&[by_nccl, truth.schedule], by.temperature)) {
                of_pairs -= likely * f64::from(ln[path]);
            }
            paths += 1;
        }
        if made.rollout.choices[row][Head::Path as usize] == 2 {
            scheduled += 1;
            continue;
        }
        let news = |pair: usize| if truth.tried >> pair & 1 == 1 { 0.0 } else { by.curiosity };
        let worths: Vec<f32> = runs.iter().map(|&pair| best(&of_pair(pair)) + news(pair)).collect();
        for (&pair, likely) in runs.iter().zip(should(&worths, by.temperature)) {
            let counts = 0.5 * (likely + 1.0 / runs.len() as f64);
            let channels: Vec<f32> = of_pair(pair).chunks_exact(5).map(best).collect();
            for (at, of_channels) in should(&channels, by.temperature).into_iter().enumerate() {
                let mut ln = [vec![], vec![], vec![], vec![], vec![]];
                ask(&made, &network, row, &replayed[row].memory, |head, logits| {
                    ln[head as usize] = ln_softmax(logits);
                    match head {
                        Head::Pair => pair,
                        Head::Channels => at,
                        _ => usize::from(made.rollout.choices[row][head as usize]),
                    }
                });
                if at == 0 {
                    of_pairs -= likely * f64::from(ln[Head::Pair as usize][pair]);
                }
                let prob = |head: Head, at: usize| f64::from(ln[head as usize][at]).exp();
                let settled = if truth.tried == u32::MAX { prob(Head::Pair, pair) } else { 0.0 };
                for (chunk, gain) in of_pair(pair)[at * 5..][..5].iter().enumerate() {
                    let gain = if gain.is_nan() { -3.0 } else { f64::from(gain.clamp(-3.0, 3.0)) };
                    let likely = prob(Head::Channels, at) * prob(Head::Chunk, chunk);
                    lost -= (counts + settled) * likely * gain;
                }
                let add = |of: f64, ln: f32| if of > 0.0 { counts * of * f64::from(ln) } else { 0.0 };
                of_resources -= add(of_channels, ln[Head::Channels as usize][at]);
                let chunks = should(&of_pair(pair)[at * 5..][..5], by.temperature);
                for (chunk, likely) in chunks.into_iter().enumerate() {
                    of_resources -= add(of_channels * likely, ln[Head::Chunk as usize][chunk]);
                    // With the threads that the call had.
                    let choice = made.rollout.choices[row];
                    let (acted, _, _) =
                        ask(&made, &network, row, &replayed[row].memory, |head, _| match head {
                            Head::Pair => pair,
                            Head::Channels => at,
                            Head::Chunk => chunk,
                            Head::Path | Head::Threads => usize::from(choice[head as usize]),
                        });
                    let gain = of_pair(pair)[at * 5 + chunk];
                    if of_channels * likely > 0.0 {
                        of_gains -= counts * of_channels * likely * ln_likelihood(gain, acted.gain);
                    }
                }
            }
        }
    }
    assert!(paths > 0 && scheduled > 0, "{paths}, {scheduled}");
    let count = made.rollout.truths.len() as f64;
    let learner = Learner::new(made.params.layout().clone(), Device::Flex).unwrap();
    let losses = made.with_part(&all, &all, |part| learner.gradient(&made.params, part, &only("all")).losses);
    close(losses.hindsight, (of_pairs / count) as f32, "hindsight");
    close(losses.resources, (of_resources / count) as f32, "resources");
    close(losses.gain, (of_gains / count) as f32, "gain");
    close(losses.lost, (lost / count) as f32, "lost");
}
