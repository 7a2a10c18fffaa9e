//! Policies for networks that change, which `wan` and `rails` judge: from a file, or the one that comes with the
//! program.
//!
//! They are frozen policies like any other, but what their heads mean is another matter: a policy says what it was
//! trained on, and is not taken for anything else.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use dynamiccl_agent::subject::actor::Actor;
use dynamiccl_env::curriculum::Kind;
use dynamiccl_policies::frozen::Frozen;

/// The policy that a word or a file names; none for "none".
pub fn open(kind: Kind, policy: &Path) -> Result<Option<Actor>> {
    let said = || format!("--policy {}", policy.display());
    let frozen = match policy.to_str() {
        Some("none") => return Ok(None),
        Some("learned") if kind == Kind::Wan => Frozen::shipped_wan().with_context(said)?,
        Some("learned") => Frozen::shipped_rails().with_context(said)?,
        _ => Frozen::open(policy).with_context(said)?,
    };
    let trained = &frozen.about.training.curriculum;
    ensure!(
        trained.split_whitespace().next() == Some(kind.name()),
        "{}: it was trained on \"{trained}\"; give a policy that was trained on \"{kind}\"",
        said()
    );
    Ok(Some(match kind {
        Kind::Wan => Actor::wan(&frozen.weights),
        _ => Actor::rails(&frozen.weights),
    }))
}
