//! The release of an NCCL library.

use std::ffi::{OsStr, c_int};
use std::fmt;

use dynamiccl_spec::release;
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
pub struct NcclVersion(pub u64, pub u64, pub u64);

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
        let code = u64::try_from(code).ok().filter(|_| matches!(result, Ok(0)));
        let [major, minor, patch] = code.and_then(release::of_code).ok_or(VersionError::Mute)?;
        Ok(NcclVersion(major, minor, patch))
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
    fn what_is_no_nccl_is_refused() {
        assert!(matches!(NcclVersion::of("/nowhere/libnccl.so.2"), Err(VersionError::Closed(_))));
        assert!(matches!(NcclVersion::of("libc.so.6"), Err(VersionError::Mute)));
    }
}
