//! What `bench` measures, and how it says it.

use std::fmt;
use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use dynamiccl_env::cluster::CommOptions;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::nccl::Decision;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use serde::Serialize;

use super::decisions::Decisions;
use super::mix::{CALLS, Call, Mix};
use super::steps::steps_per_s;
use super::timing::Stopwatch;
use crate::table::{Column, Table};

/// Least time of the figure that matters most, and of each of the others.
const LEAST: [Duration; 2] = [Duration::from_millis(1200), Duration::from_millis(250)];

/// ns in a µs.
const NANOS: f64 = 1e3;

/// The times of a simulated call and its parts, medians on one core.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whole calls a second.
    sim_calls_per_s: f64,
    /// NCCL's cost table, decision, realised knobs and true time of one call.
    sim_call_ns: f64,
    /// NCCL's cost table.
    cost_table_ns: f64,
    /// NCCL's decision over a table.
    decide_ns: f64,
    /// What becomes of a choice of knobs.
    realise_ns: f64,
    /// The true time in a drawn world, its field included.
    model_ns: f64,
    /// Drawing a world.
    world_draw_us: f64,
    /// Making a simulator of a cluster and a world.
    simulator_us: f64,
    /// Steps of the environment a second on one core: 64 side by side, random legal actions, resets
    /// included.
    env_steps_per_s: f64,
    /// How many times as many on two cores.
    env_two_cores: f64,
    /// A policy's decision of a call that it has decided before.
    decide_memo_ns: f64,
    /// A policy's decision of a call that it has not: encoded, and answered with what is remembered.
    decide_full_ns: f64,
    /// One call taken in by what a policy remembers.
    lstm_step_ns: f64,
    /// Different calls in the mix.
    calls: usize,
    /// Different clusters and node counts in the mix.
    places: usize,
}

impl Report {
    /// Number of timings that [`Report::measure`] takes.
    pub const TIMINGS: u64 = 8 + Decisions::TIMINGS;

    /// Takes all timings.
    pub fn measure(mix: &Mix, constants: &ConstantsFile, seed: u64, stopwatch: &Stopwatch) -> Result<Self> {
        let sim_call_ns = per_call(LEAST[0], mix, stopwatch, simulate)?;
        let decisions = Decisions::measure(mix, seed, LEAST[1], stopwatch)?;
        let [env_steps_per_s, env_two_cores] = stopwatch.step(|| steps_per_s(constants, seed))?;
        Ok(Report {
            sim_calls_per_s: 1e9 / sim_call_ns,
            sim_call_ns,
            cost_table_ns: per_call(LEAST[1], mix, stopwatch, |simulator, call| {
                simulator.communicator().cost_table(call.collective, call.bytes, 1)
            })?,
            decide_ns: per_call(LEAST[1], mix, stopwatch, |simulator, call| {
                simulator.communicator().decide_from(&call.table, call.bytes)
            })?,
            realise_ns: per_call(LEAST[1], mix, stopwatch, |simulator, call| {
                simulator.communicator().realise(call.collective, call.bytes, &call.table, &call.knobs)
            })?,
            model_ns: per_call(LEAST[1], mix, stopwatch, |simulator, call| {
                simulator.micros(call.collective, call.bytes, &call.realised)
            })?,
            world_draw_us: world_draw(constants, seed, stopwatch)?,
            simulator_us: simulators(mix, constants, seed, stopwatch)?,
            env_steps_per_s,
            env_two_cores,
            decide_memo_ns: decisions.memo_ns,
            decide_full_ns: decisions.full_ns,
            lstm_step_ns: decisions.lstm_step_ns,
            calls: mix.places.iter().map(|place| place.calls.len()).sum(),
            places: mix.places.len(),
        })
    }
}

/// One simulated call: what NCCL would do, and what the knobs that were chosen instead really take.
fn simulate(simulator: &Simulator, call: &Call) -> Option<(Decision, f64)> {
    let communicator = simulator.communicator();
    let table = communicator.cost_table(call.collective, call.bytes, 1);
    let decision = communicator.decide_from(&table, call.bytes)?;
    let realised = communicator.realise(call.collective, call.bytes, &table, &call.knobs)?;
    Some((decision, simulator.micros(call.collective, call.bytes, &realised)))
}

/// ns of some work on a call of the mix.
fn per_call<T>(
    least: Duration,
    mix: &Mix,
    stopwatch: &Stopwatch,
    work: impl Fn(&Simulator, &Call) -> T,
) -> Result<f64> {
    stopwatch.time(least, &mix.places, CALLS, |place| {
        for call in &place.calls {
            black_box(work(&place.simulator, black_box(call)));
        }
    })
}

/// µs of drawing a world.
fn world_draw(constants: &ConstantsFile, seed: u64, stopwatch: &Stopwatch) -> Result<f64> {
    let mut next = seed;
    let ns = stopwatch.time(LEAST[1], &[constants], 1, |constants| {
        next = next.wrapping_add(1);
        black_box(World::draw(constants, black_box(next)));
    })?;
    Ok(ns / NANOS)
}

/// µs of making a simulator.
fn simulators(mix: &Mix, constants: &ConstantsFile, seed: u64, stopwatch: &Stopwatch) -> Result<f64> {
    let (world, options) = (World::draw(constants, seed), CommOptions::default());
    let ns = stopwatch.time(LEAST[1], &mix.places, 1, |place| {
        black_box(Simulator::new(black_box(&place.cluster), place.nodes, &options, &world).is_ok());
    })?;
    Ok(ns / NANOS)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([Column::left("what"), Column::right("time"), Column::left("unit")]);
        for (what, time, unit) in [
            ("simulated call", self.sim_call_ns, "ns"),
            ("  cost table", self.cost_table_ns, "ns"),
            ("  decision", self.decide_ns, "ns"),
            ("  knobs realised", self.realise_ns, "ns"),
            ("  true time", self.model_ns, "ns"),
            ("world drawn", self.world_draw_us, "us"),
            ("simulator made", self.simulator_us, "us"),
            ("environment step", 1e9 / self.env_steps_per_s, "ns"),
            ("policy's decision, made before", self.decide_memo_ns, "ns"),
            ("policy's decision, a new one", self.decide_full_ns, "ns"),
            ("policy's LSTM step", self.lstm_step_ns, "ns"),
        ] {
            table.row([what.to_owned(), format!("{time:.1}"), unit.to_owned()]);
        }
        let Report { calls, places, .. } = self;
        writeln!(f, "# one core, medians over {calls} calls on {places} communicators")?;
        write!(f, "#\n{table}")?;
        writeln!(
            f,
            "Summary  {:.2} million simulated calls and {:.2} million environment steps per second on one core; \
             {:.2} times as many steps on two",
            self.sim_calls_per_s / 1e6,
            self.env_steps_per_s / 1e6,
            self.env_two_cores
        )
    }
}
