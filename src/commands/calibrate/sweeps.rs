//! Sweeps on real ranks as measurements of one machine, whatever their ranks and links.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use dynamiccl_env::calibrate::sweep::group;
use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::measure::sweep::{self, Link, Sweep};
use dynamiccl_env::nccl::Version;

use super::fit::Samples;
use super::logs::release;
use super::report::Source;
use crate::args::CalibrateArgs;
use crate::commands::machine::name;
use crate::words::counted;

/// Why lines of a sweep are left out.
const LEFT_OUT: &str = "the model has no such setting on these nodes";

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
        let mut samples = Samples { groups: Vec::new(), left_out: BTreeMap::new() };
        let mut notes = Vec::new();
        let versions: Vec<Version> =
            sweeps.iter().map(|sweep| args.nccl.unwrap_or_else(|| nccl_of(sweep, &mut notes))).collect();
        let version = versions.first().copied().unwrap_or(Version::V2_28);
        if let Some((other, sweep)) = versions.iter().zip(&sweeps).find(|(other, _)| **other != version) {
            let (file, first) = (name(&sweep.file), name(&sweeps[0].file));
            bail!(
                "{file}: NCCL {other}, but {first} has {version}; fit one after the other, the second to the result of the first"
            );
        }
        for sweep in &sweeps {
            let nodes = if sweep.link == Link::Machine {
                args.nodes.or(sweep.about.nodes).unwrap_or(1)
            } else {
                sweep.ranks
            };
            let (group, left_out) =
                group(cluster, sweep, nodes, version).with_context(|| name(&sweep.file))?;
            samples.groups.push(group);
            if left_out > 0 {
                *samples.left_out.entry(LEFT_OUT.to_owned()).or_default() += left_out;
            }
        }
        let ranks: BTreeSet<u32> = sweeps.iter().map(|sweep| sweep.ranks).collect();
        let ranks = ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let place = format!("{} with {ranks} ranks", counted(sweeps.len() as u32, "sweep"));
        Ok(Swept { samples, source: Source { shape: None, place, version, notes } })
    }
}

/// The release that a sweep says it was measured with; the published ones, which say nothing, had 2.28.
fn nccl_of(sweep: &Sweep, notes: &mut Vec<String>) -> Version {
    sweep.about.nccl.as_deref().map_or(Version::V2_28, |stated| release(Some(stated), notes))
}
