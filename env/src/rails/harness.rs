//! Controllers on the same iterations of the same job: what each adds to the time of a network where everybody
//! reaches everybody.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::Serialize;

use super::control::{Controller, Decision, Past, Request};
use super::job::Job;
use super::run::{Ended, Run};
use super::timing::Jitter;
use super::weather::Weather;
use crate::statistics::deviation;

/// Iterations that are run before those that count, so that ports are where they always are.
const WARM_UP: usize = 1;

/// Iterations that every controller meets.
#[derive(Debug, Clone)]
pub struct Iterations {
    weather: Vec<Weather>,
}

/// What a controller made of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Who decided.
    pub name: String,
    /// Mean seconds of an iteration.
    pub iteration_s: f64,
    /// % that an iteration takes longer than on a network where everybody reaches everybody.
    pub increase: f64,
    /// Standard deviation of that over the repetitions, in points; none where there is one.
    pub increase_std: Option<f64>,
    /// Ports that changed, for each stage and iteration.
    pub reconfigurations: f64,
}

impl Iterations {
    /// So many iterations that count, which vary so much.
    pub fn draw(job: &Job, count: usize, jitter: &Jitter, seed: u64) -> Iterations {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let draw = |_| Weather::draw(&job.graph, &job.profile, jitter, &mut rng);
        Iterations { weather: (0..WARM_UP + count.max(1)).map(draw).collect() }
    }
}

/// All iterations that count, taken together.
pub(super) fn total(job: &Job, iterations: &Iterations, controller: &mut dyn Controller) -> Ended {
    controller.begin();
    let weather = &iterations.weather;
    let mut run = Run::new(job, weather[0].clone()).unwatched();
    let mut sum = Ended { length_us: 0.0, changes: 0 };
    for at in 0..weather.len() {
        while let Some(request) = run.ask() {
            let past = *run.past();
            run.answer(controller.decide(&request, &past));
        }
        let ended = run.turn(weather[(at + 1) % weather.len()].clone());
        if at >= WARM_UP {
            sum = Ended { length_us: sum.length_us + ended.length_us, changes: sum.changes + ended.changes };
        }
    }
    sum
}

/// Judges controllers on the same iterations; several repetitions give a spread. `step` hears of every repetition of
/// each controller, and of the baseline, and stops with its error.
pub fn judge<X>(
    job: &Job,
    repetitions: &[Iterations],
    controllers: &mut [&mut dyn Controller],
    step: impl Fn() -> Result<(), X>,
) -> Result<(f64, Vec<Judged>), X> {
    let free = job.with_delay(0.0);
    let count = |iterations: &Iterations| (iterations.weather.len() - WARM_UP) as f64;
    let all = |job: &Job, controller: &mut dyn Controller| -> Result<Vec<Ended>, X> {
        repetitions.iter().map(|it| step().map(|()| total(job, it, controller))).collect()
    };
    let base: Vec<f64> = all(&free, &mut Free)?.iter().map(|ended| ended.length_us).collect();
    let iterations: f64 = repetitions.iter().map(count).sum();
    let of = |controller: &mut &mut dyn Controller| {
        let ended = all(job, *controller)?;
        let micros: f64 = ended.iter().map(|ended| ended.length_us).sum();
        let increases = ended.iter().zip(&base).map(|(ended, base)| 100.0 * (ended.length_us / base - 1.0));
        let changes: u32 = ended.iter().map(|ended| ended.changes).sum();
        Ok(Judged {
            name: controller.name().to_owned(),
            iteration_s: micros / iterations / 1e6,
            increase: 100.0 * (micros / base.iter().sum::<f64>() - 1.0),
            increase_std: deviation(&increases.collect::<Vec<_>>()),
            reconfigurations: f64::from(changes) / iterations / job.graph.stages as f64,
        })
    };
    let results = controllers.iter_mut().map(of).collect::<Result<_, X>>()?;
    Ok((base.iter().sum::<f64>() / iterations / 1e6, results))
}

/// A network where everybody reaches everybody.
struct Free;

impl Controller for Free {
    fn name(&self) -> &str {
        "baseline"
    }

    fn decide(&mut self, _: &Request, _: &Past) -> Decision {
        Decision::RULE
    }
}
