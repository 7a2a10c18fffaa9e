//! How fast a GPU computes, as far as a job's windows depend on it.

/// Share of the peak that training sustains (35 to 50 % are reported for large models).
const SUSTAINED: f64 = 0.4;

/// Floating-point operations that training sustains in a µs on a GPU of this compute capability × 10.
/// Peaks are NVIDIA's data sheets', dense, 16 bit.
pub fn flops_per_us(sm: u32) -> f64 {
    let teraflops = match sm {
        ..80 => 125.0,
        80..86 => 312.0,
        86..89 => 149.7,
        89 => 362.0,
        90..100 => 989.0,
        100.. => 2250.0,
    };
    teraflops * 1e6 * SUSTAINED
}
