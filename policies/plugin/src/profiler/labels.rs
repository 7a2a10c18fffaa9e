//! The users' names of communicators, kept once each until the last of them ends, so that a record can carry
//! a number for one.

use std::sync::{Mutex, MutexGuard};

/// Most different names; those beyond share the last.
const NAMES_MAX: usize = 1024;
/// How often a lock is tried: who has it looks a name up, which takes less than a microsecond.
const TRIES: usize = 10_000;
const OTHER: &str = "other";
const UNKNOWN: &str = "unknown";

/// A table of names, which begins with that of communicators without one. A lock that a fork has left closed is
/// not waited for long.
pub struct Labels(Mutex<Vec<String>>);

impl Labels {
    /// No names.
    pub const fn new() -> Self {
        Labels(Mutex::new(Vec::new()))
    }

    /// The position of a name.
    pub fn intern(&self, name: &str) -> u16 {
        let Some(mut names) = self.lock() else { return 0 };
        if names.is_empty() {
            names.push(UNKNOWN.to_owned());
        }
        let name = if name.is_empty() { UNKNOWN } else { name };
        if let Some(at) = names.iter().position(|known| known == name) {
            return at as u16;
        }
        if names.len() < NAMES_MAX {
            let is_last = names.len() == NAMES_MAX - 1;
            names.push(if is_last { OTHER } else { name }.to_owned());
        }
        (names.len() - 1) as u16
    }

    /// Frees all names: nothing of ours may stay when the library goes.
    pub fn clear(&self) {
        if let Some(mut names) = self.lock() {
            *names = Vec::new();
        }
    }

    /// The name at a position.
    pub fn name(&self, at: u16) -> String {
        let known = self.lock().and_then(|names| names.get(usize::from(at)).cloned());
        known.unwrap_or_else(|| UNKNOWN.to_owned())
    }

    fn lock(&self) -> Option<MutexGuard<'_, Vec<String>>> {
        let free = |_| self.0.try_lock().map_err(|_| std::thread::yield_now()).ok();
        (0..TRIES).find_map(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_meets_another_at_the_lock_gets_a_name_all_the_same() {
        let (labels, busy) = (Labels::new(), std::sync::atomic::AtomicBool::new(true));
        let tp = labels.intern("tp");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while busy.load(std::sync::atomic::Ordering::Relaxed) {
                    labels.name(tp);
                }
            });
            let names = (0..500).map(|k| labels.intern(if k % 2 == 0 { "dp" } else { "pp" }));
            assert!(names.into_iter().all(|at| at != 0));
            busy.store(false, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn names_are_kept_once_and_are_bounded() {
        let labels = Labels::new();
        assert_eq!(labels.name(0), "unknown");
        assert_eq!(labels.intern(""), 0);
        let tp = labels.intern("tp");
        assert_eq!((labels.intern("tp"), labels.name(tp)), (tp, "tp".to_owned()));
        labels.clear();
        assert_eq!((labels.name(tp), labels.intern("dp")), ("unknown".to_owned(), 1));
        let last = (0..5000).map(|k| labels.intern(&format!("c{k}"))).max().unwrap();
        assert_eq!((usize::from(last), labels.name(last)), (NAMES_MAX - 1, OTHER.to_owned()));
    }
}
