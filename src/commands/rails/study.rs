//! From the words to a job and its controllers, and all of them on the same iterations.

use anyhow::{Result, ensure};
use dynamiccl_agent::subject::actor::Actor;
use dynamiccl_env::curriculum::Kind;
use dynamiccl_env::rails::{
    Always, Controller, Fabric, Greedy, Iterations, Jitter, Job, Plan as Hindsight, Technology, Timing,
    judge, paper_recipe,
};
use dynamiccl_env::workload::{ModelShape, Recipe};

use super::report::{Point, Report};
use crate::args::RailsArgs;
use crate::commands::actor;
use crate::interrupt::Interrupted;
use crate::progress::Progress;
use crate::session::Session;

/// The delay where none is named, in µs.
const USUAL_DELAY: f64 = 100e3;
/// Delays of the curve, in ms.
pub const CURVE: [f64; 10] = [0.0, 1.0, 10.0, 15.0, 25.0, 50.0, 100.0, 200.0, 500.0, 1000.0];

/// What will be run.
pub struct Plan {
    job: Job,
    hoisted: Job,
    jitter: Jitter,
    repetitions: u32,
    seed: u64,
    learned: Option<Actor>,
    iterations: u32,
}

impl Plan {
    /// Everything that can fail.
    pub fn new(args: &RailsArgs, seed: u64) -> Result<Self> {
        let job = job(args)?;
        let jitter = Jitter { compute: args.jitter, surprise: args.surprise };
        jitter.check()?;
        let varies = jitter != Jitter::default();
        let repetitions = if varies { args.repetitions } else { 1 };
        let learned = actor::open(Kind::Rails, &args.policy)?;
        let hoisted = job.hoisted()?;
        Ok(Plan { hoisted, job, jitter, repetitions, seed, learned, iterations: args.iterations })
    }

    /// Judges all controllers on the same iterations, and the simple ones over all delays.
    pub fn run(mut self, session: &Session) -> Result<Report> {
        let progress = session.progress("rails", self.steps());
        let repetitions = self.draw(&progress)?;
        let step = || progress.advance(1);
        let mut plan = Hindsight::search(&self.job, &repetitions[0], || progress.advance(0))?;
        let (mut demand, mut rule, mut split) =
            (Always::ON_DEMAND, Always::PROVISIONED, Always::STATIC_SPLIT);
        let mut greedy = Greedy;
        let mut all: Vec<&mut dyn Controller> =
            vec![&mut demand, &mut rule, &mut split, &mut greedy, &mut plan];
        if let Some(learned) = &mut self.learned {
            all.push(learned);
        }
        let (baseline_s, controllers) = judge(&self.job, &repetitions, &mut all, step)?;
        let hoisted = judge(&self.hoisted, &repetitions, &mut [&mut Greedy], step)?.1[0].iteration_s;
        let point = |delay_ms| self.point(delay_ms, &repetitions, step);
        let curve = CURVE.into_iter().map(point).collect::<Result<_>>()?;
        let found = |name: &str| controllers.iter().find(|result| result.name == name).map(|r| r.increase);
        let recipe = &self.job.recipe;
        Ok(Report {
            simulated: true,
            model: recipe.model.name.clone(),
            pp: recipe.layout.pp,
            fsdp: recipe.layout.dp,
            tp: recipe.layout.tp,
            micro_batches: recipe.micro_batches,
            gflops: self.job.timing.flops_per_us / 1e3,
            delay_ms: self.job.fabric.delay_us / 1e3,
            jitter: self.jitter.compute,
            surprise: self.jitter.surprise,
            iterations: self.iterations,
            repetitions: repetitions.len(),
            baseline_s,
            on_demand: found("on_demand"),
            provisioned: found("provisioned"),
            learned: self.learned.as_ref().and_then(|_| found("learned")),
            hoisted: 100.0 * (hoisted / baseline_s - 1.0),
            windows_ms: self.job.profile.windows.iter().map(|us| us / 1e3).collect(),
            notes: notes(self.learned.is_some(), repetitions.len()),
            controllers,
            curve,
        })
    }

    /// Repetitions that are drawn, and those of every controller that is judged, beside the baseline each time.
    fn steps(&self) -> u64 {
        let judged = 1 + 5 + u64::from(self.learned.is_some());
        let (hoisted, point) = (1 + 1, 1 + 4);
        u64::from(self.repetitions) * (1 + judged + hoisted + CURVE.len() as u64 * point)
    }

    fn draw(&self, progress: &Progress) -> Result<Vec<Iterations>> {
        let draw = |at| {
            progress.advance(1)?;
            let seed = dynamiccl_env::gym::seed_of(self.seed, at as usize);
            Ok(Iterations::draw(&self.job, self.iterations as usize, &self.jitter, seed))
        };
        (0..self.repetitions).map(draw).collect()
    }

    fn point(
        &self,
        delay_ms: f64,
        repetitions: &[Iterations],
        step: impl Fn() -> Result<(), Interrupted>,
    ) -> Result<Point> {
        let job = self.job.with_delay(delay_ms * 1e3);
        let (mut demand, mut rule, mut split) =
            (Always::ON_DEMAND, Always::PROVISIONED, Always::STATIC_SPLIT);
        let mut all: [&mut dyn Controller; 4] = [&mut demand, &mut rule, &mut split, &mut Greedy];
        let (_, results) = judge(&job, repetitions, &mut all, step)?;
        let [on_demand, provisioned, static_split, greedy] =
            [0, 1, 2, 3].map(|at: usize| results[at].increase);
        Ok(Point { delay_ms, on_demand, provisioned, static_split, greedy })
    }
}

fn job(args: &RailsArgs) -> Result<Job> {
    let delay = match &args.technology {
        Some(name) => Technology::named(name)?.delay_us,
        None => args.delay.unwrap_or(USUAL_DELAY),
    };
    let paper = paper_recipe(args.pp, args.fsdp, args.micro_batches.unwrap_or(args.pp));
    let mut model = ModelShape::preset(&args.model)?;
    model.sequence = paper.model.sequence;
    let mut timing = Timing::default();
    if let Some(gflops) = args.gflops {
        timing.flops_per_us = f64::from(gflops) * 1e3;
    }
    let job = Job::new(Recipe { model, ..paper }, timing, Fabric::default().with_delay(delay))?;
    let shifts = job.profile.windows.len();
    ensure!(shifts > 0, "--pp {} --fsdp {}: circuits never change; give both 2 or more", args.pp, args.fsdp);
    Ok(job)
}

fn notes(learned: bool, repetitions: usize) -> Vec<String> {
    let of =
        if repetitions > 1 { format!(" of the first of {repetitions} repetitions") } else { String::new() };
    let mut notes = vec![
        format!("hindsight has seen the iterations{of}: it says what is reachable, and no controller can be it"),
        "hoisted is advice for the framework (gather a stage's parameters when the iteration begins) and is counted \
         for nobody: neither a control plane nor a tuner can do it"
            .to_owned(),
    ];
    if !learned {
        notes.push(
            "learned: no policy was asked for; --policy learned is the one that comes with the program"
                .to_owned(),
        );
    }
    notes
}
