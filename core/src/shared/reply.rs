//! The integers that the scripts answer (DESIGN section 4), read back into the core's own words.

use super::known::{Seen, View};
use crate::breaker::{Mode, State};
use crate::permit::{Reason, Settlement, Transition};
use crate::snapshot::Snapshot;
use crate::time::Millis;

/// The verdict on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Refused { state: State, retry_after: Option<u64> },
    Closed { epoch: u64 },
    Probe { epoch: u64 },
    Bypass,
}

/// What stands behind the head of each reply but that of `get_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Aftermath {
    pub(super) transition: Option<Transition>,
    pub(super) config_mismatch: bool,
}

/// The head of a reply: status, state, mode, epoch, wait.
pub(super) fn verdict(reply: &[i64]) -> Option<Verdict> {
    let &[status, state, mode, epoch, wait, ..] = reply else { return None };
    let epoch = u64::try_from(epoch).ok()?;
    Some(match status {
        0 => Verdict::Refused {
            state: self::mode(mode)?.seen(self::state(state)?),
            retry_after: u64::try_from(wait).ok(),
        },
        1 => Verdict::Closed { epoch },
        2 => Verdict::Probe { epoch },
        3 => Verdict::Bypass,
        _ => return None,
    })
}

/// What every reply but that of `get_state` says of the circuit.
pub(super) fn view(reply: &[i64]) -> Option<View> {
    let &[_, state, mode, epoch, wait, ..] = reply else { return None };
    let seen = match (self::mode(mode)?, self::state(state)?) {
        (Mode::ForcedOpen, _) => Seen::ForcedOpen,
        (Mode::Disabled, _) => Seen::Disabled,
        (Mode::Auto, State::Closed) => Seen::Closed,
        (Mode::Auto, State::HalfOpen) => Seen::HalfOpen,
        (Mode::Auto, State::Open) => Seen::Open { wait: u64::try_from(wait).ok()? },
    };
    Some(View { epoch: u64::try_from(epoch).ok()?, seen })
}

pub(super) fn settlement(reply: &[i64]) -> Option<Settlement> {
    match reply.first()? {
        0 => Some(Settlement::Stale),
        1 => Some(Settlement::Applied),
        _ => None,
    }
}

/// Everything after the head: from, reason, failures, open_ms, mismatch. `at` is the time the script was given.
pub(super) fn aftermath(reply: &[i64], at: Millis) -> Option<Aftermath> {
    let &[_, state, mode, epoch, _, from, reason, failures, open_ms, mismatch] = reply else { return None };
    let transition = if from < 0 {
        None
    } else {
        Some(Transition {
            from: self::state(from)?,
            to: self::mode(mode)?.seen(self::state(state)?),
            at,
            reason: *Reason::ALL.get(usize::try_from(reason).ok()?)?,
            failures: u64::try_from(failures).ok()?,
            open_ms: u64::try_from(open_ms).ok(),
            epoch: u64::try_from(epoch).ok()?,
        })
    };
    // A change between two states that look alike is none to those who watch, as in the machine.
    Some(Aftermath { transition: transition.filter(|t| t.from != t.to), config_mismatch: mismatch == 1 })
}

pub(super) fn snapshot(reply: &[i64]) -> Option<Snapshot> {
    let &[seen, mode, epoch, opened_at, remaining, trips, failures, calls, row, successes, in_flight] = reply else {
        return None;
    };
    let count = |n: i64| u64::try_from(n).ok();
    Some(Snapshot {
        state: state(seen)?,
        mode: self::mode(mode)?,
        failures_in_window: count(failures)?,
        calls_in_window: count(calls)?,
        consecutive_failures: count(row)?,
        half_open_successes: count(successes)?,
        half_open_in_flight: count(in_flight)?,
        opened_at: count(opened_at),
        remaining_open_ms: count(remaining)?,
        trips: count(trips)?,
        epoch: count(epoch)?,
    })
}

const fn state(n: i64) -> Option<State> {
    match n {
        0 => Some(State::Closed),
        1 => Some(State::Open),
        2 => Some(State::HalfOpen),
        _ => None,
    }
}

const fn mode(n: i64) -> Option<Mode> {
    match n {
        0 => Some(Mode::Auto),
        1 => Some(Mode::ForcedOpen),
        2 => Some(Mode::Disabled),
        _ => None,
    }
}
