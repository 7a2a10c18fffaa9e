//! The policy that decides, read once for all communicators of a process that live at the same time (`kept.rs`).

use std::sync::Arc;

use dynamiccl_policies::frozen::{Frozen, FrozenError, OpenError};
use dynamiccl_policies::policy::Policy;

use crate::kept::Kept;
use crate::settings::Source;

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file that the user named is none.
    #[error("DYNAMICCL_POLICY: {0}")]
    Named(OpenError),
    /// The one that is built in is for another build.
    #[error("the policy within this library: {0}")]
    Shipped(FrozenError),
}

/// The policies in use.
static KEPT: Kept<Source, Policy> = Kept::new();

/// The policy of a source; none for the walk, which needs none.
pub fn load(source: &Source) -> Result<Option<Arc<Policy>>, PolicyError> {
    let path = match source {
        Source::Walk => return Ok(None),
        Source::Shipped => None,
        Source::File(path) => Some(path),
    };
    let read = || {
        let frozen = match path {
            None => Frozen::shipped().map_err(PolicyError::Shipped)?,
            Some(path) => Frozen::open_tuner(path).map_err(PolicyError::Named)?,
        };
        Ok(frozen.policy())
    };
    KEPT.get(source.clone(), read).map(Some)
}

/// Forgets the policies that nobody uses.
pub fn forget_unused() {
    KEPT.forget_unused();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communicators_share_a_policy_and_the_last_takes_it_along() {
        let first = load(&Source::Shipped).unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &load(&Source::Shipped).unwrap().unwrap()));
        assert_eq!(first.hash(), Frozen::shipped().unwrap().hash());
        assert!(load(&Source::Walk).unwrap().is_none());
        let error = load(&Source::File("/nowhere/p.safetensors".into())).unwrap_err().to_string();
        assert!(error.starts_with("DYNAMICCL_POLICY: ") && error.contains("/nowhere/p"), "{error}");
    }
}
