//! A moment in a stream, by the GPU's own clock.

use std::ptr::null_mut;

use crate::cuda::Handle;
use crate::device::Device;
use crate::error::GpuError;
use crate::stream::Stream;

/// A moment in a stream.
#[derive(Debug)]
pub struct Event {
    device: Device,
    handle: Handle,
}

// SAFETY: CUDA's events may be used from every thread.
unsafe impl Send for Event {}

impl Device {
    /// A moment that is not yet set.
    pub fn event(&self) -> Result<Event, GpuError> {
        let mut handle = null_mut();
        // SAFETY: a handle to write to.
        let made = unsafe { (self.cuda().functions().event_create)(&mut handle, 0) };
        self.cuda().check("cuEventCreate", made)?;
        Ok(Event { device: self.clone(), handle })
    }
}

impl Event {
    /// Sets it to when the stream's work so far is done.
    pub fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        let cuda = self.device.cuda();
        // SAFETY: both live.
        cuda.check("cuEventRecord", unsafe { (cuda.functions().event_record)(self.handle, stream.handle) })
    }

    /// Microseconds from this moment to a later one; both must have come.
    pub fn micros_until(&self, later: &Event) -> Result<f64, GpuError> {
        let cuda = self.device.cuda();
        let mut milliseconds = 0.0;
        // SAFETY: a number to write to; both live.
        let told = unsafe { (cuda.functions().event_elapsed)(&mut milliseconds, self.handle, later.handle) };
        cuda.check("cuEventElapsedTime", told)?;
        Ok(f64::from(milliseconds) * 1000.0)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made once and ended once.
        unsafe { (self.device.cuda().functions().event_destroy)(self.handle) };
    }
}
