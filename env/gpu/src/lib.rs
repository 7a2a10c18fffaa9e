//! CUDA's driver and NCCL behind safe functions, both found at run time: `libcuda.so.1` and `libnccl.so.2`.
//!
//! Nothing is linked, so one program runs with and without a GPU. Every function that fails says which call, by what
//! name, and in the library's own words; who called it adds the rank. Nothing here knows a knob, a plan or a plugin.

mod buffer;
mod cuda;
mod device;
mod error;
mod event;
mod load;
mod nccl;
mod process;
mod socket;
mod stream;

pub use buffer::Buffer;
pub use cuda::Cuda;
pub use device::{Device, DeviceInfo};
pub use error::GpuError;
pub use event::Event;
pub use load::Load;
pub use nccl::{Call, Communicator, Nccl, UniqueId};
pub use process::{die_with_parent, kill_process, leave, parent};
pub use socket::give_up_after;
pub use stream::Stream;
