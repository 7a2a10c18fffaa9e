//! Work that competes with communication for a GPU: multiplications and additions in registers, the inner loop of a
//! matrix product without its memory. Its blocks say how many multiprocessors it fills.

use std::ffi::{CStr, CString, c_uint, c_void};
use std::ptr::null_mut;

use crate::buffer::Buffer;
use crate::cuda::Handle;
use crate::device::Device;
use crate::error::GpuError;
use crate::stream::Stream;

const PTX: &str = include_str!("load.ptx");
const ENTRY: &CStr = c"load";
/// Threads of a block: as many as a multiprocessor runs at once, so that a block fills one.
const THREADS: u32 = 1024;

/// The kernel, ready to be started.
#[derive(Debug)]
pub struct Load {
    device: Device,
    module: Handle,
    function: Handle,
    blocks: u32,
    out: Buffer,
}

// SAFETY: modules and functions of CUDA may be used from every thread.
unsafe impl Send for Load {}

impl Device {
    /// The kernel with so many blocks.
    pub fn load(&self, blocks: u32) -> Result<Load, GpuError> {
        let cuda = self.cuda();
        let text = CString::new(PTX).expect("no zero within a text of ours");
        let (mut module, mut function) = (null_mut(), null_mut());
        // SAFETY: a handle to write to, and a text that ends with a zero.
        let loaded = unsafe { (cuda.functions().module_load)(&mut module, text.as_ptr().cast()) };
        cuda.check("cuModuleLoadData", loaded)?;
        // SAFETY: as above; the module has just been loaded.
        let found = unsafe { (cuda.functions().module_function)(&mut function, module, ENTRY.as_ptr()) };
        cuda.check("cuModuleGetFunction", found)?;
        let out = self.buffer(blocks as usize * THREADS as usize)?;
        Ok(Load { device: self.clone(), module, function, blocks, out })
    }
}

impl Load {
    /// Starts it: every thread goes round so many times.
    pub fn start(&mut self, rounds: u32, stream: &Stream) -> Result<(), GpuError> {
        let cuda = self.device.cuda();
        let (mut to, mut rounds) = (self.out.address, c_uint::from(rounds));
        let mut arguments: [*mut c_void; 2] = [(&raw mut to).cast(), (&raw mut rounds).cast()];
        // SAFETY: the kernel takes these two, copied before this returns, and writes a float for every thread.
        let started = unsafe {
            (cuda.functions().launch)(
                self.function,
                self.blocks,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                stream.handle,
                arguments.as_mut_ptr(),
                null_mut(),
            )
        };
        cuda.check("cuLaunchKernel", started)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // SAFETY: loaded once and unloaded once.
        unsafe { (self.device.cuda().functions().module_unload)(self.module) };
    }
}
