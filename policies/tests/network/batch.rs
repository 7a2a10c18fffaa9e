//! A row of a batch has the bits that it has by itself.

use dynamiccl_policies::network::{Acted, Answers, Batch, Memory, Network, Rows, Shape, greedy};
use dynamiccl_policies::probe::{Call, weights};
use dynamiccl_policies::random::Random;
use dynamiccl_spec::features::{CALL_WIDTH, CONTEXT_WIDTH};
use dynamiccl_spec::{Head, Mask};

use crate::reference::ODD;

/// The most rows.
const ROWS: usize = 13;

/// A choice that is not the most probable, as training makes them.
fn sampled(number: usize, head: Head, logits: &[f32]) -> usize {
    let mut random = Random::of(number as u64, head as u64);
    let allowed: Vec<usize> = (0..logits.len()).filter(|&at| logits[at] > f32::NEG_INFINITY).collect();
    if random.below(2) == 0 || allowed.is_empty() {
        greedy(logits, 0)
    } else {
        allowed[random.below(allowed.len())]
    }
}

struct Made {
    contexts: Vec<f32>,
    masks: Vec<Mask>,
    memories: Vec<Memory>,
    alone: Vec<(Acted, Vec<f32>, Vec<Vec<f32>>)>,
}

fn made(network: &Network, rows: usize, random: &mut Random) -> Made {
    let (mut scratch, mut job) = (network.scratch(), network.job_sum());
    let mut made = Made { contexts: Vec::new(), masks: Vec::new(), memories: Vec::new(), alone: Vec::new() };
    for row in 0..rows {
        let drawn = Call::draw(random);
        let query = drawn.query();
        let mut memory = network.memory();
        let past: Vec<f32> = (0..network.remembered()).map(|_| random.uniform() as f32).collect();
        network.refresh(&past, &mut memory, &mut scratch);
        let (mut context, mut call) = ([0.0; CONTEXT_WIDTH], [0.0; CALL_WIDTH]);
        query.encoder.context(query.call, &mut context);
        query.encoder.call(query.call, &mut call);
        network.sum_job(query.encoder.job(), &mut job);
        let mut seen = Vec::new();
        let acted = network.act(&job, &call, &memory, &query.gated.mask, &mut scratch, |head, logits| {
            seen.push(logits.to_vec());
            sampled(row, head, logits)
        });
        let embedding = network.embed(&job, &call, &mut scratch).to_vec();
        made.contexts.extend(context);
        made.masks.push(query.gated.mask);
        made.memories.push(memory);
        made.alone.push((acted, embedding, seen));
    }
    made
}

fn rows_are_what_they_are_alone(shape: Shape) {
    let network = Network::new(&weights(shape, 4));
    let (mut batch, mut random) = (Batch::new(&network), Random::new(9));
    for rows in [1, 2, ROWS, 5, 0] {
        let Made { contexts, masks, memories, alone } = made(&network, rows, &mut random);
        let mut acted = vec![Acted::default(); rows];
        let mut estimates = vec![Default::default(); rows];
        let mut embeddings = vec![0.0; rows * shape.embedding];
        let mut seen = vec![Vec::new(); rows];
        let asked = Rows { contexts: &contexts, masks: &masks, memories: &memories };
        let mut into = Answers { acted: &mut acted, estimates: &mut estimates, embeddings: &mut embeddings };
        let choose = |row: usize, head, logits: &[f32]| {
            seen[row].push(logits.to_vec());
            sampled(row, head, logits)
        };
        batch.act(&network, asked, choose, &mut into);
        for (row, (alone, embedding, logits)) in alone.iter().enumerate() {
            assert_eq!(&acted[row], alone, "row {row} of {rows}");
            assert_eq!(&embeddings[row * shape.embedding..][..shape.embedding], embedding);
            assert_eq!(&seen[row], logits);
        }
    }
}

fn steps_are_what_they_are_alone(shape: Shape) {
    let network = Network::new(&weights(shape, 5));
    let (mut batch, mut random) = (Batch::new(&network), Random::new(2));
    let mut scratch = network.scratch();
    let mut together = vec![network.memory(); ROWS];
    let mut alone = together.clone();
    for which in [vec![3], (0..ROWS).collect(), vec![12, 0, 7], vec![]] {
        let calls: Vec<f32> =
            (0..which.len() * network.remembered()).map(|_| (2.0 * random.uniform() - 1.0) as f32).collect();
        batch.step(&network, &which, &calls, &mut together);
        for (call, &at) in calls.chunks_exact(network.remembered()).zip(&which) {
            network.step(call, &mut alone[at], &mut scratch);
        }
        assert_eq!(together, alone);
    }
}

#[test]
fn a_row_decides_as_it_does_alone() {
    rows_are_what_they_are_alone(Shape::default());
    rows_are_what_they_are_alone(ODD);
}

#[test]
fn a_row_remembers_as_it_does_alone() {
    steps_are_what_they_are_alone(Shape::default());
    steps_are_what_they_are_alone(ODD);
}
