//! What a network and its tuner promise, whatever the weights and whatever the call.

mod legal;
mod memory;
mod nccl;
mod reference;
