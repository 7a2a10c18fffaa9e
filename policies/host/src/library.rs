//! A library that was opened with the flags that NCCL uses (`RTLD_NOW | RTLD_LOCAL`).

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fs, ptr};

use dynamiccl_spec::fnv::Fnv;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The interfaces through which NCCL may ask, with the oldest and the newest version that we offer.
const INTERFACES: [(&str, u32, u32); 3] =
    [("ncclTunerPlugin_v", 2, 7), ("ncclProfiler_v", 1, 6), ("ncclEnvPlugin_v", 1, 2)];

/// Why a library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The dynamic linker refuses it.
    #[error("NCCL could not open it: {0}")]
    Refused(libloading::Error),
    /// It lacks an interface.
    #[error("it has no {0}; it is not the plugin, or an older one")]
    Lacks(String),
    /// It is another plugin.
    #[error("it calls itself \"{0}\" and not \"{NAME}\"")]
    Other(String),
}

/// What our library calls itself.
const NAME: &str = "DynamICCL";

/// The plugin, opened.
#[derive(Debug)]
pub struct Plugin(Library);

impl Plugin {
    /// Opens what has this path, or this name on the dynamic linker's search path.
    pub fn open(name: impl AsRef<OsStr>) -> Result<Self, OpenError> {
        // SAFETY: what its constructors do is up to who named it, as it is in NCCL.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
        Ok(Plugin(library.map_err(OpenError::Refused)?))
    }

    /// The interfaces that it has, by the names that NCCL looks for.
    pub fn interfaces(&self) -> Vec<String> {
        let named = |(name, oldest, newest)| (oldest..=newest).map(move |version| format!("{name}{version}"));
        INTERFACES.into_iter().flat_map(named).filter(|name| self.address(name).is_ok()).collect()
    }

    /// The fingerprint of the file that was opened, wherever the dynamic linker has found it: builds of one version differ
    /// in nothing else that can be seen. None where it cannot be read any more.
    pub fn fingerprint(&self) -> Option<String> {
        let somewhere = self.interfaces().iter().find_map(|name| self.address(name).ok())?;
        let mut hash = Fnv::new();
        hash.bytes(&fs::read(file_of(somewhere)?).ok()?);
        Some(format!("{:016x}", hash.value()))
    }

    /// The table of functions of an interface, whose first field is the plugin's name: ours, or it is refused.
    ///
    /// # Safety
    /// `T` is laid out as NCCL's header says for the interface.
    pub(crate) unsafe fn table<T>(&self, interface: &str) -> Result<&T, OpenError> {
        let address = self.address(interface)?;
        // SAFETY: every table begins with a pointer to a string.
        let name = unsafe { CStr::from_ptr(*address.cast::<*const c_char>()) }.to_string_lossy();
        if name != NAME {
            return Err(OpenError::Other(name.into_owned()));
        }
        // SAFETY: the caller's promise; the table lives as long as the library.
        Ok(unsafe { &*address.cast::<T>() })
    }

    fn address(&self, symbol: &str) -> Result<*const u8, OpenError> {
        // SAFETY: only the address is taken.
        let found = unsafe { self.0.get::<*const u8>(symbol.as_bytes()) };
        let address = found.ok().map(|found| found.into_raw().cast_const().cast::<u8>());
        address.filter(|address| !address.is_null()).ok_or_else(|| OpenError::Lacks(symbol.to_owned()))
    }
}

/// What `dladdr` says of an address.
#[repr(C)]
struct Found {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    at: *mut c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, found: *mut Found) -> c_int;
}

/// The file of this address, by the name under which the dynamic linker has opened it.
fn file_of(address: *const u8) -> Option<PathBuf> {
    let mut found =
        Found { file: ptr::null(), base: ptr::null_mut(), symbol: ptr::null(), at: ptr::null_mut() };
    // SAFETY: any address may be asked about, and the answer has a place.
    let known = unsafe { dladdr(address.cast(), &raw mut found) } != 0 && !found.file.is_null();
    // SAFETY: a string of the dynamic linker's, which stays as long as the library, and is copied here.
    let name = known.then(|| unsafe { CStr::from_ptr(found.file) })?;
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_wherever_the_linker_finds_it() {
        let other = Plugin::open("libc.so.6").unwrap();
        let file = file_of(other.address("getenv").unwrap()).unwrap();
        assert!(file.ends_with("libc.so.6") && file.is_file(), "{file:?}");
        assert_eq!(file_of(ptr::null()), None);
        assert_eq!(other.fingerprint(), None, "not the plugin");
    }
}
