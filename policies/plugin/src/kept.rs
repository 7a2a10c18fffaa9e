//! What was read from a file, for all communicators of a process that live at the same time.
//!
//! NCCL makes a tuner for every communicator, often hundreds and some of them hours into a job, when the file may be gone,
//! out of reach, or another. All get what the first got: a file counts once, when the job begins. NCCL unloads the library
//! when the last of them has gone, so what was read goes with it, and nothing is left behind.

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

/// Values in use, by what they were read from.
pub struct Kept<K, V>(Mutex<Vec<(K, Weak<V>)>>);

impl<K: PartialEq, V> Kept<K, V> {
    /// None.
    pub const fn new() -> Self {
        Kept(Mutex::new(Vec::new()))
    }

    /// The value of this key, read only if nobody has it. Who comes meanwhile waits, and gets the same.
    pub fn get<E>(&self, key: K, read: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().find(|(known, _)| *known == key).and_then(|(_, value)| value.upgrade());
        if let Some(known) = known {
            return Ok(known);
        }
        let value = Arc::new(read()?);
        kept.retain(|(_, value)| value.strong_count() > 0);
        kept.push((key, Arc::downgrade(&value)));
        Ok(value)
    }

    /// Forgets what nobody uses: NCCL may unload the library next. Who reads right now is not waited for: a communicator
    /// that ends must not hang on another's disk.
    pub fn forget_unused(&self) {
        let mut kept = match self.0.try_lock() {
            Ok(kept) => kept,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        kept.retain(|(_, value)| value.strong_count() > 0);
        if kept.is_empty() {
            *kept = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_once_for_all_who_have_it_at_the_same_time() {
        let kept: Kept<&str, u32> = Kept::new();
        let read = |key, value| kept.get(key, || Ok::<_, ()>(value)).unwrap();
        let (first, other) = (read("a", 1), read("b", 2));
        assert_eq!((*read("a", 3), *read("b", 3)), (1, 2));
        drop(first);
        assert_eq!((*read("a", 3), *read("b", 4)), (3, 2));
        drop(other);
        kept.forget_unused();
        assert_eq!(kept.0.lock().unwrap().capacity(), 0);
    }

    #[test]
    fn what_cannot_be_read_is_asked_for_again() {
        let kept: Kept<&str, u32> = Kept::new();
        assert_eq!(kept.get("a", || Err("gone")), Err("gone"));
        assert_eq!(kept.get("a", || Ok::<_, ()>(1)).as_deref(), Ok(&1));
    }

    #[test]
    fn forgetting_waits_for_nobody() {
        let kept: Kept<&str, u32> = Kept::new();
        let read = || {
            kept.forget_unused();
            Ok::<_, ()>(1)
        };
        assert_eq!(kept.get("a", read).as_deref(), Ok(&1));
    }
}
