//! The simulator: NCCL's own decision and the true time of every setting, side by side.
//!
//! It joins one communicator (what NCCL would do) with one world (what that takes) and keeps them
//! apart: no true time ever reaches NCCL's decision, and NCCL's constants never change with a world.

use std::sync::Arc;

use dynamiccl_spec::{Choice, Collective, CostTable, Head, Knobs, Mask, Path};

use crate::cluster::{Cluster, ClusterError, CommOptions};
use crate::model::{Call, Fabric};
use crate::nccl::{Communicator, Realised};
use crate::world::{Field, Modes, World};

/// One communicator in one world.
#[derive(Debug, Clone)]
pub struct Simulator {
    communicator: Communicator,
    fabric: Fabric,
    field: Option<Arc<Field>>,
}

/// A setting of the knobs, as NCCL runs it, and its true time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// What was asked for.
    pub knobs: Knobs,
    /// What NCCL makes of it.
    pub realised: Realised,
    /// The true time, µs.
    pub micros: f64,
}

impl Setting {
    /// Channels that it takes of the GPU: none where switches reduce.
    pub fn channels(&self) -> u32 {
        if self.knobs.path == Path::InNetwork { 0 } else { self.realised.channels }
    }
}

impl Simulator {
    /// A communicator of a cluster in a world.
    pub fn new(
        cluster: &Cluster,
        nodes: u32,
        options: &CommOptions,
        world: &World,
    ) -> Result<Self, ClusterError> {
        let communicator = cluster.communicator(nodes, options)?;
        let (local, heads) = (communicator.ranks_per_node(), communicator.nvls_heads());
        let fabric = Fabric::new(cluster, nodes, local, heads, world.constants());
        Ok(Simulator { communicator, fabric, field: world.field(cluster, nodes) })
    }

    /// NCCL's side.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// The true time of a realised setting: its noise-free mean in calm conditions.
    pub fn micros(&self, collective: Collective, bytes: u64, realised: &Realised) -> f64 {
        self.micros_of(&self.fabric, &Call::of(collective, bytes, realised))
    }

    /// What the links do: calm, with nothing beside. Surroundings and conditions make others of it.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The true time of a call on a fabric made of this one's; a stall of the conditions is not in it.
    pub fn micros_of(&self, fabric: &Fabric, call: &Call) -> f64 {
        let field = self
            .field
            .as_ref()
            .map_or(1.0, |f| f.factor(call.collective, call.pair, call.channels, call.bytes));
        fabric.time(call) * field
    }

    /// The two modes of a setting, where the world gives it two.
    pub fn modes(&self, bytes: u64, realised: &Realised) -> Option<Modes> {
        self.field.as_ref().and_then(|field| field.modes(realised.pair, realised.channels, bytes))
    }

    /// NCCL's own choice with its true time.
    pub fn own(&self, collective: Collective, bytes: u64) -> Option<Setting> {
        let table = self.communicator.cost_table(collective, bytes, 1);
        self.setting(collective, bytes, &table, Knobs::OWN)
    }

    /// Every distinct setting. Of requests that NCCL caps to the same launch only the largest is
    /// listed: it says "as many as NCCL allows".
    pub fn settings(&self, collective: Collective, bytes: u64) -> Vec<Setting> {
        let table = self.communicator.cost_table(collective, bytes, 1);
        let mut settings: Vec<Setting> = Vec::new();
        let mask = Mask::ALL.only(Head::Path, Path::Nccl.id()).with_pairs(table.mask());
        for knobs in knobs_in(&mask) {
            let Some(setting) = self.setting(collective, bytes, &table, knobs) else { continue };
            match settings.iter_mut().find(|known| same_launch(known, &setting)) {
                Some(known) => *known = setting,
                None => settings.push(setting),
            }
        }
        settings
    }

    /// The fastest setting; never slower than NCCL's own, which is one of them.
    pub fn best(&self, collective: Collective, bytes: u64) -> Option<Setting> {
        let own = self.own(collective, bytes)?;
        let settings = self.settings(collective, bytes);
        Some(settings.into_iter().fold(own, |best, s| if s.micros < best.micros { s } else { best }))
    }

    fn setting(
        &self,
        collective: Collective,
        bytes: u64,
        table: &CostTable,
        knobs: Knobs,
    ) -> Option<Setting> {
        let realised = self.communicator.realise(collective, bytes, table, &knobs)?;
        Some(Setting { knobs, realised, micros: self.micros(collective, bytes, &realised) })
    }
}

/// The knobs that a mask allows, in the order of its [`choices`].
pub(crate) fn knobs_in(mask: &Mask) -> impl Iterator<Item = Knobs> + '_ {
    choices(mask).filter_map(|choice| choice.knobs())
}

/// The choices that a mask allows, the first values of each head first. NCCL's knobs mean nothing to a synthesised
/// schedule, which comes once.
pub(crate) fn choices(mask: &Mask) -> impl Iterator<Item = Choice> + '_ {
    let path = |path: usize| if path == Path::Synthesised.id() { first_of(mask) } else { *mask };
    mask.indices(Head::Path).flat_map(move |at| {
        let mask = path(at);
        let each = move |head: Head| {
            (0..head.size()).filter(move |&index| mask.allows(head, index)).map(|index| index as u8)
        };
        each(Head::Pair).flat_map(move |pair| {
            each(Head::Threads).flat_map(move |threads| {
                each(Head::Chunk).flat_map(move |chunk| {
                    each(Head::Channels)
                        .map(move |channels| Choice([at as u8, pair, channels, chunk, threads]))
                })
            })
        })
    })
}

/// The first value of each head that a mask allows, whatever the path.
fn first_of(mask: &Mask) -> Mask {
    let heads = [Head::Pair, Head::Channels, Head::Chunk, Head::Threads];
    heads
        .into_iter()
        .fold(*mask, |mask, head| mask.indices(head).next().map_or(mask, |first| mask.only(head, first)))
}

/// What tells launches apart: who carries the call, pair, channels, threads, chunk.
pub(crate) type Launch = (Path, usize, u32, u32, u64);

/// The launch that knobs give. A synthesised schedule is the same one whatever NCCL's knobs are.
pub(crate) fn launch(knobs: &Knobs, realised: &Realised) -> Launch {
    if knobs.path == Path::Synthesised {
        return (knobs.path, 0, 0, 0, 0);
    }
    let Realised { pair, channels, threads, chunk_bytes, .. } = *realised;
    (knobs.path, pair.index(), channels, threads, chunk_bytes)
}

/// Whether two settings run alike.
pub(crate) fn same_launch(a: &Setting, b: &Setting) -> bool {
    launch(&a.knobs, &a.realised) == launch(&b.knobs, &b.realised)
}
