//! The probes in flight while HALF_OPEN, in the order of (start, id).

use alloc::collections::{BTreeMap, BTreeSet};

use crate::time::{BELIEF_MS, is_over, is_unbelievable};

/// The slots that are taken. Ordered both ways, so that no operation grows with `halfOpenMaxCalls`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Probes {
    by_start: BTreeSet<(u64, u64)>,
    start_of: BTreeMap<u64, u64>,
}

impl Probes {
    pub(crate) const fn new() -> Self {
        Self { by_start: BTreeSet::new(), start_of: BTreeMap::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.by_start.clear();
        self.start_of.clear();
    }

    pub(crate) fn insert(&mut self, start: u64, id: u64) {
        self.by_start.insert((start, id));
        self.start_of.insert(id, start);
    }

    /// Frees the slot of this probe, if it still has one.
    pub(crate) fn remove(&mut self, id: u64) {
        if let Some(start) = self.start_of.remove(&id) {
            self.by_start.remove(&(start, id));
        }
    }

    /// Frees the slot of the newest probe.
    pub(crate) fn remove_newest(&mut self) {
        if let Some((_, id)) = self.by_start.pop_last() {
            self.start_of.remove(&id);
        }
    }

    /// Drops the probes that have timed out, and those whose start is not believed.
    pub(crate) fn drop_dead(&mut self, timeout_ms: u64, now: u64) {
        while let Some(&(start, id)) = self.by_start.first().filter(|(start, _)| is_over(*start, timeout_ms, now)) {
            self.by_start.remove(&(start, id));
            self.start_of.remove(&id);
        }
        while let Some(&(start, id)) = self.by_start.last().filter(|(start, _)| is_unbelievable(*start, now)) {
            self.by_start.remove(&(start, id));
            self.start_of.remove(&id);
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.by_start.len() as u64
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
        let believed = self.by_start.range(..=(now + BELIEF_MS, u64::MAX));
        believed.map(|&(start, _)| start).skip_while(move |&start| is_over(start, timeout_ms, now))
    }
}
