//! The border: no panic crosses it, and whatever comes across is made plain numbers.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::super::communicators::About;
use super::super::event::Event;
use super::super::lifecycle::{self, RECORDER};
use super::super::say::Voice;
use super::{KERNEL, text};
use crate::abi::guard::guarded;
use crate::abi::{NcclResult, SUCCESS};
use crate::logger::{Logger, RawLogger};

static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// Runs this; a panic ends here and is said once.
fn contained(point: &str, work: impl FnOnce()) -> NcclResult {
    let otherwise = || {
        if !HAS_PANICKED.swap(true, Ordering::Relaxed) {
            Voice::new(None).warn("profiler: internal error (a bug of ours); the job goes on without it");
        }
    };
    guarded(point, work, otherwise);
    SUCCESS
}

/// What NCCL says of a communicator at init.
#[derive(Debug, Default)]
pub struct Told {
    /// Its id, ranks and nodes.
    pub about: About,
    /// The user's name for it.
    pub name: String,
    /// NCCL's log.
    pub logger: Option<Logger>,
}

impl Told {
    /// # Safety
    /// `name` is a C string or null, `logger` is NCCL's or none.
    pub unsafe fn new(
        id: u64,
        name: *const c_char,
        nodes: c_int,
        ranks: c_int,
        logger: Option<RawLogger>,
    ) -> Self {
        let count = |number: c_int| u32::try_from(number).unwrap_or(0);
        // SAFETY: the caller's promise.
        let name = String::from_utf8_lossy(unsafe { text::bytes(name) }).into_owned();
        // SAFETY: the caller's promise.
        let logger = logger.map(|raw| unsafe { Logger::new(Some(raw)) });
        let about = About { id, ranks: count(ranks), nodes: count(nodes), name: 0 };
        Told { about, name, logger }
    }
}

/// What NCCL wants filled at init.
pub struct Opening<'a> {
    context: Option<&'a mut *mut c_void>,
    mask: Option<&'a AtomicI32>,
}

impl Opening<'_> {
    /// # Safety
    /// Both are null or lead to what NCCL lets us write.
    pub unsafe fn new(context: *mut *mut c_void, mask: *mut c_int) -> Self {
        // SAFETY: the caller's promise; NCCL's threads read the mask as one number, as an atomic is.
        unsafe {
            let mask = (!mask.is_null()).then(|| AtomicI32::from_ptr(mask));
            Opening { context: context.as_mut(), mask }
        }
    }

    /// Begins a communicator and asks for these kinds of events. NCCL has one mask for the whole process, so
    /// every communicator asks for the same, recorded itself or not.
    pub fn attach(mut self, told: Told, kinds: u64) -> NcclResult {
        if let Some(context) = &mut self.context {
            **context = ptr::null_mut();
        }
        contained("profiler init", || {
            // Without a place for the context NCCL could never end what we begin.
            let Some(context) = self.context else { return };
            let attached = lifecycle::attach(told.about, &told.name, Voice::new(told.logger));
            let Some(attached) = attached else { return };
            *context = pointer(attached.context);
            let wanted = attached.records.map_or(0, |times| if times { kinds } else { kinds & !KERNEL });
            if let Some(mask) = self.mask {
                // Once, and whole: others may be recorded right now.
                mask.store(wanted as c_int, Ordering::Relaxed);
            }
        })
    }
}

/// Starts an event. `describe` reads NCCL's memory, and only if there is a place for the handle.
pub fn start(
    context: *mut c_void,
    handle: Option<&mut *mut c_void>,
    describe: impl FnOnce() -> Option<Event>,
) -> NcclResult {
    let Some(handle) = handle else { return SUCCESS };
    *handle = ptr::null_mut();
    contained("profiler start", || {
        if let Some(event) = describe() {
            *handle = pointer(RECORDER.start(number(context), event));
        }
    })
}

/// Stops an event.
pub fn stop(handle: *mut c_void, by_host: bool) -> NcclResult {
    contained("profiler stop", || RECORDER.stop(number(handle), by_host))
}

/// Says when a kernel stopped.
pub fn kernel_ended(handle: *mut c_void, gpu_ns: Option<u64>) -> NcclResult {
    contained("profiler state", || {
        if let Some(gpu_ns) = gpu_ns {
            RECORDER.kernel_ended(number(handle), gpu_ns);
        }
    })
}

/// Ends a communicator.
pub fn finalize(context: *mut c_void) -> NcclResult {
    contained("profiler finalize", || lifecycle::detach(number(context), Voice::new(None)))
}

/// A handle as what NCCL keeps; it is never followed.
fn pointer(number: u64) -> *mut c_void {
    ptr::without_provenance_mut(number as usize)
}

/// A handle as NCCL gives it back.
pub fn number(pointer: *mut c_void) -> u64 {
    pointer.addr() as u64
}
