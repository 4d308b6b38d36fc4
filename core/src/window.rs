//! What trips a closed circuit: rolling, consecutive, rate (DESIGN 3.4).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::{Config, TripOn};
use crate::time::{is_over, is_unbelievable};

/// What a closed circuit has counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Window {
    /// The times of the failures, in order. Never more than the threshold, for reaching it clears them (unless a quorum is
    /// not reached).
    Rolling(VecDeque<u64>),
    /// The failures in a row.
    Consecutive(u64),
    /// The buckets in the window, in the order of their first call; hardly ever more than ten.
    Rate(Vec<Bucket>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bucket {
    number: u64,
    calls: u64,
    failures: u64,
}

/// What a window says at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) failures_in_window: u64,
    pub(crate) calls_in_window: u64,
    pub(crate) consecutive_failures: u64,
}

/// The window of `rate` is this many buckets.
const BUCKETS: u64 = 10;

impl Window {
    pub(crate) const fn new(trip_on: TripOn) -> Self {
        match trip_on {
            TripOn::Rolling => Self::Rolling(VecDeque::new()),
            TripOn::Consecutive => Self::Consecutive(0),
            TripOn::Rate => Self::Rate(Vec::new()),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Rolling(failures) => failures.clear(),
            Self::Consecutive(row) => *row = 0,
            Self::Rate(buckets) => buckets.clear(),
        }
    }

    /// Whether a success changes nothing.
    pub(crate) const fn ignores_success(&self) -> bool {
        match self {
            Self::Rolling(_) => true,
            Self::Consecutive(row) => *row == 0,
            Self::Rate(_) => false,
        }
    }

    pub(crate) fn success(&mut self, config: &Config, now: u64) {
        match self {
            Self::Rolling(_) => {}
            Self::Consecutive(row) => *row = 0,
            Self::Rate(buckets) => count_call(buckets, config, now, false),
        }
    }

    /// Counts a failure. Some(failures) when that trips.
    pub(crate) fn failure(&mut self, config: &Config, now: u64) -> Option<u64> {
        match self {
            Self::Rolling(failures) => {
                while failures.front().is_some_and(|&t| is_over(t, config.window_ms, now)) {
                    failures.pop_front();
                }
                while failures.back().is_some_and(|&t| is_unbelievable(t, now)) {
                    failures.pop_back();
                }
                // Almost always the end; in the middle only after a clock stepped back.
                failures.insert(failures.partition_point(|&t| t <= now), now);
                let count = failures.len() as u64;
                (count >= config.failure_threshold).then_some(count)
            }
            Self::Consecutive(row) => {
                *row += 1;
                (*row >= config.failure_threshold).then_some(*row)
            }
            Self::Rate(buckets) => {
                count_call(buckets, config, now, true);
                let Bucket { calls, failures, .. } = sum(buckets.iter());
                let trips = calls >= config.minimum_calls && failures as f64 >= config.failure_rate * calls as f64;
                trips.then_some(failures)
            }
        }
    }

    /// Ahead of a failure under a quorum above one: the older failure of its slot goes (rolling), and a row that waits at the
    /// threshold for another instance does not grow (consecutive).
    pub(crate) fn make_room(&mut self, config: &Config, older: Option<u64>) {
        match self {
            Self::Rolling(failures) => {
                let place = older.and_then(|older| failures.iter().position(|&t| t == older));
                place.map(|place| failures.remove(place));
            }
            Self::Consecutive(row) => *row = (*row).min(config.failure_threshold - 1),
            Self::Rate(_) => {}
        }
    }

    /// Whether a failure at `time` is among those that count at `now`.
    pub(crate) const fn holds(&self, config: &Config, time: u64, now: u64) -> bool {
        match self {
            Self::Rolling(_) => !is_over(time, config.window_ms, now) && !is_unbelievable(time, now),
            Self::Consecutive(_) => true,
            Self::Rate(_) => {
                let width = bucket_width(config);
                is_bucket_live(time / width, width, now)
            }
        }
    }

    /// What stands in the window at `now`; drops nothing.
    pub(crate) fn counts(&self, config: &Config, now: u64) -> Counts {
        match self {
            Self::Rolling(failures) => {
                let count = failures.iter().filter(|&&t| self.holds(config, t, now)).count() as u64;
                Counts { failures_in_window: count, ..Counts::default() }
            }
            Self::Consecutive(row) => Counts { consecutive_failures: *row, ..Counts::default() },
            Self::Rate(buckets) => {
                let width = bucket_width(config);
                let live = buckets.iter().filter(|bucket| is_bucket_live(bucket.number, width, now));
                let Bucket { calls, failures, .. } = sum(live);
                Counts { failures_in_window: failures, calls_in_window: calls, ..Counts::default() }
            }
        }
    }
}

fn count_call(buckets: &mut Vec<Bucket>, config: &Config, now: u64, failed: bool) {
    let width = bucket_width(config);
    buckets.retain(|bucket| is_bucket_live(bucket.number, width, now));
    let number = now / width;
    let failures = u64::from(failed);
    // Almost always the last; another only after a clock stepped back.
    match buckets.iter_mut().rev().find(|bucket| bucket.number == number) {
        Some(bucket) => {
            bucket.calls += 1;
            bucket.failures += failures;
        }
        None => buckets.push(Bucket { number, calls: 1, failures }),
    }
}

const fn bucket_width(config: &Config) -> u64 {
    // A window is at least a millisecond, so this is too.
    config.window_ms.div_ceil(BUCKETS)
}

const fn is_bucket_live(bucket: u64, width: u64, now: u64) -> bool {
    bucket + BUCKETS > now / width && !is_unbelievable(bucket * width, now)
}

fn sum<'a>(buckets: impl Iterator<Item = &'a Bucket>) -> Bucket {
    buckets.fold(Bucket::default(), |all, one| Bucket {
        number: 0,
        calls: all.calls + one.calls,
        failures: all.failures + one.failures,
    })
}
