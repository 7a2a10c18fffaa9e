//! Photonic rails beside the figures of the paper, and what must hold for any job.
mod scratch;
