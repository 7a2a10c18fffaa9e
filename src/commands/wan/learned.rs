//! The learned policy that decides in `wan --policy`.
//!
//! This is the one place that knows how such a policy is stored. It needs, before each collective, what
//! `View::observe` writes, and answers with one of three moves; everything else is the harness's.

use std::path::Path;

use anyhow::{Result, bail};
use dynamiccl_env::wan::control::Controller;

/// The word for the policy that comes with the program.
const SHIPPED: &str = "learned";

/// The policy that a word or a file names; none for "none".
pub fn load(policy: &Path) -> Result<Option<Box<dyn Controller>>> {
    match policy.to_str() {
        Some("none") => Ok(None),
        Some(SHIPPED) => bail!(
            "--policy learned: no policy for WANs comes with this build; --policy none compares cadences and \
             triggers without one"
        ),
        _ => bail!(
            "--policy {}: this build cannot read a policy for WANs; --policy none compares cadences and triggers \
             without one",
            policy.display()
        ),
    }
}
