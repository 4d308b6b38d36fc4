//! All there is to know about a circuit at one moment (DESIGN 3.6).

use crate::breaker::{Mode, State};

/// A circuit at one moment. `state` is what callers see; every other field describes the machine underneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "camelCase"))]
pub struct Snapshot {
    /// The state; forced-open reads open, disabled reads closed.
    pub state: State,
    /// Who decides.
    pub mode: Mode,
    /// Failures in the window (CLOSED; rolling, rate; else 0).
    pub failures_in_window: u64,
    /// Calls in the window (CLOSED; rate; else 0).
    pub calls_in_window: u64,
    /// Failures in a row (consecutive; else 0).
    pub consecutive_failures: u64,
    /// Probes of this half-open period that succeeded.
    pub half_open_successes: u64,
    /// Probes alive now.
    pub half_open_in_flight: u64,
    /// When it tripped, in milliseconds; none unless tripped, kept while HALF_OPEN.
    pub opened_at: Option<u64>,
    /// Milliseconds of OPEN left: 0 unless OPEN; 0 while OPEN means that the next request is a probe.
    pub remaining_open_ms: u64,
    /// Openings since the last close.
    pub trips: u64,
    /// Names the period between two transitions.
    pub epoch: u64,
}
