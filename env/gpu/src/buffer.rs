//! Memory of a GPU: floats that are written from the host and read back.

use crate::cuda::Address;
use crate::device::Device;
use crate::error::GpuError;
use crate::stream::Stream;

/// Floats on a GPU.
#[derive(Debug)]
pub struct Buffer {
    device: Device,
    pub(crate) address: Address,
    /// Floats.
    length: usize,
}

const FLOAT: usize = size_of::<f32>();

impl Device {
    /// Room for so many floats, at least one.
    pub fn buffer(&self, floats: usize) -> Result<Buffer, GpuError> {
        let length = floats.max(1);
        let mut address = 0;
        // SAFETY: a number to write to.
        let made = unsafe { (self.cuda().functions().allocate)(&mut address, length * FLOAT) };
        self.cuda().check("cuMemAlloc", made)?;
        Ok(Buffer { device: self.clone(), address, length })
    }
}

impl Buffer {
    /// Floats that it holds.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Writes its first floats. Nothing may be under way that reads them.
    pub fn write(&mut self, floats: &[f32]) -> Result<(), GpuError> {
        self.holds("cuMemcpyHtoD", floats.len())?;
        let cuda = self.device.cuda();
        // SAFETY: as many floats are on both sides.
        let copied =
            unsafe { (cuda.functions().copy_in)(self.address, floats.as_ptr().cast(), size_of_val(floats)) };
        cuda.check("cuMemcpyHtoD", copied)
    }

    /// Reads its first floats. Nothing may be under way that writes them.
    pub fn read(&self, floats: &mut [f32]) -> Result<(), GpuError> {
        self.holds("cuMemcpyDtoH", floats.len())?;
        let cuda = self.device.cuda();
        // SAFETY: as many floats are on both sides.
        let copied = unsafe {
            (cuda.functions().copy_out)(floats.as_mut_ptr().cast(), self.address, size_of_val(floats))
        };
        cuda.check("cuMemcpyDtoH", copied)
    }

    /// Lets the stream set its first floats to a value.
    pub fn fill(&mut self, value: f32, floats: usize, stream: &Stream) -> Result<(), GpuError> {
        self.holds("cuMemsetD32Async", floats)?;
        let cuda = self.device.cuda();
        // SAFETY: so many floats are there.
        let filled =
            unsafe { (cuda.functions().set_words)(self.address, value.to_bits(), floats, stream.handle) };
        cuda.check("cuMemsetD32Async", filled)
    }

    /// An error unless it holds so many floats.
    pub(crate) fn holds(&self, call: &'static str, floats: usize) -> Result<(), GpuError> {
        let (asked, there) = (floats.saturating_mul(FLOAT), self.length * FLOAT);
        if asked > there { Err(GpuError::Beyond { call, asked, there }) } else { Ok(()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Waits for what is under way with it.
        // SAFETY: allocated once and freed once.
        unsafe { (self.device.cuda().functions().free)(self.address) };
    }
}
