//! Decision maps: what a policy chooses on a machine, over sizes and collectives, as a picture.
//!
//! A picture is a square of two fields. Above, the colour of a cell is the algorithm that runs and its
//! brightness the protocol; below, brightness is the number of channels. Columns are sizes from 1 KiB to
//! 1 GiB, rows the five collectives in the order of [`Collective::TUNED`].

use std::sync::Arc;

use dynamiccl_env::asking::Asking;
use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::curriculum::{Machines, Stage};
use dynamiccl_env::headroom::sizes;
use dynamiccl_env::job::Shown;
use dynamiccl_policies::guard::Guard;
use dynamiccl_policies::network::Weights;
use dynamiccl_policies::policy::{Policy, PolicyTuner};
use dynamiccl_spec::ids::{ALGORITHMS, PROTOCOLS};
use dynamiccl_spec::{Collective, Pair, Tuner};

/// Machines of a stage that are drawn.
const MACHINES: usize = 4;
/// Pixels of a cell, and of the line between two.
const CELL: usize = 16;
const LINE: usize = 1;
/// What lies between cells.
const GROUND: [u8; 3] = [24, 24, 24];
/// The most channels, which is white.
const MOST_CHANNELS: f32 = 64.0;
/// Protocols from LL to Simple: from dark to bright.
const SHADES: [f32; PROTOCOLS] = [0.55, 0.75, 1.0];
/// Algorithms in NCCL's order: tree, ring, the two CollNets, the two NVLS, PAT.
const HUES: [[u8; 3]; ALGORITHMS] = [
    [80, 200, 120],
    [80, 140, 255],
    [200, 120, 60],
    [240, 170, 60],
    [240, 80, 100],
    [190, 100, 240],
    [240, 230, 90],
];

/// A picture for a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its tag.
    pub tag: String,
    /// Pixels of a side.
    pub side: usize,
    /// Red, green and blue of each pixel, row by row.
    pub rgb: Vec<u8>,
}

/// The machines of a stage, ready to be asked about.
#[derive(Debug)]
pub struct Maps {
    machines: Vec<(String, Asking)>,
}

impl Maps {
    /// The first machines of a stage, each on its largest number of nodes.
    pub fn new(stage: &Stage) -> Self {
        // Who looks at a map knows the machine.
        let shown = Shown { topology: true, ..Shown::NOTHING };
        let asking = |(machines, cluster): (&Machines, &Arc<Cluster>)| {
            let Machines { name, nodes, .. } = machines;
            let nodes = *nodes.iter().max()?;
            let asking = Asking::new(cluster, nodes, &CommOptions::default(), shown).ok()?;
            // A tag is a path: the file of a cluster counts by its stem.
            let stem = std::path::Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
            Some((format!("maps/{stem}x{nodes}"), asking))
        };
        let machines = stage.file.clusters.iter().zip(&stage.clusters).filter_map(asking);
        Maps { machines: machines.take(MACHINES).collect() }
    }

    /// What these weights choose without a history, where nothing holds them back.
    pub fn draw(&self, weights: &Weights) -> Vec<Image> {
        let policy = Arc::new(Policy::new("policy", weights, Guard::Off, 0));
        let draw = |(tag, asking): &(String, Asking)| {
            let mut tuner = PolicyTuner::new(Arc::clone(&policy), None);
            let cells = Collective::TUNED.map(|collective| {
                sizes().into_iter().map(|bytes| chosen(&mut tuner, asking, collective, bytes)).collect()
            });
            image(tag.clone(), &cells)
        };
        self.machines.iter().map(draw).collect()
    }
}

/// What runs: the pair and its channels; none where nothing can.
type Cell = Option<(Pair, u32)>;

fn chosen(tuner: &mut PolicyTuner, asking: &Asking, collective: Collective, bytes: u64) -> Cell {
    let asked = asking.call(collective, bytes, 1);
    let knobs = tuner.decide(&asking.query(&asked), &mut |_| None).knobs;
    let realised = asking.realise(&asked, &knobs)?;
    Some((realised.pair, realised.channels))
}

/// The two fields, one above the other with an empty row between them.
fn image(tag: String, cells: &[Vec<Cell>; Collective::TUNED.len()]) -> Image {
    let columns = cells[0].len();
    let rows = 2 * cells.len() + 1;
    let side = rows.max(columns) * (CELL + LINE) + LINE;
    let mut image = Image { tag, side, rgb: GROUND.repeat(side * side) };
    for (row, cells) in cells.iter().enumerate() {
        for (column, &cell) in cells.iter().enumerate() {
            let Some((pair, channels)) = cell else { continue };
            image.fill([row, column], colour(pair));
            image.fill([row + rows / 2 + 1, column], brightness(channels));
        }
    }
    image
}

impl Image {
    fn fill(&mut self, [row, column]: [usize; 2], colour: [u8; 3]) {
        let corner = |at: usize| at * (CELL + LINE) + LINE;
        for y in corner(row)..corner(row) + CELL {
            let begin = 3 * (y * self.side + corner(column));
            self.rgb[begin..begin + 3 * CELL].copy_from_slice(&colour.repeat(CELL));
        }
    }
}

fn colour(pair: Pair) -> [u8; 3] {
    HUES[pair.algorithm as usize].map(|part| (f32::from(part) * SHADES[pair.protocol as usize]) as u8)
}

fn brightness(channels: u32) -> [u8; 3] {
    let share = (channels.max(1) as f32).log2() / MOST_CHANNELS.log2();
    [(40.0 + 215.0 * share.min(1.0)) as u8; 3]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dynamiccl_env::curriculum::Curriculum;
    use dynamiccl_policies::network::Shape;

    use super::*;

    #[test]
    fn every_pair_has_a_colour_of_its_own() {
        let colours: BTreeSet<[u8; 3]> = Pair::all().map(colour).collect();
        assert_eq!(colours.len(), Pair::all().count());
        assert!(!colours.contains(&GROUND));
        assert!(brightness(1) < brightness(2) && brightness(32) < brightness(64));
    }

    #[test]
    fn a_map_shows_what_nccl_does_where_nothing_is_learned() {
        let stage = &Curriculum::load("smoke").unwrap().stages[0];
        let maps = Maps::new(stage).draw(&Weights::untrained(Shape::default()));
        let tags: Vec<&str> = maps.iter().map(|image| image.tag.as_str()).collect();
        assert_eq!(tags, ["maps/dgx_h100x1", "maps/ib100g_1gpux4"]);
        let image = &maps[0];
        assert_eq!((image.side, image.rgb.len()), (11 * 17 + 1, 3 * 188 * 188));
        let at = |row: usize, column: usize| {
            let pixel = 3 * ((row * 17 + 8) * image.side + column * 17 + 8);
            [image.rgb[pixel], image.rgb[pixel + 1], image.rgb[pixel + 2]]
        };
        // A large allreduce on one NVSwitch node goes over NVLS, a small one does not; between the fields is nothing.
        let nvls = colour(Pair::new(dynamiccl_spec::Algorithm::Nvls, dynamiccl_spec::Protocol::Simple));
        assert_eq!((at(4, 9), at(5, 9)), (nvls, GROUND));
        assert_ne!(at(4, 0), nvls);
        assert_ne!(at(10, 9), GROUND);
    }
}
