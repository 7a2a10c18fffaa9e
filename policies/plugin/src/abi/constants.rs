//! What newer interfaces pass to `init` besides: NCCL's model and its NVLink domains. The model is never
//! touched; the layouts are here so that a wrong one fails the build.

use std::ffi::c_int;

const ALGORITHMS: usize = 7;
const PROTOCOLS: usize = 3;
const LINKS: usize = 3;
const SCALES: usize = 3;

/// `ncclNvlDomainInfo_v5_t`, the same since.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NvlDomains {
    /// NVLink domains.
    pub domains: c_int,
    /// The fewest ranks of one.
    pub fewest: c_int,
    /// The most ranks of one.
    pub most: c_int,
}

/// `ncclTunerConstants_v5_t` with rows for this many generations of GPUs: 4 up to v6, 5 in v7.
#[derive(Debug)]
#[repr(C)]
pub struct Constants<const GENERATIONS: usize> {
    base_latencies: [[f64; PROTOCOLS]; ALGORITHMS],
    hardware_latencies: [[[f64; PROTOCOLS]; ALGORITHMS]; LINKS],
    ll_max: [[f64; SCALES]; GENERATIONS],
    ring_ll128_max: [[f64; SCALES]; GENERATIONS],
    tree_ll128_max: [[f64; SCALES]; GENERATIONS],
    tree_max: [[f64; SCALES]; GENERATIONS],
    nvls_tree_max: [[f64; SCALES]; GENERATIONS],
}

const _: () = {
    assert!(size_of::<NvlDomains>() == 12);
    assert!(std::mem::offset_of!(Constants<4>, hardware_latencies) == 168);
    assert!(std::mem::offset_of!(Constants<4>, ll_max) == 672);
    assert!(size_of::<Constants<4>>() == 672 + 5 * 4 * 3 * 8);
    assert!(size_of::<Constants<5>>() == 672 + 5 * 5 * 3 * 8);
};
