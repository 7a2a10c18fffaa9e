//! The policy that decides, read once for all communicators of a process that live at the same time.
//!
//! NCCL makes a tuner for every communicator, often hundreds, and unloads the library when the last has gone:
//! so the policy goes with the last of them, and nothing is left behind.

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use dynamiccl_policies::frozen::{Frozen, FrozenError, OpenError};
use dynamiccl_policies::policy::Policy;

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

/// The policy that was read last, as long as somebody uses it.
static LAST: Mutex<Option<(Source, Weak<Policy>)>> = Mutex::new(None);

/// The policy of a source; none for the walk, which needs none.
pub fn load(source: &Source) -> Result<Option<Arc<Policy>>, PolicyError> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = last.as_ref().filter(|(known, _)| known == source).and_then(|(_, policy)| policy.upgrade());
    if known.is_some() {
        return Ok(known);
    }
    let frozen = match source {
        Source::Shipped => Frozen::shipped().map_err(PolicyError::Shipped)?,
        Source::File(path) => Frozen::open_tuner(path).map_err(PolicyError::Named)?,
        Source::Walk => return Ok(None),
    };
    let policy = Arc::new(frozen.policy());
    *last = Some((source.clone(), Arc::downgrade(&policy)));
    Ok(Some(policy))
}

/// Forgets the policy that was read last if nobody uses it. NCCL may unload the library next. Who reads one right now is
/// not waited for: a communicator that ends must not hang on another's disk.
pub fn forget_unused() {
    let mut last = match LAST.try_lock() {
        Ok(last) => last,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    if last.as_ref().is_some_and(|(_, policy)| policy.strong_count() == 0) {
        *last = None;
    }
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
