//! One process at a time: whoever writes a run holds a lock on a file of it.
//!
//! The system lets go of the lock when a process ends, however it does, so a run never has to be freed by
//! hand.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;
use std::process;

use super::error::RunError;

/// The name of the file.
const NAME: &str = ".lock";

/// A run that nobody else writes while this lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a run's folder.
    pub fn take(run: &Path) -> Result<Self, RunError> {
        let path = run.join(NAME);
        let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let mut file = open.map_err(RunError::write(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RunError::Busy { path: run.to_owned() }),
            Err(TryLockError::Error(why)) => return Err(RunError::Write { path, why }),
        }
        // For people who wonder who it is; nothing reads it, so a full disk is no reason to stop here.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", process::id()));
        Ok(Lock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        assert!(matches!(Lock::take(dir.path()), Err(RunError::Busy { .. })));
        drop(first);
        Lock::take(dir.path()).unwrap();
    }
}
