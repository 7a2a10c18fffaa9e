//! GPUs, and the context of one that this process and NCCL share.

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;
use std::sync::Arc;

use crate::cuda::{Cuda, Handle};
use crate::error::GpuError;

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSORS: c_int = 16;
const LONGEST_NAME: usize = 256;

/// What a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
    /// Its multiprocessors.
    pub multiprocessors: u32,
}

/// A GPU in use: its primary context, which is also the one that NCCL works in.
#[derive(Debug, Clone)]
pub struct Device(Arc<Context>);

#[derive(Debug)]
struct Context {
    cuda: Cuda,
    device: c_int,
    context: Handle,
}

// SAFETY: CUDA's contexts may be used from every thread; the handle is never changed.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Cuda {
    /// The GPUs that this process sees.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>, GpuError> {
        let mut count = 0;
        // SAFETY: a number to write to.
        self.check("cuDeviceGetCount", unsafe { (self.functions().device_count)(&mut count) })?;
        (0..count).map(|index| self.info(self.device(index)?)).collect()
    }

    fn device(&self, index: c_int) -> Result<c_int, GpuError> {
        let mut device = 0;
        // SAFETY: a number to write to.
        self.check("cuDeviceGet", unsafe { (self.functions().device_get)(&mut device, index) })?;
        Ok(device)
    }

    fn info(&self, device: c_int) -> Result<DeviceInfo, GpuError> {
        let mut name = [0; LONGEST_NAME];
        // SAFETY: as many characters as are said to be there; CUDA ends them with a zero.
        let named =
            unsafe { (self.functions().device_name)(name.as_mut_ptr(), LONGEST_NAME as c_int, device) };
        self.check("cuDeviceGetName", named)?;
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: a number to write to.
            let asked = unsafe { (self.functions().device_attribute)(&mut value, attribute, device) };
            self.check("cuDeviceGetAttribute", asked).map(|()| value.unsigned_abs())
        };
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        Ok(DeviceInfo { name, multiprocessors: attribute(MULTIPROCESSORS)? })
    }

    /// Takes the GPU with this number into use, on this thread.
    pub fn take(&self, index: u32) -> Result<Device, GpuError> {
        let there = self.devices()?.len() as u32;
        if index >= there {
            return Err(GpuError::NoDevice { asked: index, there });
        }
        let device = self.device(index as c_int)?;
        let mut context = null_mut();
        // SAFETY: a handle to write to.
        let retained = unsafe { (self.functions().context_retain)(&mut context, device) };
        self.check("cuDevicePrimaryCtxRetain", retained)?;
        let taken = Device(Arc::new(Context { cuda: self.clone(), device, context }));
        taken.enter()?;
        Ok(taken)
    }
}

impl Device {
    /// Makes it the one that this thread works on.
    pub fn enter(&self) -> Result<(), GpuError> {
        // SAFETY: a context that is kept while this lives.
        let set = unsafe { (self.cuda().functions().context_set)(self.0.context) };
        self.cuda().check("cuCtxSetCurrent", set)
    }

    /// What it is.
    pub fn info(&self) -> Result<DeviceInfo, GpuError> {
        self.cuda().info(self.0.device)
    }

    pub(crate) fn cuda(&self) -> &Cuda {
        &self.0.cuda
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once.
        unsafe { (self.cuda.functions().context_release)(self.device) };
    }
}
