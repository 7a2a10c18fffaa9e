//! `libnccl.so.2`: communicators and the five collectives, in floats (`nccl.h` of NCCL 2.28).

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::buffer::Buffer;
use crate::cuda::Handle;
use crate::error::GpuError;
use crate::stream::Stream;

/// NCCL's library by the name that every release since 2.0 has.
const LIBRARY: &str = "libnccl.so.2";
const REMEDY: &str =
    "install NCCL, or name its libnccl.so.2 with --nccl (PyTorch has one in nvidia/nccl/lib)";
/// `ncclResult_t` by number.
const NAMES: [&str; 8] = [
    "ncclSuccess",
    "ncclUnhandledCudaError",
    "ncclSystemError",
    "ncclInternalError",
    "ncclInvalidArgument",
    "ncclInvalidUsage",
    "ncclRemoteError",
    "ncclInProgress",
];
const SUCCESS: c_int = 0;
const IN_PROGRESS: c_int = 7;
/// `ncclFloat32` and `ncclSum`.
const FLOATS: c_int = 7;
const SUM: c_int = 0;
/// Bytes of `ncclUniqueId`.
const ID: usize = 128;
/// The first release with all of these functions (`ncclGetLastError`).
const OLDEST: (c_int, &str) = (21_300, "2.13");

type Comm = *mut c_void;

/// What ranks of one communicator find each other by.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct UniqueId([u8; ID]);

impl UniqueId {
    /// Its bytes, to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// From bytes that were sent; none where they are not as many.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(UniqueId)
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UniqueId")
    }
}

/// Declares the functions: field, symbol, arguments.
macro_rules! functions {
    ($($field:ident = $symbol:literal ( $($argument:ty),* ) ;)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
            error_text: unsafe extern "C" fn(c_int) -> *const c_char,
            last_error: unsafe extern "C" fn(Comm) -> *const c_char,
            _library: Library,
        }

        impl Functions {
            fn find(library: Library) -> Result<Self, GpuError> {
                let lacks = |symbol| move |why| GpuError::Lacks { library: LIBRARY, symbol, why };
                $(
                    // SAFETY: NCCL's function of that name has this type.
                    let $field = *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> c_int>($symbol.as_bytes())
                    }
                    .map_err(lacks($symbol))?;
                )*
                type Words<A> = unsafe extern "C" fn(A) -> *const c_char;
                // SAFETY: as above.
                let error_text = *unsafe { library.get::<Words<c_int>>(b"ncclGetErrorString") }
                    .map_err(lacks("ncclGetErrorString"))?;
                // SAFETY: as above.
                let last_error = *unsafe { library.get::<Words<Comm>>(b"ncclGetLastError") }
                    .map_err(lacks("ncclGetLastError"))?;
                Ok(Functions { $($field,)* error_text, last_error, _library: library })
            }
        }
    };
}

functions! {
    version = "ncclGetVersion" (*mut c_int);
    unique_id = "ncclGetUniqueId" (*mut UniqueId);
    begin = "ncclCommInitRank" (*mut Comm, c_int, UniqueId, c_int);
    end = "ncclCommDestroy" (Comm);
    async_error = "ncclCommGetAsyncError" (Comm, *mut c_int);
    broadcast = "ncclBroadcast" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Handle);
    reduce = "ncclReduce" (*const c_void, *mut c_void, usize, c_int, c_int, c_int, Comm, Handle);
    allgather = "ncclAllGather" (*const c_void, *mut c_void, usize, c_int, Comm, Handle);
    reducescatter = "ncclReduceScatter" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Handle);
    allreduce = "ncclAllReduce" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Handle);
}

/// NCCL, opened.
#[derive(Clone)]
pub struct Nccl(Arc<Functions>);

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nccl")
    }
}

impl Nccl {
    /// Opens the library that was named, or the one that the dynamic linker finds.
    pub fn open(named: Option<&OsStr>) -> Result<Self, GpuError> {
        let name = named.unwrap_or(OsStr::new(LIBRARY));
        // SAFETY: what its constructors do is up to who named it.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|why| GpuError::Closed { name: name.into(), why, remedy: REMEDY })?;
        let nccl = Nccl(Arc::new(Functions::find(library)?));
        let code = nccl.version_code()?;
        let (oldest, needed) = OLDEST;
        if code < oldest {
            return Err(GpuError::TooOld { found: release(code), needed });
        }
        Ok(nccl)
    }

    /// Its release, as `2.28.9`.
    pub fn version(&self) -> Result<String, GpuError> {
        self.version_code().map(release)
    }

    fn version_code(&self) -> Result<c_int, GpuError> {
        let mut code = 0;
        // SAFETY: a number to write to.
        self.check("ncclGetVersion", unsafe { (self.0.version)(&mut code) })?;
        Ok(code)
    }

    /// What the ranks of a new communicator find each other by. One of them makes it, and must live while others
    /// begin.
    pub fn unique_id(&self) -> Result<UniqueId, GpuError> {
        let mut id = UniqueId([0; ID]);
        // SAFETY: an id to write to.
        self.check("ncclGetUniqueId", unsafe { (self.0.unique_id)(&mut id) })?;
        Ok(id)
    }

    /// Begins a communicator on the GPU that this thread works on; all ranks must.
    pub fn begin(&self, ranks: u32, rank: u32, id: UniqueId) -> Result<Communicator, GpuError> {
        let mut handle = null_mut();
        // SAFETY: a handle to write to.
        let begun = unsafe { (self.0.begin)(&mut handle, ranks as c_int, id, rank as c_int) };
        self.check("ncclCommInitRank", begun)?;
        Ok(Communicator { nccl: self.clone(), handle, ranks: ranks as usize })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), GpuError> {
        if code == SUCCESS {
            return Ok(());
        }
        let words = |text: *const c_char| {
            // SAFETY: null, or a string of NCCL's own.
            let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
            text.map(|text| text.trim().replace('\n', "; ")).filter(|text| !text.is_empty())
        };
        // SAFETY: NCCL knows its own numbers; its last words need no communicator.
        let (text, last) =
            unsafe { (words((self.0.error_text)(code)), words((self.0.last_error)(null_mut()))) };
        let text = [text, last].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let name = usize::try_from(code).ok().and_then(|code| NAMES.get(code)).unwrap_or(&"an unknown error");
        Err(GpuError::Nccl { call, name, code, text })
    }
}

/// As `2.28.9`. Up to 2.8 the minor version had one digit, and 2804 is 2.8.4 (`NCCL_VERSION` of `nccl.h`).
fn release(code: c_int) -> String {
    let (major, minor) =
        if code < 10_000 { (code / 1_000, code / 100 % 10) } else { (code / 10_000, code / 100 % 100) };
    format!("{major}.{minor}.{}", code % 100)
}

/// A collective, with as many floats as NCCL's function counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// From this root to all.
    Broadcast(u32),
    /// The sum of all, on this root.
    Reduce(u32),
    /// Every rank's part, on all.
    AllGather,
    /// The sum of all, a part on every rank.
    ReduceScatter,
    /// The sum of all, on all.
    AllReduce,
}

impl Call {
    /// NCCL's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Call::Broadcast(_) => "ncclBroadcast",
            Call::Reduce(_) => "ncclReduce",
            Call::AllGather => "ncclAllGather",
            Call::ReduceScatter => "ncclReduceScatter",
            Call::AllReduce => "ncclAllReduce",
        }
    }
}

/// One rank of a communicator.
#[derive(Debug)]
pub struct Communicator {
    nccl: Nccl,
    handle: Comm,
    ranks: usize,
}

// SAFETY: NCCL guards a communicator by itself, and lets others ask for errors while a call is under way.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Communicator {
    /// Puts a collective of so many floats into the stream.
    pub fn call(
        &self,
        call: Call,
        send: &Buffer,
        receive: &mut Buffer,
        floats: usize,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let all = floats.saturating_mul(self.ranks);
        send.holds(call.name(), if call == Call::ReduceScatter { all } else { floats })?;
        receive.holds(call.name(), if call == Call::AllGather { all } else { floats })?;
        let from = send.address as *const c_void;
        let to = receive.address as *mut c_void;
        let (f, comm, stream) = (&self.nccl.0, self.handle, stream.handle);
        // SAFETY: both buffers hold what NCCL will touch, and everything lives; freeing a buffer waits for the stream.
        let code = unsafe {
            match call {
                Call::Broadcast(root) => (f.broadcast)(from, to, floats, FLOATS, root as c_int, comm, stream),
                Call::Reduce(root) => (f.reduce)(from, to, floats, FLOATS, SUM, root as c_int, comm, stream),
                Call::AllGather => (f.allgather)(from, to, floats, FLOATS, comm, stream),
                Call::ReduceScatter => (f.reducescatter)(from, to, floats, FLOATS, SUM, comm, stream),
                Call::AllReduce => (f.allreduce)(from, to, floats, FLOATS, SUM, comm, stream),
            }
        };
        self.nccl.check(call.name(), code)
    }

    /// What has gone wrong in NCCL's own threads; may be asked while a call is under way.
    pub fn trouble(&self) -> Result<(), GpuError> {
        let mut code = SUCCESS;
        // SAFETY: a number to write to.
        self.nccl
            .check("ncclCommGetAsyncError", unsafe { (self.nccl.0.async_error)(self.handle, &mut code) })?;
        if code == IN_PROGRESS { Ok(()) } else { self.nccl.check("a thread of NCCL's", code) }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // SAFETY: begun once and ended once.
        unsafe { (self.nccl.0.end)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_releases() {
        assert_eq!([22_809, 21_300, 20_902].map(release), ["2.28.9", "2.13.0", "2.9.2"]);
        assert_eq!([2_708, 2_804].map(release), ["2.7.8", "2.8.4"]);
    }
}
