//! `simulate --curriculum`: how much an oracle wins over NCCL's own choices, tier by tier.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Result;
use dynamiccl_env::curriculum::{Curriculum, Stage};
use dynamiccl_env::headroom::{Cell, mean, sizes, survey};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::world::World;
use dynamiccl_spec::{Bytes, Collective};
use serde::Serialize;

use crate::args::SimulateArgs;
use crate::exit::Ending;
use crate::session::Session;
use crate::table::{Column, Table};

/// Sizes below the first are small, those above the second are large.
const MIDDLE: [u64; 2] = [64 << 10, 64 << 20];

/// What there is to win on the machines of a curriculum.
#[derive(Debug, Serialize)]
struct Report {
    /// Always: no number here was measured.
    simulated: bool,
    /// The curriculum.
    curriculum: String,
    /// Worlds that were drawn.
    worlds: u32,
    /// By tier.
    tiers: Vec<Tier>,
}

/// What there is to win at one tier. Each figure is NCCL's own time over the best setting's.
#[derive(Debug, Serialize)]
struct Tier {
    /// The tier.
    tier: u8,
    /// Geometric mean over all cells.
    headroom: f64,
    /// The same below 64 KiB; none where there is no such cell.
    small: Option<f64>,
    /// From 64 KiB to 64 MiB.
    middle: Option<f64>,
    /// Above.
    large: Option<f64>,
    /// The largest of all cells.
    worst_default: f64,
    /// Where that is.
    worst: Worst,
    /// Cells: collective × size × cluster × nodes.
    cells: usize,
}

/// The cell in which NCCL's own choice is farthest from the best.
#[derive(Debug, Serialize)]
struct Worst {
    cluster: String,
    nodes: u32,
    collective: Collective,
    bytes: u64,
}

/// Surveys every machine of the curriculum.
pub fn run(name: &str, args: &SimulateArgs, session: &Session) -> Result<Ending> {
    let curriculum = Curriculum::load(name)?;
    let constants = ConstantsFile::load(&args.constants.constants)?;
    let worlds: Vec<World> = (0..args.worlds)
        .map(|world| World::draw(&constants, session.seed.wrapping_add(u64::from(world))))
        .collect();
    let mut seen = BTreeSet::new();
    let all = curriculum.stages.iter().flat_map(|stage| machines(stage));
    let machines: Vec<_> =
        all.filter(|(stage, at, nodes)| seen.insert((stage.clusters[*at].name.clone(), *nodes))).collect();
    let progress = session.progress("machines", machines.len() as u64);
    let mut cells: Vec<Cell> = Vec::new();
    for (stage, at, nodes) in machines {
        cells.extend(survey(&stage.clusters[at], &[nodes], &sizes(), &worlds));
        progress.advance(1)?;
    }
    drop(progress);
    let tiers = (0..=4).filter_map(|tier| Tier::of(tier, &cells)).collect();
    let curriculum = curriculum.name;
    session.report("simulate", &Report { simulated: true, curriculum, worlds: args.worlds, tiers })?;
    Ok(Ending::Done)
}

/// The machines of a stage: positions of clusters, and node counts of its tiers.
fn machines(stage: &Stage) -> impl Iterator<Item = (&Stage, usize, u32)> {
    stage.machines().flat_map(move |(at, nodes)| nodes.into_iter().map(move |nodes| (stage, at, nodes)))
}

impl Tier {
    fn of(tier: u8, cells: &[Cell]) -> Option<Tier> {
        let here = || cells.iter().filter(move |cell| cell.tier == tier);
        let [low, high] = MIDDLE;
        let worst = here().max_by(|a, b| a.headroom.total_cmp(&b.headroom))?;
        Some(Tier {
            tier,
            headroom: mean(here())?,
            small: mean(here().filter(|cell| cell.bytes < low)),
            middle: mean(here().filter(|cell| (low..=high).contains(&cell.bytes))),
            large: mean(here().filter(|cell| cell.bytes > high)),
            worst_default: worst.headroom,
            worst: Worst {
                cluster: worst.cluster.clone(),
                nodes: worst.nodes,
                collective: worst.collective,
                bytes: worst.bytes,
            },
            cells: here().count(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# simulated: {} over {} worlds; NCCL's own time / the best setting's",
            self.curriculum, self.worlds
        )?;
        let mut table = Table::new([
            Column::right("tier"),
            Column::right("all sizes"),
            Column::right("< 64K"),
            Column::right("64K-64M"),
            Column::right("> 64M"),
            Column::right("worst"),
            Column::left("where"),
        ]);
        let figure = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.2}"));
        for tier in &self.tiers {
            let Worst { cluster, nodes, collective, bytes } = &tier.worst;
            table.row([
                tier.tier.to_string(),
                figure(Some(tier.headroom)),
                figure(tier.small),
                figure(tier.middle),
                figure(tier.large),
                figure(Some(tier.worst_default)),
                format!("{collective} {} on {nodes} x {cluster}", Bytes(*bytes)),
            ]);
        }
        write!(f, "#\n{table}")
    }
}
