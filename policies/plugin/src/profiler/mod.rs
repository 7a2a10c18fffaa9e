//! The profiler: what ran, and how long it took.
//!
//! NCCL tells of every collective and of its kernels; each becomes a record in a file, one line each, that
//! the environment's trace reader replays, and a share of a metric for Prometheus. `abi` is what NCCL sees,
//! `recorder` what its threads go through, `writer` the thread that touches the disk. None of it decides
//! anything, and nothing is recorded unless `DYNAMICCL_PROFILE` or `DYNAMICCL_PROMETHEUS` asks for it.

mod abi;
mod clock;
mod communicators;
mod event;
mod handle;
mod journal;
mod labels;
mod lifecycle;
mod names;
mod pool;
mod prometheus;
mod record;
mod recorder;
mod ring;
mod say;
mod settings;
mod thread;
mod writer;
