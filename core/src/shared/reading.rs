//! What an admission reads of a circuit's hash, and what that says: every answer that needs no write (DESIGN section 4).
//!
//! A plain read is as correct as a script on a primary and costs a sixth less, so the healthy path takes it. Whatever it
//! cannot answer for certain goes to `can_request`.

use super::known::{Seen, View};
use crate::time::{Millis, is_unbelievable};

/// The fields of the circuit's hash that an admission reads, in the order in which the engine takes them.
pub const ADMISSION_FIELDS: [&str; 5] = ["state", "mode", "epoch", "opened_at", "open_ms"];

/// What a request at `now`, on the store's clock, finds in the values of [`ADMISSION_FIELDS`]; none where they are not as we
/// write them. Of an opening that is over and of a half-open period only the script can say more.
pub(super) fn view(now: Millis, fields: [Option<&str>; 5]) -> Option<View> {
    let [state, mode, epoch, opened_at, open_ms] = fields;
    let epoch = epoch.map_or(Some(0), number)?;
    let seen = match (mode, state) {
        (Some("forced-open"), _) => Seen::ForcedOpen,
        (Some("disabled"), _) => Seen::Disabled,
        (_, Some("open")) => opening(now.get(), opened_at, open_ms)?,
        (_, Some("half-open")) => Seen::HalfOpen,
        _ => Seen::Closed,
    };
    Some(View { epoch, seen })
}

/// An opening that is well described and believed; without a wait if it is over.
fn opening(now: u64, opened_at: Option<&str>, open_ms: Option<&str>) -> Option<Seen> {
    let (opened_at, open_ms) = (number(opened_at?)?, number(open_ms?)?);
    if is_unbelievable(opened_at, now) {
        return None;
    }
    Some(Seen::Open { wait: (opened_at + open_ms).saturating_sub(now) })
}

/// A number as the scripts write it; what stands there otherwise is for them to make sense of.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|&n| n <= MAX_EXACT)
}

/// The largest integer up to which doubles, and so Lua and JavaScript, are exact.
const MAX_EXACT: u64 = (1 << 53) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(now: u64, fields: [Option<&str>; 5]) -> Option<View> {
        view(Millis::new(now).unwrap(), fields)
    }

    fn open(now: u64, opened_at: &str, open_ms: &str) -> Option<View> {
        read(now, [Some("open"), None, Some("7"), Some(opened_at), Some(open_ms)])
    }

    fn seen(epoch: u64, seen: Seen) -> Option<View> {
        Some(View { epoch, seen })
    }

    #[test]
    fn an_unheard_of_circuit_is_closed() {
        assert_eq!(read(5, [None; 5]), seen(0, Seen::Closed));
        assert_eq!(read(5, [None, None, Some("9007199254740991"), None, None]), seen(MAX_EXACT, Seen::Closed));
    }

    #[test]
    fn an_opening_refuses_to_its_last_millisecond() {
        assert_eq!(open(100, "100", "50"), seen(7, Seen::Open { wait: 50 }));
        assert_eq!(open(149, "100", "50"), seen(7, Seen::Open { wait: 1 }));
        assert_eq!(open(150, "100", "50"), seen(7, Seen::Open { wait: 0 }));
    }

    #[test]
    fn an_opening_too_far_ahead_is_for_the_script() {
        assert_eq!(open(40, "60040", "50"), seen(7, Seen::Open { wait: 60_050 }));
        assert_eq!(open(39, "60040", "50"), None);
    }

    #[test]
    fn what_is_not_as_we_write_it_is_for_the_script() {
        for bad in ["", "-1", "1.5", "1e3", "x", "9007199254740992", "99999999999999999999999"] {
            assert_eq!(open(100, bad, "50"), None, "{bad}");
            assert_eq!(open(100, "100", bad), None, "{bad}");
            assert_eq!(read(100, [None, None, Some(bad), None, None]), None, "{bad}");
        }
        assert_eq!(read(100, [Some("open"), None, Some("7"), None, Some("50")]), None);
        assert_eq!(read(100, [Some("open"), None, Some("7"), Some("100"), None]), None, "an old instance tripped it");
    }

    #[test]
    fn manual_modes_come_before_the_state() {
        for state in [None, Some("open"), Some("half-open")] {
            assert_eq!(read(5, [state, Some("forced-open"), Some("7"), None, None]), seen(7, Seen::ForcedOpen));
            assert_eq!(read(5, [state, Some("disabled"), Some("7"), None, None]), seen(7, Seen::Disabled));
        }
    }

    #[test]
    fn a_half_open_circuit_is_for_the_script() {
        assert_eq!(read(5, [Some("half-open"), None, Some("7"), Some("1"), Some("2")]), seen(7, Seen::HalfOpen));
    }
}
