//! The tasks on which MRACO is judged: operators × sizes × clusters of TuCCL's evaluation.

use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::tuccl::RingSetting;
use dynamiccl_env::world::World;
use dynamiccl_policies::random::Random;
use dynamiccl_policies::search::mraco::Schedule;
use dynamiccl_policies::search::{Mraco, Point, Search, drive};
use dynamiccl_policies::settings::tuccl::{self, TucclSetting};
use dynamiccl_spec::Collective;
use dynamiccl_spec::math::exp;

/// Spread of one call's ln time; a full measurement is the mean of as many calls as the schedule has parts.
const JITTER: f64 = 0.05;

/// One thing to tune, with the true time of every setting.
pub struct Task {
    /// Operator, size, cluster and nodes.
    pub name: String,
    /// True µs by position in the space.
    pub surface: Vec<f64>,
}

/// What came of one search.
pub struct Outcome {
    /// Full measurements spent.
    pub trials: f64,
    /// True time of the best of all settings over that of the setting found.
    pub quality: f64,
}

/// Drawn worlds in which MRACO is judged beside the nominal one. There every protocol with every channel count
/// is off from the model by a factor of its own; along threads and buffers a surface stays the model's.
pub const DRAWN: [u64; 4] = [1, 2, 3, 4];

/// Sixteen tasks of a world, the nominal one without a seed: two operators, four sizes, one node and several,
/// V100 and A100.
pub fn tasks(world: Option<u64>) -> Vec<Task> {
    let constants = ConstantsFile::load("full").unwrap();
    let mut tasks = Vec::new();
    for (cluster, nodes, sizes) in [
        ("dgx1_v100", 1, [64 << 10, 16 << 20]),
        ("dgx1_v100", 2, [1 << 20, 256 << 20]),
        ("dgx_a100", 1, [64 << 10, 16 << 20]),
        ("dgx_a100", 2, [1 << 20, 256 << 20]),
    ] {
        let machine = Cluster::load(cluster).unwrap();
        let world = world.map_or_else(|| World::nominal(&constants), |seed| World::draw(&constants, seed));
        let simulator = Simulator::new(&machine, nodes, &CommOptions::default(), &world).unwrap();
        for collective in [Collective::AllGather, Collective::AllReduce] {
            for bytes in sizes {
                let name = format!("{collective} {:>9} KiB {cluster} x{nodes}", bytes >> 10);
                tasks.push(Task { name, surface: surface(&simulator, collective, bytes) });
            }
        }
    }
    tasks
}

fn surface(simulator: &Simulator, collective: Collective, bytes: u64) -> Vec<f64> {
    let space = tuccl::space();
    let micros = |point: &Point| {
        let TucclSetting { protocol, channels, threads, buffer } = tuccl::setting(point);
        simulator.ring_micros(collective, bytes, &RingSetting { protocol, channels, threads, buffer })
    };
    (0..space.points()).map(|index| micros(&space.point(index))).collect()
}

/// Runs MRACO until it says that it is done.
pub fn mraco(task: &Task, seed: u64) -> Outcome {
    let space = tuccl::space();
    let mut noise = Random::of(seed, 1);
    let parts = f64::from(Schedule::FULL.most);
    let mut search = Mraco::new(space.clone(), tuccl::DEFAULT, &tuccl::widths(), Schedule::FULL, seed);
    let found = drive(&mut search, f64::INFINITY, |trial| {
        let spread = JITTER / (parts * trial.resource).sqrt();
        task.surface[space.index(&trial.point)] * exp(spread * noise.normal())
    });
    let best = task.surface.iter().copied().fold(f64::INFINITY, f64::min);
    let found = task.surface[space.index(&found.unwrap().point)];
    Outcome { trials: search.spent(), quality: best / found }
}

/// The middle of an odd number of values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
