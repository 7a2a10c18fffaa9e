//! What is known of the communicators of one size: a process holds several, and NCCL says of each only how
//! large it is.

use dynamiccl_spec::context::TIERS;
use dynamiccl_spec::{JobContext, NetLink, NodeLink, Parallelism, Role};
use serde::Deserialize;

/// One `[[communicator]]`. The first that matches holds.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Rule {
    ranks: Option<Sizes>,
    nodes: Option<Sizes>,
    role: Option<Role>,
    parallelism: Option<Parallelism>,
    tier_max: Option<u8>,
    tier_mix: Option<[f32; TIERS]>,
    intra: Option<NodeLink>,
    inter: Option<NetLink>,
    in_network: Option<bool>,
}

/// One size, or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
enum Sizes {
    One(u32),
    AnyOf(Vec<u32>),
}

impl Sizes {
    fn hold(&self, size: u32) -> bool {
        match self {
            Sizes::One(one) => *one == size,
            Sizes::AnyOf(sizes) => sizes.contains(&size),
        }
    }

    /// Whether a communicator can be of them.
    fn check(&self, what: &str) -> Result<(), String> {
        let remedy = "must be at least 1; leave it out for any";
        match self {
            Sizes::One(0) => Err(format!("{what} = 0: {remedy}")),
            Sizes::AnyOf(sizes) if sizes.is_empty() => {
                Err(format!("{what} = []: holds for none; leave it out for any"))
            }
            Sizes::AnyOf(sizes) if sizes.contains(&0) => Err(format!("{what} = {sizes:?}: {remedy}")),
            _ => Ok(()),
        }
    }
}

impl Rule {
    /// Whether it speaks of communicators of this size.
    pub fn matches(&self, ranks: u32, nodes: u32) -> bool {
        let holds = |sizes: &Option<Sizes>, size| sizes.as_ref().is_none_or(|sizes| sizes.hold(size));
        holds(&self.ranks, ranks) && holds(&self.nodes, nodes)
    }

    /// Adds what it says.
    pub fn apply(&self, context: &mut JobContext) {
        fn say<T>(said: Option<T>, known: &mut T) {
            if let Some(said) = said {
                *known = said;
            }
        }
        say(self.role, &mut context.scheduler.role);
        say(self.parallelism, &mut context.llm.parallelism);
        say(self.intra, &mut context.topology.intra);
        say(self.inter, &mut context.topology.inter);
        say(self.tier_max.map(Some), &mut context.topology.tier_max);
        say(self.tier_mix.map(Some), &mut context.topology.tier_mix);
        say(self.in_network.map(Some), &mut context.topology.in_network);
    }

    pub fn check(&self) -> Result<(), String> {
        for (what, sizes) in [("ranks", &self.ranks), ("nodes", &self.nodes)] {
            sizes.as_ref().map_or(Ok(()), |sizes| sizes.check(what))?;
        }
        if let Some(tier) = self.tier_max.filter(|&tier| usize::from(tier) >= TIERS) {
            return Err(format!("tier_max = {tier}: must be 0 to {}", TIERS - 1));
        }
        let Some(mix) = self.tier_mix else { return Ok(()) };
        let sum: f32 = mix.iter().sum();
        let shares = mix.iter().all(|share| (0.0..=1.0).contains(share));
        if !shares || (sum - 1.0).abs() > 0.01 {
            return Err(format!("tier_mix = {mix:?}: must be shares from 0 to 1 that add up to 1"));
        }
        Ok(())
    }
}
