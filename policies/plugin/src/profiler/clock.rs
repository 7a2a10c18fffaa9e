//! The host's time, cheap enough for every event.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static ORIGIN: OnceLock<(Instant, u64)> = OnceLock::new();

fn origin() -> &'static (Instant, u64) {
    ORIGIN.get_or_init(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        (Instant::now(), wall.as_micros() as u64)
    })
}

/// Nanoseconds that only go up; what they count from is this library's own.
pub fn nanos() -> u64 {
    origin().0.elapsed().as_nanos() as u64
}

/// The µs since 1970 at which [`nanos`] read this.
pub fn wall_micros(nanos: u64) -> u64 {
    origin().1 + nanos / 1000
}
