//! What needs a gradient: the LSTM actor-critic, PPO, the curriculum and its checkpoints. It trains
//! over `dynamiccl-env` and leaves a frozen policy for `dynamiccl-policies`; it never prints.
#![forbid(unsafe_code)]
