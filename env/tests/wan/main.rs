//! The WAN against the study that it reproduces, and what must hold whatever the links.

mod contract;
mod control;
mod figures;
mod invariants;

use dynamiccl_env::wan::{Network, Setting};

/// Two datacentres with so many GPUs each, as the study has them.
fn study(gpus: usize) -> Setting {
    Setting::new(Network::even(2, gpus, 2).unwrap()).unwrap()
}
