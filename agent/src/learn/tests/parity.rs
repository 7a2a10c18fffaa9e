//! What is learned is what acts: burn's network and the plain one are the same function.

use dynamiccl_policies::network::greedy;
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

#[test]
fn hindsight_is_the_expected_worth_of_every_choice() {
    let made = from_the_beginning(Made::new(SMALL, 3, 20, 7));
    assert!(made.rollout.truths.len() > 5);
    let (network, all) = (network(&made), made.all());
    let replayed = replay(&made, |row, head, _| usize::from(made.rollout.choices[row][head as usize]));
    let mut expected = 0.0;
    for truth in &made.rollout.truths {
        let (row, mask) = (truth.row, mask(&made.rollout, truth.row));
        let [channels_of, chunks_of] =
            [Head::Channels, Head::Chunk].map(|head| mask.indices(head).collect::<Vec<_>>());
        for pair in mask.indices(Head::Pair) {
            for &channels in &channels_of {
                let mut p = [1.0_f64; HEADS];
                let mut chunks = Vec::new();
                ask(&made, &network, row, &replayed[row].memory, |head, logits| {
                    let ln = ln_softmax(logits);
                    let take = match head {
                        Head::Pair => pair,
                        Head::Channels => channels,
                        _ => usize::from(made.rollout.choices[row][head as usize]),
                    };
                    match head {
                        Head::Pair | Head::Channels => p[head as usize] = f64::from(ln[take]).exp(),
                        Head::Chunk => chunks = ln,
                        _ => {}
                    }
                    take
                });
                for &chunk in &chunks_of {
                    let gain = truth.gains[(pair * 10 + channels) * 5 + chunk];
                    let worth = if gain.is_nan() { -10.0 } else { -f64::from(-gain).exp() };
                    let p = p.iter().product::<f64>() * f64::from(chunks[chunk]).exp();
                    expected -= p * worth;
                }
            }
        }
    }
    expected /= made.rollout.truths.len() as f64;
    let learner = Learner::new(made.params.layout().clone(), Device::Flex).unwrap();
    let losses =
        made.with_part(&all, &all, |part| learner.gradient(&made.params, part, &only("hindsight")).losses);
    close(losses.hindsight, expected as f32, "hindsight");
}
