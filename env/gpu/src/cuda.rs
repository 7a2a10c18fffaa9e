//! `libcuda.so.1`: the driver's functions that we use, each with its type (`cuda.h` of CUDA 12).

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::error::GpuError;

/// `CUresult`.
pub(crate) type Code = c_int;
/// `CUdeviceptr`.
pub(crate) type Address = u64;
/// A handle of CUDA's: context, stream, event, module, function.
pub(crate) type Handle = *mut c_void;

/// The driver's library by the name that every driver has.
const LIBRARY: &str = "libcuda.so.1";
const REMEDY: &str =
    "no NVIDIA driver is installed here, or the container was started without it (--gpus all)";
const SUCCESS: Code = 0;

/// Declares the functions: field, symbol, arguments.
macro_rules! functions {
    ($($field:ident = $symbol:literal ( $($argument:ty),* ) ;)*) => {
        /// The driver's functions.
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> Code,)*
            _library: Library,
        }

        impl Functions {
            fn find(library: Library) -> Result<Self, GpuError> {
                $(
                    // SAFETY: the driver's function of that name has this type.
                    let $field = *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> Code>($symbol.as_bytes())
                    }
                    .map_err(|why| GpuError::Lacks { library: LIBRARY, symbol: $symbol, why })?;
                )*
                Ok(Functions { $($field,)* _library: library })
            }
        }
    };
}

functions! {
    init = "cuInit" (c_uint);
    error_name = "cuGetErrorName" (Code, *mut *const c_char);
    error_text = "cuGetErrorString" (Code, *mut *const c_char);
    driver_version = "cuDriverGetVersion" (*mut c_int);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut c_int, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    context_retain = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    context_release = "cuDevicePrimaryCtxRelease_v2" (c_int);
    context_set = "cuCtxSetCurrent" (Handle);
    allocate = "cuMemAlloc_v2" (*mut Address, usize);
    free = "cuMemFree_v2" (Address);
    copy_in = "cuMemcpyHtoD_v2" (Address, *const c_void, usize);
    copy_out = "cuMemcpyDtoH_v2" (*mut c_void, Address, usize);
    set_words = "cuMemsetD32Async" (Address, c_uint, usize, Handle);
    stream_create = "cuStreamCreate" (*mut Handle, c_uint);
    stream_destroy = "cuStreamDestroy_v2" (Handle);
    stream_synchronise = "cuStreamSynchronize" (Handle);
    event_create = "cuEventCreate" (*mut Handle, c_uint);
    event_destroy = "cuEventDestroy_v2" (Handle);
    event_record = "cuEventRecord" (Handle, Handle);
    event_elapsed = "cuEventElapsedTime" (*mut f32, Handle, Handle);
    module_load = "cuModuleLoadData" (*mut Handle, *const c_void);
    module_unload = "cuModuleUnload" (Handle);
    module_function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    launch = "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
}

/// The driver, opened and begun.
#[derive(Clone)]
pub struct Cuda(Arc<Functions>);

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cuda")
    }
}

impl Cuda {
    /// Opens the driver and begins it; makes no context.
    pub fn open() -> Result<Self, GpuError> {
        // Global, as every CUDA program has it: NCCL finds the same.
        // SAFETY: the driver's constructors are as safe as the driver.
        let library = unsafe { Library::open(Some(LIBRARY), RTLD_NOW | RTLD_GLOBAL) };
        let library =
            library.map_err(|why| GpuError::Closed { name: LIBRARY.into(), why, remedy: REMEDY })?;
        let cuda = Cuda(Arc::new(Functions::find(library)?));
        // SAFETY: no pointer.
        cuda.check("cuInit", unsafe { (cuda.functions().init)(0) })?;
        Ok(cuda)
    }

    /// The newest CUDA that the driver can run, as `12.8`.
    pub fn version(&self) -> Result<String, GpuError> {
        let mut code = 0;
        // SAFETY: a number to write to.
        self.check("cuDriverGetVersion", unsafe { (self.functions().driver_version)(&mut code) })?;
        Ok(format!("{}.{}", code / 1000, code % 1000 / 10))
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.0
    }

    /// An error unless this is success.
    pub(crate) fn check(&self, call: &'static str, code: Code) -> Result<(), GpuError> {
        if code == SUCCESS {
            return Ok(());
        }
        let words = |ask: unsafe extern "C" fn(Code, *mut *const c_char) -> Code| {
            let mut text = std::ptr::null();
            // SAFETY: a pointer to write to; what it then leads to is a constant of the driver's.
            let found = unsafe { ask(code, &mut text) } == SUCCESS && !text.is_null();
            // SAFETY: as above.
            found.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let name = words(self.0.error_name).unwrap_or_else(|| "an unknown error".to_owned());
        let text = words(self.0.error_text).unwrap_or_else(|| "CUDA says no more".to_owned());
        Err(GpuError::Cuda { call, name, code, text })
    }
}
