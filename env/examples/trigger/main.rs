//! How soon the trigger sees changes of the world, how many it misses, and how often it cries wolf.
//!
//!     cargo run --release -p dynamiccl-env --example trigger [WORLDS [SEED]]
//!
//! Times come from the simulator, in drawn worlds, with the noise of `world`; changes are put in by hand.
//! Every line stands for WORLDS worlds (40 unless said otherwise) of each of three seeds; `±` is the
//! standard deviation over the seeds. `docs/trigger.md` shows the table.

mod study;

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use dynamiccl_env::trigger::{Key, Ran, Trigger, TriggerConfig};
use dynamiccl_spec::Collective;

use study::{Change, JITTERS, Outcome, PLACES, Place};

const SEEDS: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let worlds = words.next().map_or(Ok(40), |word| word.parse())?;
    let seed: u64 = words.next().map_or(Ok(1), |word| word.parse())?;
    println!("# {worlds} worlds of each of {SEEDS} seeds from {seed}");
    println!("| place | jitter | change | shift | delay, median | p90 | missed, % | false per 1,000 |");
    println!("|---|---|---|---|---|---|---|---|");
    for place in PLACES {
        for (name, factor) in JITTERS {
            for change in Change::ALL {
                let outcomes: Vec<Outcome> = (0..SEEDS)
                    .map(|i| Place::load(place)?.study(change, factor, worlds, seed + i))
                    .collect::<Result<_, _>>()?;
                line(place.0, name, change, &outcomes);
            }
        }
    }
    println!("\n{:.0} ns per call", nanos());
    Ok(())
}

fn line(place: &str, jitter: &str, change: Change, outcomes: &[Outcome]) {
    let of = |figure: fn(&Outcome) -> f64| spread(outcomes.iter().map(figure));
    let shift = outcomes.iter().map(|outcome| outcome.shift).sum::<f64>() / outcomes.len() as f64;
    let name = change.name();
    if change.is_real() && shift.abs() < study::LEAST_SHIFT {
        return;
    }
    let (delay, p90, missed) = if change.is_real() {
        (of(Outcome::median), of(Outcome::p90), of(Outcome::missed))
    } else {
        ("-".into(), "-".into(), "-".into())
    };
    println!(
        "| {place} | {jitter} | {name} | {shift:+.2} | {delay} | {p90} | {missed} | {} |",
        of(Outcome::false_per_1000)
    );
}

/// Mean ± standard deviation.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    format!("{mean:.1} ± {:.1}", (square / (values.len() - 1) as f64).sqrt())
}

/// What a call of the trigger takes, median of rounds, over a dozen kinds and four settings of each.
fn nanos() -> f64 {
    const CALLS: u32 = 4096;
    let mut trigger = Trigger::new(TriggerConfig::default(), 2);
    let key = |i: u32| Key::new((i % 2) as u16, Collective::AllReduce, 1 << (10 + i % 12));
    let micros = |i: u32| 100.0 + f64::from(i.wrapping_mul(2_654_435_761) >> 27);
    let round = |_| {
        let start = Instant::now();
        for i in 0..CALLS {
            let ran = Ran(i.wrapping_mul(40_503) >> 13 & 3);
            black_box(trigger.observe(key(black_box(i)), ran, micros(i), 100.0));
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    let mut rounds: Vec<f64> = (0..301).map(round).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[150]
}
