//! Output files that are either complete or not there.
//!
//! The temporary file is made in the target's own folder before the work begins, so a bad path costs
//! a second and not a run, and the rename at the end cannot cross file systems. Whatever ends the
//! work early leaves an older file of that name untouched.
//!
//! A rename puts a new file in the place of whatever has the name, so what must not be replaced is refused
//! before: a file that the same command reads or writes otherwise, a device, a pipe. A link stays, and what it
//! leads to is replaced.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};

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
        replaceable(target)?;
        let temp = whole::under_way(target).with_context(|| cannot_write(target))?;
        Ok(OutFile { temp, target: target.to_owned() })
    }

    /// Makes sure, before the long work, that `target` could be written: a bad path costs a second and not a run.
    pub fn probe(target: &Path) -> Result<()> {
        OutFile::create(target).map(drop)
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

/// An error where a file's name does not end as its readers expect.
pub fn ends_in(flag: &str, file: &Path, endings: &[&str], what: &str) -> Result<()> {
    if endings.iter().any(|ending| file.extension().is_some_and(|is| is == *ending)) {
        return Ok(());
    }
    bail!("{flag} {}: {what} ends in .{}", file.display(), endings.join(" or ."))
}

/// Names of what a process has open: a file that goes by one of them is somebody's way out already.
const OPEN: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
/// Files of a folder that are read where the folder is named: sweeps, and what ranks recorded.
const READ_IN_FOLDERS: [&str; 2] = ["csv", "jsonl"];

/// An error where something has the name that no file may take the place of.
fn replaceable(target: &Path) -> Result<()> {
    let there = fs::metadata(target).is_ok_and(|is| !is.is_file());
    if !there && !OPEN.iter().any(|open| target.starts_with(open)) {
        return Ok(());
    }
    let named = target.display();
    if target.starts_with("/dev/stdout") {
        bail!("{named} is no regular file; leave it out, results are printed");
    }
    bail!("{named} is no regular file; name a file");
}

/// The files that one command reads and writes, by the flags that name them: none is written over another.
#[derive(Debug, Default)]
pub struct Apart<'a> {
    known: Vec<(&'a str, Identity)>,
}

impl<'a> Apart<'a> {
    /// Adds what is read. A word that is the name of no file is no file.
    pub fn reads(mut self, flag: &'a str, files: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let found = files.into_iter().flat_map(|file| found(file.as_ref()));
        self.known.extend(found.map(|(_, identity)| (flag, identity)));
        self
    }

    /// Adds what is read; an error where that was named before.
    pub fn reads_once(
        mut self,
        flag: &'a str,
        files: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<Self> {
        for (file, identity) in files.into_iter().flat_map(|file| found(file.as_ref())) {
            self.add(flag, &file, identity)?;
        }
        Ok(self)
    }

    /// Adds what is written; an error where that is a file of another flag.
    pub fn writes(
        mut self,
        flag: &'a str,
        files: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<Self> {
        for file in files {
            let file = file.as_ref();
            let identity = Identity::of(file).with_context(|| format!("{flag} {}", file.display()))?;
            self.add(flag, file, identity)?;
        }
        Ok(self)
    }

    fn add(&mut self, flag: &'a str, file: &Path, identity: Identity) -> Result<()> {
        let other = self.known.iter().find(|(_, taken)| *taken == identity).map(|(other, _)| *other);
        match other {
            Some(other) if other == flag => {
                bail!("{flag} {}: it is named twice; name it once", file.display())
            }
            Some(other) => bail!("{flag} {}: {other} names the same file; name another", file.display()),
            None => self.known.push((flag, identity)),
        }
        Ok(())
    }
}

/// What is there by this name: a file, or a folder with what is read in it.
fn found(name: &Path) -> Vec<(PathBuf, Identity)> {
    let mut files = vec![name.to_owned()];
    files.extend(read_in(name));
    files.into_iter().filter_map(|file| Identity::there(&file).map(|identity| (file, identity))).collect()
}

/// The files that are read where a folder is named.
fn read_in(folder: &Path) -> Vec<PathBuf> {
    let is_read = |file: &PathBuf| {
        let extension = file.extension().unwrap_or_default();
        READ_IN_FOLDERS.iter().any(|read| extension.eq_ignore_ascii_case(read))
    };
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_read).collect()
}

/// What tells a file from every other, whatever its name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Identity {
    /// Device and number of a file that is there.
    There(u64, u64),
    /// The path of one that is not.
    Missing(PathBuf),
}

impl Identity {
    /// That of a file, or of what will be one.
    fn of(file: &Path) -> io::Result<Self> {
        if let Some(there) = Identity::there(file) {
            return Ok(there);
        }
        let place = absolute(whole::end_of_links(file))?;
        // Folders may have several names too.
        let whole =
            place.parent().and_then(|folder| Some(folder.canonicalize().ok()?.join(place.file_name()?)));
        Ok(Identity::Missing(whole.unwrap_or(place)))
    }

    /// That of a file that is there.
    fn there(file: &Path) -> Option<Self> {
        fs::metadata(file).ok().map(|is| Identity::There(is.dev(), is.ino()))
    }
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
    use std::os::unix::fs::{PermissionsExt, symlink};

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

    #[test]
    fn nothing_takes_the_place_of_a_device() {
        for (named, said) in [
            ("/dev/null", "/dev/null is no regular file; name a file"),
            ("/dev/fd/1", "/dev/fd/1 is no regular file; name a file"),
            ("/dev/stdout", "/dev/stdout is no regular file; leave it out, results are printed"),
        ] {
            assert_eq!(OutFile::create(Path::new(named)).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn a_file_is_known_by_every_name() {
        let dir = tempfile::tempdir().unwrap();
        let [read, link, folder] = ["a.csv", "b.csv", "folder"].map(|name| dir.path().join(name));
        fs::create_dir(&folder).unwrap();
        fs::write(&read, "").unwrap();
        fs::write(folder.join("c.csv"), "").unwrap();
        symlink("a.csv", &link).unwrap();
        let apart = |reads: &Path, writes: &Path| {
            Apart::default().reads("--in", [reads]).writes("--out", [writes]).is_ok()
        };
        assert!(!apart(&read, &link) && !apart(&read, &folder.join("../a.csv")));
        assert!(!apart(&folder, &folder.join("c.csv")) && apart(&folder, &folder.join("d.csv")));
        assert!(apart(Path::new("dgx_a100"), &read));
        let new = dir.path().join("new");
        let both = Apart::default().writes("--out", [&new]).unwrap();
        let error = both.writes("--html", [folder.join("../new")]).unwrap_err().to_string();
        assert!(error.ends_with(": --out names the same file; name another"), "{error}");
    }
}
