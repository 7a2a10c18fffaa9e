//! The release of an NCCL library.

use std::ffi::{OsStr, c_int};
use std::fmt;

use libloading::Library;

/// Why there is no version.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// It cannot be opened.
    #[error("{0}")]
    Closed(libloading::Error),
    /// It has no version to tell.
    #[error("it is no NCCL: ncclGetVersion is missing or fails")]
    Mute,
}

/// A release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NcclVersion(pub u32, pub u32, pub u32);

impl NcclVersion {
    /// The release of the library with this path, or this name on the dynamic linker's search path.
    pub fn of(name: impl AsRef<OsStr>) -> Result<Self, VersionError> {
        // SAFETY: what its constructors do is up to who named it.
        let library = unsafe { Library::new(name.as_ref()) }.map_err(VersionError::Closed)?;
        // SAFETY: NCCL's function of that name, if it is NCCL.
        let ask = unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"ncclGetVersion") };
        let mut code = 0;
        // SAFETY: a number to write to.
        let result = ask.map(|ask| unsafe { ask(&mut code) });
        let code = u32::try_from(code).ok().filter(|code| matches!(result, Ok(0)) && *code > 0);
        code.map(NcclVersion::from_code).ok_or(VersionError::Mute)
    }

    /// NCCL counts patches to a hundred since 2.9, and to ten before.
    fn from_code(code: u32) -> Self {
        if code < 10_000 {
            NcclVersion(code / 1000, code / 100 % 10, code % 100)
        } else {
            NcclVersion(code / 10_000, code / 100 % 100, code % 100)
        }
    }
}

impl fmt::Display for NcclVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_releases() {
        assert_eq!(NcclVersion::from_code(22_809).to_string(), "2.28.9");
        assert_eq!(NcclVersion::from_code(2_708).to_string(), "2.7.8");
        assert!(NcclVersion::from_code(22_807) < NcclVersion::from_code(23_003));
    }

    #[test]
    fn what_is_no_nccl_is_refused() {
        assert!(matches!(NcclVersion::of("/nowhere/libnccl.so.2"), Err(VersionError::Closed(_))));
        assert!(matches!(NcclVersion::of("libc.so.6"), Err(VersionError::Mute)));
    }
}
