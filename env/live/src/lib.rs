//! Real NCCL: one process per rank, told by one coordinator what to call and with which knobs.
//!
//! A [`worker`] is one rank: it holds the GPU, NCCL and the plugin, and does what it is asked. The [`crew`] is the
//! coordinator's side: it asks all workers at once, and names the one that died, hangs or fails. [`launch`] starts
//! workers on this machine, with whatever they need around them. [`measure`] is how times come about, [`sweep`] and
//! [`compare`] what they are for. Nothing here knows a policy or a command line.
#![forbid(unsafe_code)]

pub mod beside;
pub mod caller;
pub mod cell;
pub mod clock;
pub mod compare;
pub mod crew;
pub mod drift;
mod hex;
pub mod launch;
pub mod measure;
pub mod message;
mod proof;
pub mod session;
pub mod sheet;
pub mod spread;
pub mod sweep;
mod wire;
pub mod worker;
