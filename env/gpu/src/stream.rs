//! A queue of work of a GPU.

use std::ffi::c_uint;
use std::ptr::null_mut;

use crate::cuda::Handle;
use crate::device::Device;
use crate::error::GpuError;

/// `CU_STREAM_NON_BLOCKING`: work of other streams is not waited for.
const NON_BLOCKING: c_uint = 1;

/// A queue of work.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    pub(crate) handle: Handle,
}

// SAFETY: CUDA's streams may be used from every thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Device {
    /// A new queue.
    pub fn stream(&self) -> Result<Stream, GpuError> {
        let mut handle = null_mut();
        // SAFETY: a handle to write to.
        let made = unsafe { (self.cuda().functions().stream_create)(&mut handle, NON_BLOCKING) };
        self.cuda().check("cuStreamCreate", made)?;
        Ok(Stream { device: self.clone(), handle })
    }
}

impl Stream {
    /// Waits until all of its work is done.
    pub fn synchronise(&self) -> Result<(), GpuError> {
        let cuda = self.device.cuda();
        // SAFETY: a stream that lives.
        cuda.check("cuStreamSynchronize", unsafe { (cuda.functions().stream_synchronise)(self.handle) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made once and ended once.
        unsafe { (self.device.cuda().functions().stream_destroy)(self.handle) };
    }
}
