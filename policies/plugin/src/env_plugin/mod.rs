//! The env plugin: hands NCCL what it reads once per process, before any communicator is there.
//!
//! NCCL 2.28.7 and newer ask it for every variable. It answers as the environment would, but for the threads
//! and the buffer that the launch was given (`DYNAMICCL_NTHREADS`, `DYNAMICCL_BUFFSIZE`, or `[launch]` of the
//! deployment file), and for those only where the user has set nothing. It decides nothing.

mod abi;
mod answers;
mod opening;
