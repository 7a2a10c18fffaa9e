//! Losses against numbers that were worked out by hand.

use burn::tensor::{Device as Backend, Tensor};
use dynamiccl_spec::Head;
use dynamiccl_spec::ids::PAIRS;

use super::made::only;
use crate::learn::Losses;
use crate::learn::chosen::{FORBIDDEN, Targets};
use crate::learn::heads::Said;
use crate::learn::leaves::matrix;
use crate::learn::losses::Figures;

fn rows<const N: usize>(rows: [Vec<f32>; N]) -> Tensor<2> {
    let width = rows[0].len();
    matrix(rows.concat(), [N, width], &Backend::flex())
}

fn column<const N: usize>(numbers: [f32; N]) -> Tensor<2> {
    rows(numbers.map(|x| vec![x]))
}

/// A head with nothing to choose.
fn settled(head: Head) -> Tensor<2> {
    let row: Vec<f32> = (0..head.size()).map(|at| if at == 0 { 0.0 } else { FORBIDDEN }).collect();
    rows([row.clone(), row])
}

fn one_hot(head: Head, at: [usize; 2]) -> Tensor<2> {
    rows(at.map(|at| (0..head.size()).map(|choice| f32::from(u8::from(choice == at))).collect()))
}

/// Two calls: the path is chosen between two with (½, ½) and (¼, ¾), everything else is settled.
fn case() -> (Said, Targets) {
    let ln = |p: f32| p.ln();
    let path = rows([vec![ln(0.5), ln(0.5), FORBIDDEN], vec![ln(0.25), ln(0.75), FORBIDDEN]]);
    let [pair, channels, chunk, threads] =
        [Head::Pair, Head::Channels, Head::Chunk, Head::Threads].map(settled);
    // Means of 0.5 and ln spreads of 1 for the first pair; of the second call beyond what is believed.
    let mut estimates = [vec![0.0; 2 * PAIRS], vec![0.0; 2 * PAIRS]];
    (estimates[0][0], estimates[0][PAIRS], estimates[1][PAIRS]) = (0.5, 1.0, 9.0);
    let said = Said {
        ln_probabilities: [path, pair, channels, chunk, threads],
        estimates: rows(estimates),
        gain: rows([vec![1.0, 0.0], vec![0.0, 0.0]]),
        resource: rows([vec![0.0], vec![0.0]]),
    };
    let targets = Targets {
        masks: Head::ALL.iter().map(|&head| settled(head)).collect::<Vec<_>>().try_into().unwrap(),
        choices: [(Head::Path, [0, 0]), (Head::Pair, [0, 0]), (Head::Channels, [0, 0])]
            .into_iter()
            .chain([(Head::Chunk, [0, 0]), (Head::Threads, [0, 0])])
            .map(|(head, at)| one_hot(head, at))
            .collect::<Vec<_>>()
            .try_into()
            .unwrap(),
        costs: settled(Head::Pair),
        old: column([ln(0.4), ln(0.5)]),
        advantages: column([1.0, -1.0]),
        drawn: column([0.5, 0.5]),
        times: column([-0.5, 2.0]),
        timed: column([0.5, 0.5]),
        gains: column([0.0, 7.0]),
        gained: column([1.0, 0.0]),
    };
    (said, targets)
}

#[track_caller]
fn close(a: f32, b: f64) {
    assert!((f64::from(a) - b).abs() < 1e-5, "{a}, not {b}");
}

fn losses(value_clip: f32) -> Losses {
    let device = Backend::flex();
    let (said, targets) = case();
    let mut figures = Figures::new(&device);
    figures.add_policy(&said, &targets, 0.2);
    figures.add_estimates(&said, &targets);
    let (value, old, returns) = (column([1.0, 0.0]), column([0.5, 1.0]), column([0.0, 0.0]));
    figures.add_value(value, old, returns, value_clip, 0.5);
    Losses::of(figures.weighted(&only("all"), &device).1)
}

#[test]
fn policy_value_entropy_and_likelihoods_are_what_they_are_by_hand() {
    let losses = losses(0.2);
    // Ratios are 1.25 and 0.5: with an advantage the first counts 1.2, with a disadvantage the second 0.8.
    close(losses.policy, -(1.2 - 0.8) / 2.0);
    close(losses.clipped, 1.0);
    close(losses.divergence, ((0.25 - 1.25_f64.ln()) + (-0.5 - 0.5_f64.ln())) / 2.0);
    let entropy = 0.25 * 4.0_f64.ln() + 0.75 * (4.0_f64 / 3.0).ln();
    close(losses.entropy[0], (2.0_f64.ln() + entropy) / 2.0);
    assert_eq!(losses.entropy[1..], [0.0; 4], "a head with nothing to choose has no entropy");
    // Values may move to 0.7 and to 0.8: the worse of both errors counts.
    close(losses.value, (0.5 * 1.0 + 0.5 * 0.64) / 2.0);
    // A spread of e beyond 1, and one of e³, the widest.
    let tau = 0.5 * std::f64::consts::TAU.ln();
    let first = 0.5 * (1.0 / 1.0_f64.exp()).powi(2) + 1.0 + tau;
    let second = 0.5 * (2.0 / 3.0_f64.exp()).powi(2) + 3.0 + tau;
    close(losses.estimate, (first + second) / 2.0);
    close(losses.gain, 0.5 + tau);
}

#[test]
fn without_a_clip_values_may_move_anywhere() {
    close(losses(0.0).value, (0.5 * 1.0 + 0.0) / 2.0);
}
