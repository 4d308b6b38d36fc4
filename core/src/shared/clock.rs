//! What time a node has: the host's monotonic time plus an offset that the node's `TIME` gave (DESIGN 5.5).

use crate::time::Millis;

/// The clock of one node, as this process knows it. Asks nothing by itself: a call that comes along does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeClock {
    sample: Option<Sample>,
    /// When it was asked last, whether or not it answered.
    asked_at: u64,
}

/// What the node was heard to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    /// The node's time minus the host's.
    offset: i64,
    /// How long the answer took: the node may have read its clock at either end, so the offset is wrong by half at most.
    took: u64,
    heard_at: u64,
}

/// How long a sample is good for, in milliseconds: monotonic clocks drift by less than a millisecond in that time.
const GOOD_FOR_MS: u64 = 30_000;

/// An answer that took longer, in milliseconds, is a makeshift: many round trips in a data centre, and what a host whose
/// store has a longer deadline may get while it is stalled.
const COARSE_MS: u64 = 100;

/// How soon a makeshift is replaced, in milliseconds: not by every call of a network that is slow for good.
const COARSE_FOR_MS: u64 = 1_000;

impl NodeClock {
    /// The node's time; none as long as it has not been heard.
    pub(super) fn now(&self, host: Millis) -> Option<Millis> {
        let ms = host.get().saturating_add_signed(self.sample?.offset);
        Some(Millis::new(ms).unwrap_or(Millis::MAX))
    }

    /// Whether it is to be asked again.
    pub(super) fn is_due(&self, host: Millis) -> bool {
        self.sample.is_some_and(|sample| {
            let good_for = if sample.took > COARSE_MS { COARSE_FOR_MS } else { GOOD_FOR_MS };
            host.get() >= self.asked_at.saturating_add(good_for)
        })
    }

    /// It was asked.
    pub(super) const fn asked(&mut self, host: Millis) {
        self.asked_at = host.get();
    }

    /// It answered, with seconds and microseconds: what it read halfway between question and answer. A coarser answer takes the
    /// place of a finer one only when that is old. False if that is no time.
    pub(super) fn heard(&mut self, sent: Millis, received: Millis, reply: &[i64]) -> bool {
        let &[seconds, micros] = reply else { return false };
        let Some(ms) = seconds.checked_mul(1000).and_then(|ms| ms.checked_add(micros / 1000)) else { return false };
        if !(0..=LATEST).contains(&ms) {
            return false;
        }
        let middle = i64::try_from(u64::midpoint(sent.get(), received.get())).unwrap_or(LATEST);
        let (offset, heard_at) = (ms - middle, received.get());
        let took = heard_at.saturating_sub(sent.get());
        let is_finer = |last: Sample| took <= last.took.max(COARSE_MS) || heard_at >= last.heard_at + GOOD_FOR_MS;
        if self.sample.is_none_or(is_finer) {
            self.sample = Some(Sample { offset, took, heard_at });
        }
        true
    }

    /// It will not say: the host's own time, which begins at the same moment, must do.
    pub(super) const fn give_up(&mut self) {
        if self.sample.is_none() {
            self.sample = Some(Sample { offset: 0, took: 0, heard_at: 0 });
        }
    }
}

const LATEST: i64 = 1 << 52;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Millis {
        Millis::new(ms).unwrap()
    }

    #[test]
    fn the_time_is_what_the_node_read_halfway() {
        let mut clock = NodeClock::default();
        assert_eq!(clock.now(at(5)), None);
        assert!(clock.heard(at(1_000), at(1_010), &[700, 123_456]));
        assert_eq!(clock.now(at(1_005)), Some(at(700_123)));
        assert_eq!(clock.now(at(2_005)), Some(at(701_123)));
        assert_eq!(clock.now(at(0)), Some(at(699_118)), "the host's time may begin anywhere");
    }

    #[test]
    fn it_is_asked_again_after_half_a_minute() {
        let mut clock = NodeClock::default();
        assert!(!clock.is_due(at(90_000)), "the first question is not lazy");
        clock.asked(at(1_000));
        clock.heard(at(1_000), at(1_000), &[1, 0]);
        assert!(!clock.is_due(at(30_999)));
        assert!(clock.is_due(at(31_000)));
        clock.asked(at(31_000));
        assert!(!clock.is_due(at(60_999)), "whether or not it answered");
    }

    #[test]
    fn what_is_no_time_changes_nothing() {
        let mut clock = NodeClock::default();
        for bad in [&[][..], &[1], &[1, 2, 3], &[-1, 0], &[i64::MAX, 0], &[1 << 52, 0]] {
            assert!(!clock.heard(at(1), at(2), bad), "{bad:?}");
        }
        assert_eq!(clock.now(at(5)), None);
        clock.give_up();
        assert_eq!(clock.now(at(5)), Some(at(5)));
        clock.heard(at(10), at(10), &[7, 0]);
        clock.give_up();
        assert_eq!(clock.now(at(10)), Some(at(7_000)), "what was heard once is better");
    }

    #[test]
    fn the_store_s_time_stays_a_moment() {
        let mut clock = NodeClock::default();
        clock.heard(at(10_000), at(10_000), &[1, 0]);
        assert_eq!(clock.now(at(3)), Some(at(0)));
        assert_eq!(clock.now(Millis::MAX).map(Millis::get), Some((1 << 52) - 9_000));
    }

    #[test]
    fn an_answer_that_took_long_is_replaced_soon() {
        let mut clock = NodeClock::default();
        clock.asked(at(0));
        clock.heard(at(0), at(5_000), &[100, 0]);
        assert_eq!(clock.now(at(5_000)), Some(at(102_500)), "wrong by half of that at most");
        assert!(!clock.is_due(at(999)));
        assert!(clock.is_due(at(5_000)));
        clock.asked(at(5_000));
        clock.heard(at(5_000), at(5_010), &[105, 0]);
        assert_eq!(clock.now(at(5_010)), Some(at(105_005)));
        assert!(!clock.is_due(at(34_999)));
    }

    #[test]
    fn a_coarse_answer_replaces_no_fine_one_before_that_is_old() {
        let mut clock = NodeClock::default();
        clock.heard(at(0), at(10), &[100, 0]);
        assert!(clock.heard(at(20_000), at(25_000), &[200, 0]));
        assert_eq!(clock.now(at(25_000)), Some(at(124_995)));
        clock.heard(at(26_000), at(30_010), &[200, 0]);
        assert_eq!(clock.now(at(30_010)), Some(at(202_005)), "clocks drift, and may be set");
    }
}
