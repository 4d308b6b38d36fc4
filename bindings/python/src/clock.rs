//! The time that circuits of this process run by.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pyo3::prelude::pyfunction;
use switchgear_core::Millis;

/// The host's monotonic clock, anchored once to the wall clock: it reads as whole epoch milliseconds.
#[pyfunction]
pub fn monotonic_now() -> u64 {
    // Once, and kept by what is forked: a wall clock that is set back or ahead later neither prolongs nor shortens anything.
    static ANCHOR: OnceLock<(Instant, u64)> = OnceLock::new();
    let (begin, epoch_ns) = ANCHOR.get_or_init(|| {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), whole(since_epoch.as_nanos()))
    });
    epoch_ns.saturating_add(whole(begin.elapsed().as_nanos())) / NS_PER_MS
}

/// The same as the core takes it; none after the last moment there is.
pub fn host_time() -> Option<Millis> {
    Millis::new(monotonic_now()).ok()
}

const NS_PER_MS: u64 = 1_000_000;

fn whole(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}
