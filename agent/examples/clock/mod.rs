//! Time that this thread has had a core: what a comparison needs on a machine that others use as well.

/// Seconds on a core so far.
///
/// # Panics
/// Where the kernel does not tell: it is Linux that does.
pub fn seconds() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel that counts");
    let nanoseconds: f64 = told.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    1e-9 * nanoseconds
}
