//! The reader survives whatever a file has become: it never panics, and never holds more than four times
//! the file.
//!
//! DYNAMICCL_MUTATIONS says how many files are tried; the default is what every run of the tests can
//! afford. The histogram of answers is printed with `-- --nocapture`.

mod counting;
mod crowds;
mod mutate;

use std::collections::BTreeMap;
use std::time::Instant;

use dynamiccl_policies::frozen::{About, Frozen, Training};
use dynamiccl_policies::network::{Shape, Weights};
use dynamiccl_policies::random::Random;
use dynamiccl_spec::{Gate, GateSet};

/// Files that are tried unless the environment says otherwise.
const TRIED: u64 = 20_000;
/// How many times its own size a file may take.
const MOST: usize = 4;

/// A policy whose file is about as small as files get.
pub fn tiny() -> Vec<u8> {
    let width = Shape::GRAIN;
    let shape = Shape { embedding: width, memory: width, expert: width, resource: width };
    let mut weights = Weights::untrained(shape);
    let mut random = Random::new(1);
    for (name, _) in shape.tensors() {
        let tensor = weights.get_mut(name).expect("a tensor of the network");
        tensor.iter_mut().for_each(|x| *x = random.normal() as f32);
    }
    let about = About {
        name: "tiny".to_owned(),
        gates: Gate::ALL.iter().fold(GateSet::default(), |gates, &gate| gates.with(gate)),
        nccl: vec!["2.30".to_owned()],
        margin: 1.0,
        training: Training { seeds: vec![1, 2], steps: 1000, ..Training::default() },
        results: vec![("speedup.tier1".to_owned(), 1.25)],
    };
    Frozen { weights, about }.to_bytes()
}

/// What the reader says about a file, in one word, and how many times its size it takes. Fails where that is
/// too much.
#[track_caller]
fn read(bytes: &[u8]) -> (String, f64) {
    let before = counting::start();
    let read = Frozen::read(bytes);
    let most = counting::peak().saturating_sub(before);
    assert!(most <= MOST * bytes.len(), "{most} bytes for a file of {}: {read:?}", bytes.len());
    let word = match read {
        Ok(_) => "readable".to_owned(),
        Err(error) => {
            assert!(error.to_string().len() < 1000, "{error}");
            let shown = format!("{error:?}");
            shown.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
        }
    };
    (word, most as f64 / bytes.len() as f64)
}

#[test]
fn the_reader_survives_mutated_files() {
    let tried = std::env::var("DYNAMICCL_MUTATIONS").ok().map_or(TRIED, |n| n.parse().expect("a number"));
    let valid = tiny();
    assert_eq!(read(&valid).0, "readable");
    let (mut answers, mut most, began) = (BTreeMap::<String, u64>::new(), 0.0_f64, Instant::now());
    for seed in 0..tried {
        let mutated = mutate::file(&valid, &mut Random::of(4, seed));
        let (answer, times) = read(&mutated);
        *answers.entry(answer).or_default() += 1;
        most = most.max(times);
    }
    let (size, took) = (valid.len(), began.elapsed());
    println!("{tried} mutated files of about {size} bytes in {took:.1?}, {most:.2} times the file at most");
    println!("{answers:#?}");
    assert!(tried < TRIED || answers.len() > 20, "mutations reach too little: {answers:?}");
}

#[test]
fn no_header_makes_the_reader_hold_more_than_it_may() {
    let most = crowds::all(&tiny()).iter().map(|crowd| read(crowd).1).fold(0.0, f64::max);
    println!("headers made to be large: {most:.2} times the file at most");
    assert!(most > 1.0, "they are not large at all");
}
