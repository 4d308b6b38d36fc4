//! The guard in front of the store: it is a dependency like any other, so a breaker of our own stands before it (DESIGN 5.4).

use crate::breaker::{CircuitBreaker, State};
use crate::config::{Config, Naming};
use crate::permit::{Decision, Permit};
use crate::time::Millis;

/// One guard. While it is open nothing of a caller's is sent; once a second a command of the engine's own looks whether that
/// is still right.
#[derive(Clone, Debug)]
pub(super) struct Guard(CircuitBreaker);

/// Whether to ask the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// Ask.
    Ask,
    /// Do not; but send a probe of the engine's own, and settle it with this permit.
    Probe(Permit),
    /// Do not.
    Keep,
}

/// Three: one lost connection is no outage, and each one more costs a caller a whole deadline.
const FAILURES: i32 = 3;

/// A second: what a caller may miss when the store is back.
const PROBE_EACH_MS: i32 = 1_000;

impl Guard {
    pub(super) fn new() -> Self {
        // In the one spelling that every build knows.
        let fields = [
            ("tripOn", "consecutive".into()),
            ("failureThreshold", FAILURES.into()),
            ("openDurationMs", PROBE_EACH_MS.into()),
        ];
        Self(CircuitBreaker::new(Config::build(Naming::Camel, &[&fields]).unwrap_or_default()))
    }

    /// Whether the store is asked by callers.
    pub(super) fn is_closed(&self) -> bool {
        self.0.state() == State::Closed
    }

    /// Whether to ask the store now.
    pub(super) fn leave(&mut self, host: Millis) -> Leave {
        if self.is_closed() {
            return Leave::Ask;
        }
        match self.0.can_request(host).decision {
            Decision::Allowed(permit) => Leave::Probe(permit),
            Decision::Refused { .. } => Leave::Keep,
        }
    }

    /// What became of a command that a caller waited for. What was sent before the guard opened says nothing any more.
    pub(super) fn heard(&mut self, host: Millis, answered: bool) {
        if !self.is_closed() || answered && self.0.hints().success_free {
            return;
        }
        self.probed(host, None, answered);
    }

    /// What became of the probe.
    pub(super) fn probed(&mut self, host: Millis, permit: Option<Permit>, answered: bool) {
        if answered {
            self.0.record_success(host, permit);
        } else {
            self.0.record_failure(host, permit);
        }
    }

    /// The probe could not be sent, or says nothing: the next call may send another.
    pub(super) fn released(&mut self, host: Millis, permit: Permit) {
        self.0.release(host, Some(permit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Millis {
        Millis::new(ms).unwrap()
    }

    fn open() -> Guard {
        let mut guard = Guard::new();
        for ms in [1, 2, 3] {
            assert_eq!(guard.leave(at(ms)), Leave::Ask);
            guard.heard(at(ms), false);
        }
        guard
    }

    #[test]
    fn three_failures_in_a_row_open_it() {
        let mut guard = Guard::new();
        for answered in [false, false, true, false, false] {
            guard.heard(at(1), answered);
        }
        assert!(guard.is_closed());
        guard.heard(at(1), false);
        assert!(!guard.is_closed());
    }

    #[test]
    fn once_a_second_a_probe_goes_out_and_no_caller() {
        let mut guard = open();
        assert_eq!(guard.leave(at(1_002)), Leave::Keep);
        let Leave::Probe(permit) = guard.leave(at(1_003)) else { panic!("due") };
        assert_eq!(guard.leave(at(1_004)), Leave::Keep);
        guard.probed(at(1_100), Some(permit), false);
        assert_eq!(guard.leave(at(2_099)), Leave::Keep);
        let Leave::Probe(permit) = guard.leave(at(2_100)) else { panic!("due") };
        guard.probed(at(2_101), Some(permit), true);
        assert_eq!(guard.leave(at(2_101)), Leave::Ask);
    }

    #[test]
    fn only_the_probe_closes_it() {
        let mut guard = open();
        guard.heard(at(10), true);
        assert!(!guard.is_closed());
        let Leave::Probe(permit) = guard.leave(at(1_003)) else { panic!("due") };
        guard.heard(at(1_003), true);
        assert!(!guard.is_closed());
        guard.released(at(1_004), permit);
        assert!(matches!(guard.leave(at(1_004)), Leave::Probe(_)));
    }
}
