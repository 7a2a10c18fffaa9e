//! Output files that are either complete or not there.
//!
//! The temporary file is made in the target's own folder before the work begins, so a bad path costs
//! a second and not a run, and the rename at the end cannot cross file systems. Whatever ends the
//! work early leaves an older file of that name untouched.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use dynamiccl_env::whole;
use tempfile::NamedTempFile;

/// A file under way to its final name.
#[derive(Debug)]
pub struct OutFile {
    temp: NamedTempFile,
    target: PathBuf,
}

impl OutFile {
    /// Makes the temporary file beside `target`. Call it before the long work.
    pub fn create(target: &Path) -> Result<Self> {
        if target.is_dir() {
            bail!("cannot write {}: it is a folder", target.display());
        }
        if target.file_name().is_none() {
            bail!("cannot write \"{}\": it names no file", target.display());
        }
        let temp = whole::under_way(target).with_context(|| cannot_write(target))?;
        Ok(OutFile { temp, target: target.to_owned() })
    }

    /// Writes all that the file is to hold, and gives it its name.
    pub fn finish(mut self, bytes: &[u8]) -> Result<()> {
        self.temp.write_all(bytes).with_context(|| cannot_write(&self.target))?;
        self.commit()
    }

    /// Gives the file its name. Without this call, nothing of it remains.
    pub fn commit(self) -> Result<()> {
        whole::place(self.temp, &self.target).with_context(|| cannot_write(&self.target))
    }
}

fn cannot_write(target: &Path) -> String {
    format!("cannot write {}", target.display())
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temp.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_committed_file_is_complete_and_alone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("fit.toml");
        let mut out = OutFile::create(&target).unwrap();
        out.write_all(b"launch = 1.0\n").unwrap();
        assert!(!target.exists(), "nothing has the final name before the commit");
        out.commit().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "launch = 1.0\n");
        assert_eq!(names(dir.path()), ["fit.toml"]);
    }

    #[test]
    fn work_that_fails_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("fit.toml");
        fs::write(&target, "old").unwrap();
        let mut out = OutFile::create(&target).unwrap();
        out.write_all(b"half of the n").unwrap();
        drop(out);
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        assert_eq!(names(dir.path()), ["fit.toml"]);
    }

    #[test]
    fn a_bad_path_fails_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = dir.path().join("no/such/fit.toml");
        let error = format!("{:#}", OutFile::create(&nowhere).unwrap_err());
        assert!(error.starts_with(&format!("cannot write {}: ", nowhere.display())), "{error}");
        let error = OutFile::create(dir.path()).unwrap_err().to_string();
        assert!(error.ends_with("it is a folder"), "{error}");
        let error = OutFile::create(Path::new("..")).unwrap_err().to_string();
        assert!(error.ends_with("it is a folder"), "{error}");
        let error = OutFile::create(Path::new("")).unwrap_err().to_string();
        assert_eq!(error, "cannot write \"\": it names no file");
    }

    #[test]
    fn others_may_read_what_the_umask_lets_them() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        fs::write(&plain, "").unwrap();
        let ours = dir.path().join("ours");
        OutFile::create(&ours).unwrap().finish(b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
