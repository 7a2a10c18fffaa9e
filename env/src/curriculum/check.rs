//! Whether the numbers of a stage make sense, before the first job is drawn.

use std::sync::Arc;

use dynamiccl_spec::context::TIERS;

use super::error::CurriculumError;
use super::stage::{Machines, StageFile};
use crate::cluster::{Cluster, CommOptions};

type Checked = Result<(), CurriculumError>;

/// Whether this program reads files of this schema.
pub(super) fn schema(name: &str, schema: u32) -> Checked {
    let known = super::SCHEMA;
    require(name, "schema", schema, schema == known, &format!("this program reads schema {known}"))
}

/// Whether a row's stages can have so many times their own steps.
pub(super) fn times_steps(name: &str, times: f64) -> Checked {
    require(name, "steps", times, times > 0.0 && times <= 100.0, "give a number above 0, at most 100")
}

/// Whether every number of a stage is in its range.
pub(super) fn stage(name: &str, file: &StageFile) -> Checked {
    schema(name, file.schema)?;
    let tiers_fit = !file.tiers.is_empty() && file.tiers.iter().all(|&tier| usize::from(tier) < TIERS);
    require(name, "tiers", format!("{:?}", file.tiers), tiers_fit, "give at least one, from 0 to 4")?;
    require(name, "clusters", "[]", !file.clusters.is_empty(), "give at least one")?;
    let workload = &file.workload;
    let calls = (1..=1 << 20).contains(&workload.calls);
    require(name, "workload.calls", workload.calls, calls, "give 1 to 1048576")?;
    require(name, "workload.iterations", workload.iterations, workload.iterations > 0, "give at least 1")?;
    let batches = workload.micro_batches.iter().all(|(count, _)| (1..=4096).contains(count));
    require(name, "workload.micro_batches", "out of range", batches, "give 1 to 4096")?;
    let regime = &file.regime;
    let most = workload.iterations;
    let taus = regime.tau.iter().all(|(tau, _)| (1..=most).contains(tau));
    let remedy = format!("give 1 to {most}, the iterations of a job, or it never synchronises");
    require(name, "regime.tau", "out of range", taus, &remedy)?;
    let hidden = &file.hidden;
    for (key, value) in [
        ("workload.benchmark", workload.benchmark),
        ("regime.sync_change", regime.sync_change),
        ("regime.in_network", regime.in_network),
        ("regime.sharp", regime.sharp),
        ("regime.template", regime.template),
        ("regime.deterministic", regime.deterministic),
        ("regime.user_override", regime.user_override),
        ("dynamics.congestion", file.dynamics.congestion),
        ("dynamics.wan", file.dynamics.wan.unwrap_or(0.0)),
        ("hidden.context", hidden.context),
        ("hidden.block", hidden.block),
        ("hidden.feedback", hidden.feedback),
        ("replay.share", file.replay.share),
    ] {
        require(name, key, value, (0.0..=1.0).contains(&value), "give a share from 0 to 1")?;
    }
    let [from, to] = hidden.staleness;
    let spell = format!("[{from}, {to}]");
    require(
        name,
        "hidden.staleness",
        spell,
        0 < from && from <= to,
        "give two counts from 1, smaller first",
    )?;
    let replays = file.replay.share == 0.0 || !file.replay.stages.is_empty();
    require(name, "replay.stages", "[]", replays, "name the stages that stay, or give share = 0")?;
    numbers(name, file)
}

fn numbers(name: &str, file: &StageFile) -> Checked {
    let (dynamics, reward, promotion) = (&file.dynamics, &file.reward, &file.promotion);
    for (key, value, most) in [
        ("dynamics.load", dynamics.load, 10.0),
        ("dynamics.jitter", dynamics.jitter, 10.0),
        ("dynamics.drift", dynamics.drift, 100.0),
        ("dynamics.stragglers", dynamics.stragglers, 1000.0),
        ("dynamics.faults", dynamics.faults, 1000.0),
        ("reward.switch", reward.switch, 10.0),
        ("reward.congestion", reward.congestion, 10.0),
        ("reward.probe", reward.probe, 10.0),
        ("reward.convergence", reward.convergence, 10.0),
        ("reward.sm", reward.sm, 10.0),
        ("reward.tier", reward.tier, 10.0),
        ("reward.fault", reward.fault, 10.0),
    ] {
        require(name, key, value, (0.0..=most).contains(&value), &format!("give 0 to {most}"))?;
    }
    require(name, "reward.clip", reward.clip, (1.0..=1e6).contains(&reward.clip), "give 1 to 1000000")?;
    let (regret, steps) = (promotion.regret, promotion.min_steps <= promotion.max_steps);
    require(name, "promotion.regret", regret, regret > 0.0 && regret.is_finite(), "give a number above 0")?;
    require(name, "promotion.min_steps", promotion.min_steps, steps, "give at most max_steps")
}

/// Whether there is a latency for where a cluster's nodes are said to be.
pub(super) fn place(name: &str, machines: &Machines) -> Checked {
    let Some(tier) = machines.at_tier else { return Ok(()) };
    let apart = machines.nodes.iter().all(|&nodes| nodes > 1);
    require(name, "clusters.at_tier", tier, (2..=4).contains(&tier), "give a tier from 2 to 4")?;
    require(name, "clusters.at_tier", tier, apart, "give only node counts above 1 beside it")
}

/// Whether a cluster has such communicators.
pub(super) fn nodes(name: &str, machines: &Machines, cluster: &Cluster) -> Checked {
    let weight = machines.weight;
    require(name, "clusters.weight", weight, weight.is_finite() && weight > 0.0, "give a number above 0")?;
    require(name, "clusters.nodes", "[]", !machines.nodes.is_empty(), "give at least one node count")?;
    for &nodes in &machines.nodes {
        cluster
            .communicator(nodes, &CommOptions::default())
            .map_err(|error| CurriculumError::Cluster { file: name.to_owned(), error: Box::new(error) })?;
    }
    Ok(())
}

/// Whether any machine is of the stage's tiers.
pub(super) fn machines(name: &str, file: &StageFile, clusters: &[Arc<Cluster>]) -> Checked {
    let of_tier = |(machines, cluster): (&Machines, &Arc<Cluster>)| {
        machines.nodes.iter().any(|&nodes| file.tiers.contains(&cluster.tier(nodes)))
    };
    let found = file.clusters.iter().zip(clusters).any(of_tier);
    let remedy = "no cluster and node count is of these tiers; add some, or other tiers";
    require(name, "tiers", format!("{:?}", file.tiers), found, remedy)
}

fn require(name: &str, key: &str, value: impl ToString, fine: bool, remedy: &str) -> Checked {
    if fine { Ok(()) } else { Err(CurriculumError::value(name, key, &value.to_string(), remedy)) }
}
