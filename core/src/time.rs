//! Time as the machine knows it: whole milliseconds that the host hands in.

use alloc::string::ToString as _;

use crate::config::Value;
use crate::error::TimeError;

/// A moment in whole milliseconds, 0 ..= 2^52.
///
/// The limit keeps every sum and quotient of the rules exact in the IEEE doubles that JavaScript and Lua calculate in, so
/// that all copies of the rules agree to the bit. Which moment is 0 is the host's business; epoch milliseconds are usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

impl Millis {
    /// The latest moment: 2^52 ms.
    pub const MAX: Self = Self(1 << 52);

    /// Takes whole milliseconds.
    ///
    /// # Errors
    /// [`TimeError`] beyond [`Millis::MAX`].
    pub fn new(ms: u64) -> Result<Self, TimeError> {
        if ms <= Self::MAX.0 { Ok(Self(ms)) } else { Err(TimeError::new(ms.to_string())) }
    }

    /// Takes what a host that only has doubles calls the time.
    ///
    /// # Errors
    /// [`TimeError`] for NaN, infinities, negative numbers, fractions, and beyond [`Millis::MAX`].
    pub fn from_f64(ms: f64) -> Result<Self, TimeError> {
        // The range check comes first: it also turns NaN away, and only then is the cast exact.
        if (0.0..=Self::MAX.0 as f64).contains(&ms) && (ms as u64) as f64 == ms {
            Ok(Self(ms as u64))
        } else {
            Err(TimeError::new(Value::Number(ms).shown()))
        }
    }

    /// The milliseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// A moment that the machine itself derived; may lie past [`Millis::MAX`] by a duration, as an end of an opening does.
    pub(crate) const fn derived(ms: u64) -> Self {
        Self(ms)
    }
}

/// How far ahead of `now` a recorded time may lie and still be believed (DESIGN 3.8).
///
/// A minute is far more than two synchronised hosts differ by, and short enough that one wild clock cannot block a fleet.
pub(crate) const BELIEF_MS: u64 = 60_000;

/// Whether a recorded time is too far ahead of `now` to be believed (DESIGN 3.8).
pub(crate) const fn is_unbelievable(recorded: u64, now: u64) -> bool {
    recorded > now + BELIEF_MS
}

/// Whether something that began at `start` and lasts `ms` is over at `now`: `start <= now - ms`, without a negative number.
pub(crate) const fn is_over(start: u64, ms: u64, now: u64) -> bool {
    now >= start.saturating_add(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_whole_milliseconds_up_to_2_pow_52() {
        for good in [0.0, 1.0, 4_503_599_627_370_496.0, -0.0] {
            assert_eq!(Millis::from_f64(good).unwrap().get() as f64, good.abs());
        }
        assert_eq!(Millis::new(1 << 52).unwrap(), Millis::MAX);
    }

    #[test]
    fn refuses_what_is_no_moment() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.5, 4_503_599_627_370_497.0, 1e300] {
            let error = Millis::from_f64(bad).unwrap_err();
            assert_eq!(error.code(), "time_invalid");
            assert!(alloc::string::ToString::to_string(&error).contains("`now` must be an integer from 0 to"));
        }
        assert!(Millis::new((1 << 52) + 1).is_err());
    }
}
