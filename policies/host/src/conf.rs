//! NCCL's configuration files, whose lines NCCL puts into its environment before it loads a plugin: a plugin cannot tell
//! them from variables that the user has exported, and other programs do not see them.
//!
//! By the rules of `initEnvFunc` and `setEnvFile` in `src/misc/param.cc` of NCCL 2.30.7: first the file that
//! `NCCL_CONF_FILE` names, or else the one in the user's home, then the system's. What is set stands.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The variable that names a file.
const NAMED: &str = "NCCL_CONF_FILE";
/// The system's file.
const SYSTEM: &str = "/etc/nccl.conf";
/// Bytes of a name, and of a value, that NCCL takes.
const LONGEST: usize = 1023;
/// No such file is longer.
const MOST: u64 = 1 << 20;

/// A variable that NCCL sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// The file that says so.
    pub file: PathBuf,
    /// Its name.
    pub name: OsString,
    /// Its value.
    pub value: OsString,
}

/// What NCCL would add to this process's environment.
pub fn configured() -> Vec<Configured> {
    let named = std::env::var_os(NAMED).filter(|name| !name.is_empty()).map(PathBuf::from);
    let user = named.or_else(|| Some(home()?.join(".nccl.conf")));
    let is_set = |name: &OsStr| std::env::var_os(name).is_some();
    added(user.into_iter().chain([PathBuf::from(SYSTEM)]), is_set)
}

/// What these files add, in this order.
fn added(files: impl Iterator<Item = PathBuf>, is_set: impl Fn(&OsStr) -> bool) -> Vec<Configured> {
    let mut added: Vec<Configured> = Vec::new();
    for file in files {
        for (name, value) in read(&file).split(|byte| *byte == b'\n').filter_map(setting) {
            if !is_set(name) && added.iter().all(|known| known.name != name) {
                added.push(Configured { file: file.clone(), name: name.to_owned(), value: value.to_owned() });
            }
        }
    }
    added
}

/// The file's bytes. One that cannot be read is none, as for NCCL; one that is no plain file might never end.
fn read(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let opened = file.metadata().ok().filter(|about| about.is_file()).and_then(|_| File::open(file).ok());
    // What was read until it broke is what NCCL gets, too.
    let _ = opened.map(|opened| opened.take(MOST).read_to_end(&mut bytes));
    bytes
}

/// What a line sets. Blanks belong to what they stand in.
fn setting(line: &[u8]) -> Option<(&OsStr, &OsStr)> {
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let equals = line.iter().position(|byte| *byte == b'=')?;
    if equals == 0 || line[0] == b'#' {
        return None;
    }
    let [name, value] = [&line[..equals], &line[equals + 1..]];
    let cut = |bytes: &'_ [u8]| bytes.len().min(LONGEST);
    Some((OsStr::from_bytes(&name[..cut(name)]), OsStr::from_bytes(&value[..cut(value)])))
}

/// The user's home, as the system's list of users has it, whatever `HOME` says.
#[cfg(target_os = "linux")]
fn home() -> Option<PathBuf> {
    use std::ffi::c_char;

    #[repr(C)]
    struct User {
        name: *const c_char,
        password: *const c_char,
        uid: u32,
        gid: u32,
        about: *const c_char,
        home: *const c_char,
        shell: *const c_char,
    }
    unsafe extern "C" {
        fn getuid() -> u32;
        fn getpwuid(uid: u32) -> *const User;
    }
    // SAFETY: null, or a record that stays until somebody asks again, which only this function does.
    let home = unsafe { getpwuid(getuid()).as_ref() }?.home;
    // SAFETY: null, or a string of that record.
    let home = (!home.is_null()).then(|| unsafe { CStr::from_ptr(home) })?;
    Some(PathBuf::from(OsStr::from_bytes(home.to_bytes())))
}

#[cfg(not(target_os = "linux"))]
fn home() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<(&str, &str)> {
        setting(text.as_bytes()).map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
    }

    #[test]
    fn lines_are_read_as_nccl_reads_them() {
        assert_eq!(line("NCCL_PROTO=Simple"), Some(("NCCL_PROTO", "Simple")));
        assert_eq!(line("NCCL_PROTO = Simple\r"), Some(("NCCL_PROTO ", " Simple\r")));
        assert_eq!(line("A=b=c"), Some(("A", "b=c")));
        assert_eq!(line("A="), Some(("A", "")));
        assert_eq!(line("A=b\0c"), Some(("A", "b")));
        for nothing in ["", "# A=b", "A", "=b", "A\0=b"] {
            assert_eq!(line(nothing), None, "{nothing:?}");
        }
        let long = format!("{}={}", "n".repeat(2000), "v".repeat(2000));
        assert_eq!(line(&long), Some(("n".repeat(1023).as_str(), "v".repeat(1023).as_str())));
    }

    #[test]
    fn what_is_set_stands_and_the_first_line_wins() {
        let folder = std::env::temp_dir().join(format!("dynamiccl-conf-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let user = file("user", "A=1\nB=1\nA=2\nC=");
        let system = file("system", "B=3\nC=3\nD=3\n");
        let missing = folder.join("missing");
        let files = [missing, folder.clone(), user, system];
        let added = added(files.into_iter(), |name| name == "B");
        let added: Vec<_> = added
            .iter()
            .map(|one| {
                (one.file.file_name().unwrap().to_str().unwrap(), one.name.to_str().unwrap(), &one.value)
            })
            .collect();
        let value = OsString::from;
        assert_eq!(
            added,
            [("user", "A", &value("1")), ("user", "C", &value("")), ("system", "D", &value("3"))]
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_user_of_the_system_has_a_home() {
        use std::os::unix::fs::MetadataExt as _;

        let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let uid = std::fs::metadata("/proc/self").map_or(u32::MAX, |process| process.uid()).to_string();
        let is_known = known.lines().any(|line| line.split(':').nth(2) == Some(&uid));
        let home = home();
        assert!(home.as_ref().map_or(!is_known, |home| home.is_absolute()), "{home:?}");
    }
}
