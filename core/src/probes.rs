//! The probes in flight while HALF_OPEN, in the order of (start, id).

use alloc::collections::VecDeque;

use crate::time::{BELIEF_MS, is_over, is_unbelievable};

/// The slots that are taken: (start, id), ascending. Probes mostly end in the order in which they began, so what goes is
/// mostly found near the front, and what comes belongs at the end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Probes(VecDeque<(u64, u64)>);

impl Probes {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn insert(&mut self, start: u64, id: u64) {
        self.0.insert(self.0.partition_point(|&other| other < (start, id)), (start, id));
    }

    /// Frees the slot of this probe, if it still has one.
    pub(crate) fn remove(&mut self, id: u64) {
        // The ids ascend too, unless a clock stepped back: then this may miss it, and every probe is looked at.
        let guess = self.0.partition_point(|&(_, other)| other < id);
        let is_it = |&(_, other): &(u64, u64)| other == id;
        let place = if self.0.get(guess).is_some_and(is_it) { Some(guess) } else { self.0.iter().position(is_it) };
        if let Some(place) = place {
            self.0.remove(place);
        }
    }

    /// Frees the slot of the newest probe.
    pub(crate) fn remove_newest(&mut self) {
        self.0.pop_back();
    }

    /// Drops the probes that have timed out, and those whose start is not believed.
    pub(crate) fn drop_dead(&mut self, timeout_ms: u64, now: u64) {
        while self.0.front().is_some_and(|&(start, _)| is_over(start, timeout_ms, now)) {
            self.0.pop_front();
        }
        while self.0.back().is_some_and(|&(start, _)| is_unbelievable(start, now)) {
            self.0.pop_back();
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// How many are alive at `now`; drops nothing.
    pub(crate) fn live(&self, timeout_ms: u64, now: u64) -> u64 {
        self.live_starts(timeout_ms, now).count() as u64
    }

    /// Milliseconds until the oldest live probe loses its slot.
    pub(crate) fn until_oldest_expires(&self, timeout_ms: u64, now: u64) -> u64 {
        self.live_starts(timeout_ms, now).next().map_or(0, |start| start + timeout_ms - now)
    }

    fn live_starts(&self, timeout_ms: u64, now: u64) -> impl Iterator<Item = u64> {
        let starts = self.0.iter().map(|&(start, _)| start);
        starts
            .take_while(move |&start| start <= now + BELIEF_MS)
            .skip_while(move |&start| is_over(start, timeout_ms, now))
    }
}
