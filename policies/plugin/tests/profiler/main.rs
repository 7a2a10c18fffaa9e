//! The profiler and the env plugin, driven through every version of their interfaces by a plain C host that
//! loads the library as NCCL does. What the profiler writes is read by the environment's own trace reader.

mod documented;
mod env_plugin;
mod host;
mod limits;
mod records;
