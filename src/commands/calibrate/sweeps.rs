//! Sweeps on real ranks as measurements of one machine, whatever their ranks and links.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use dynamiccl_env::calibrate::sweep::{LeftOut, group};
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::measure::Circumstances;
use dynamiccl_env::measure::sweep::{self, Sweep};
use dynamiccl_env::nccl::Version;
use dynamiccl_env::swept::{self, Machine, VERSION};

use super::fit::Samples;
use super::report::Source;
use crate::args::CalibrateArgs;
use crate::commands::machine::name;
use crate::words::counted;

/// What sweeps measured together.
#[derive(Debug)]
pub struct Swept {
    /// Their lines as NCCL ran them.
    pub samples: Samples,
    /// Where they come from.
    pub source: Source,
}

impl Swept {
    /// Reads all sweeps.
    pub fn read(args: &CalibrateArgs, cluster: &Cluster) -> Result<Self> {
        let sweeps: Vec<Vec<Sweep>> =
            args.sweep.iter().map(|file| sweep::read(file)).collect::<Result<_, _>>()?;
        let sweeps = sweeps.concat();
        let machines: Vec<Machine> =
            sweeps.iter().map(|sweep| machine(args, cluster, sweep)).collect::<Result<_>>()?;
        let version = one_release(&sweeps, &machines)?;
        one_kind(&sweeps)?;
        let mut samples = Samples { groups: Vec::new(), left_out: BTreeMap::new() };
        let mut notes = Vec::new();
        for (sweep, machine) in sweeps.iter().zip(&machines) {
            let (group, left_out) = group(machine, sweep).with_context(|| name(&sweep.file))?;
            let said = machine.release.note().into_iter().chain(sweep.about.circumstances.note());
            notes.extend(said.map(|note| format!("{}: {note}", name(&sweep.file))));
            samples.groups.push(group);
            for (why, lines) in reasons(left_out, version).into_iter().filter(|(_, lines)| *lines > 0) {
                *samples.left_out.entry(why).or_default() += lines;
            }
        }
        let ranks: BTreeSet<u32> = sweeps.iter().map(|sweep| sweep.ranks).collect();
        let ranks = ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let place = format!("{} with {ranks} ranks", counted(sweeps.len() as u32, "sweep"));
        Ok(Swept { samples, source: Source { shape: None, place, version, notes } })
    }
}

/// Why lines of a sweep are left out.
fn reasons(left_out: LeftOut, version: Version) -> [(String, usize); 2] {
    [
        ("the model has no such setting on these nodes".to_owned(), left_out.settings),
        (format!("NCCL {version} lets no tuner set the chunk size"), left_out.chunks),
    ]
}

/// What a sweep was measured on: as its file says, unless these words say otherwise.
fn machine(args: &CalibrateArgs, cluster: &Cluster, sweep: &Sweep) -> Result<Machine> {
    let mut about = sweep.about.clone();
    ensure!(
        args.nodes.is_none() || about.shared != Some(true),
        "--nodes {}: the ranks of {} shared a GPU, so that each was a node of its own to NCCL; leave --nodes out",
        args.nodes.unwrap_or_default(),
        name(&sweep.file)
    );
    about.nccl = args.nccl.map(|version| version.name().to_owned()).or(about.nccl);
    if args.nodes.is_some() {
        (about.nodes, about.ranks_per_node) = (args.nodes, None);
    }
    Ok(swept::machine(sweep.ranks, sweep.link, &about, Some(cluster), &sweep.file)?)
}

/// The release that all sweeps were measured with.
fn one_release(sweeps: &[Sweep], machines: &[Machine]) -> Result<Version> {
    let version = |machine: &Machine| machine.release.version;
    let first = machines.first().map_or(VERSION, version);
    if let Some((sweep, other)) = sweeps.iter().zip(machines).find(|(_, other)| version(other) != first) {
        let (file, other, of_first) = (name(&sweep.file), version(other), name(&sweeps[0].file));
        bail!(
            "{file}: NCCL {other}, but {of_first} has {first}; fit one after the other, the second to the result of the first"
        );
    }
    Ok(first)
}

/// Refuses sweeps under circumstances that do not agree: calls do not take the same time in them.
fn one_kind(sweeps: &[Sweep]) -> Result<()> {
    let of = |sweep: &Sweep| words(&sweep.about.circumstances);
    for (at, sweep) in sweeps.iter().enumerate() {
        let disagrees = |other: &&Sweep| !other.about.circumstances.agree(&sweep.about.circumstances);
        if let Some(other) = sweeps[..at].iter().find(disagrees) {
            let [this, that] = [sweep, other].map(|sweep| name(&sweep.file));
            bail!(
                "{this}: measured with {}, but {that} with {}; fit each to a cluster file of its own",
                of(sweep),
                of(other)
            );
        }
    }
    Ok(())
}

/// What is unusual about circumstances, or that nothing is.
fn words(circumstances: &Circumstances) -> String {
    let unusual = circumstances.to_string();
    if unusual.is_empty() { "nothing unusual".to_owned() } else { unusual }
}
