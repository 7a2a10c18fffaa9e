//! Files that are either complete or not there: written beside their name, then renamed.
//!
//! Whatever ends the work early (a full disk, `kill -9`, no power) leaves the file that was there before. Where the name
//! is a link's, the link stays and what it leads to is written.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// What the name of a file that is under way ends in.
const UNDER_WAY: &str = ".tmp";
/// Links that are followed at most, as Linux does it.
const MOST_LINKS: usize = 40;

/// Writes a file in one piece.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = under_way(path)?;
    file.write_all(bytes)?;
    place(file, path)
}

/// A file in the folder of `path`, gone unless it is [placed](place) there. Whoever makes it before long work learns at
/// once of a path that cannot be written.
pub fn under_way(path: &Path) -> io::Result<NamedTempFile> {
    let path = &end_of_links(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(UNDER_WAY)
        // Readable like any file that the user makes: the umask takes its share of this.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(path))
}

/// Gives a file its name, once all of it is on the disk.
pub fn place(file: NamedTempFile, path: &Path) -> io::Result<()> {
    let path = &end_of_links(path);
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The new name must be on the disk too.
    File::open(folder(path))?.sync_all()
}

/// What a name leads to, also where nothing is there yet.
pub fn end_of_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&path) else { break };
        path = folder(&path).join(next);
    }
    path
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what a killed process has left half-written.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(UNDER_WAY) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_write_that_cannot_be_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        // A folder of that name cannot be replaced by a file.
        let taken = dir.path().join("b");
        fs::create_dir_all(taken.join("inside")).unwrap();
        assert!(write(&taken, b"x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let [real, later, link, early] = ["real", "later", "link", "early"].map(|name| dir.path().join(name));
        fs::write(&real, "old").unwrap();
        symlink("real", &link).unwrap();
        symlink(&later, &early).unwrap();
        write(&link, b"new").unwrap();
        write(&early, b"first").unwrap();
        assert_eq!(
            (fs::read(&real).unwrap(), fs::read(&later).unwrap()),
            (b"new".to_vec(), b"first".to_vec())
        );
        assert!(link.is_symlink() && early.is_symlink() && !real.is_symlink());
    }

    #[test]
    fn what_was_under_way_is_swept_up() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".a.Xy12.tmp", "a", ".hidden", "b.tmp"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        sweep(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
        assert!(!dir.path().join(".a.Xy12.tmp").exists());
    }
}
