//! What the store said last of a circuit, and for how long that may be used without asking again (DESIGN 5.2).

use super::options::SharedOptions;
use super::reply::Verdict;
use crate::breaker::State;
use crate::time::Millis;

/// What an answer of the store says of the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) epoch: u64,
    pub(super) seen: Seen,
}

impl View {
    /// Whether it says all there is to say to a call that wants in: whether a probe may go only the script can say.
    pub(super) const fn is_decided(self) -> bool {
        !matches!(self.seen, Seen::HalfOpen | Seen::Open { wait: 0 })
    }
}

/// The circuit as its callers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Closed,
    /// For so many milliseconds more.
    Open {
        wait: u64,
    },
    HalfOpen,
    ForcedOpen,
    Disabled,
}

/// When an answer was asked for: on the host's clock, and in the order of what this process sent and got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) at: Millis,
    pub(super) turn: u64,
}

/// What is known, if anything is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    last: Option<Learned>,
    /// Counts what was sent and what arrived.
    turn: u64,
}

#[derive(Clone, Copy, Debug)]
struct Learned {
    view: View,
    asked_at: u64,
    arrived: u64,
    /// On the host's clock; of OPEN only.
    reopens_at: u64,
}

impl Known {
    /// Something is sent now.
    pub(super) const fn ask(&mut self, at: Millis) -> Asked {
        self.turn += 1;
        Asked { at, turn: self.turn }
    }

    /// Takes an answer: one of a later period, or one that was asked for after the known one had arrived. Any other is older
    /// than what is known, and false is said. `as_of` is the host's time that a wait counts from.
    pub(super) const fn learn(&mut self, view: View, asked: Asked, as_of: Millis) -> bool {
        self.turn += 1;
        if let Some(last) = self.last
            && view.epoch <= last.view.epoch
            && asked.turn < last.arrived
        {
            return false;
        }
        let wait = if let Seen::Open { wait } = view.seen { wait } else { 0 };
        let reopens_at = as_of.get().saturating_add(wait);
        self.last = Some(Learned { view, asked_at: asked.at.get(), arrived: self.turn, reopens_at });
        true
    }

    /// A period of this epoch has begun, and all that is known is that: the next call asks.
    pub(super) fn forget(&mut self, epoch: u64) {
        self.turn += 1;
        let view = View { epoch, seen: Seen::HalfOpen };
        self.last = Some(Learned { view, asked_at: 0, arrived: self.turn, reopens_at: 0 });
    }

    /// The epoch that is known, 0 if none is.
    pub(super) fn epoch(&self) -> u64 {
        self.last.map_or(0, |last| last.view.epoch)
    }

    /// What need not be asked at this moment. Half-open answers are never used again, nor is anything past the reopening.
    pub(super) fn verdict(&self, host: Millis, options: &SharedOptions) -> Option<Verdict> {
        let last = self.last?;
        let now = host.get();
        // A clock that was set back, where the user's own serves, ends what was known by it.
        let is_fresh = |ms: u64| last.asked_at <= now && now < last.asked_at.saturating_add(ms);
        match last.view.seen {
            Seen::Open { .. } if is_fresh(options.open_cache_ms) && now < last.reopens_at => {
                Some(Verdict::Refused { state: State::Open, retry_after: Some(last.reopens_at - now) })
            }
            Seen::ForcedOpen if is_fresh(options.open_cache_ms) => {
                Some(Verdict::Refused { state: State::Open, retry_after: None })
            }
            Seen::Closed if is_fresh(options.closed_cache_ms) => Some(Verdict::Closed { epoch: last.view.epoch }),
            _ => None,
        }
    }

    /// From when until when every request is admitted without asking, with a permit of this epoch.
    pub(super) fn closed_until(&self, options: &SharedOptions) -> Option<(u64, Millis, Millis)> {
        let last = self.last.filter(|last| last.view.seen == Seen::Closed && options.closed_cache_ms > 0)?;
        let until = last.asked_at.saturating_add(options.closed_cache_ms);
        Some((last.view.epoch, Millis::derived(last.asked_at), Millis::derived(until)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const CLOSED: Seen = Seen::Closed;
    const OPEN: Seen = Seen::Open { wait: 5_000 };

    fn at(ms: u64) -> Millis {
        Millis::new(ms).unwrap()
    }

    fn options() -> SharedOptions {
        SharedOptions { closed_cache_ms: 300, ..SharedOptions::for_config(&Config::default()) }
    }

    fn learned(seen: Seen) -> Known {
        let mut known = Known::default();
        let asked = known.ask(at(1_000));
        assert!(known.learn(View { epoch: 7, seen }, asked, at(1_010)));
        known
    }

    fn refused(state: State, retry_after: Option<u64>) -> Option<Verdict> {
        Some(Verdict::Refused { state, retry_after })
    }

    #[test]
    fn an_opening_is_known_for_a_second_from_the_question_on() {
        let known = learned(OPEN);
        assert_eq!(known.verdict(at(1_010), &options()), refused(State::Open, Some(5_000)));
        assert_eq!(known.verdict(at(1_999), &options()), refused(State::Open, Some(4_011)));
        assert_eq!(known.verdict(at(2_000), &options()), None);
        assert_eq!(known.verdict(at(999), &options()), None, "a clock that was set back");
    }

    #[test]
    fn and_never_past_the_reopening() {
        let known = learned(Seen::Open { wait: 40 });
        assert_eq!(known.verdict(at(1_049), &options()), refused(State::Open, Some(1)));
        assert_eq!(known.verdict(at(1_050), &options()), None);
    }

    #[test]
    fn a_closed_circuit_is_known_for_as_long_as_was_asked() {
        let known = learned(CLOSED);
        assert_eq!(known.verdict(at(1_299), &options()), Some(Verdict::Closed { epoch: 7 }));
        assert_eq!(known.verdict(at(1_300), &options()), None);
        assert_eq!(known.closed_until(&options()), Some((7, at(1_000), at(1_300))));
        let off = SharedOptions { closed_cache_ms: 0, ..options() };
        assert_eq!((known.verdict(at(1_000), &off), known.closed_until(&off)), (None, None));
    }

    #[test]
    fn what_an_operator_forces_is_known_without_a_wait_and_half_open_never() {
        assert_eq!(learned(Seen::ForcedOpen).verdict(at(1_999), &options()), refused(State::Open, None));
        assert_eq!(learned(Seen::ForcedOpen).verdict(at(2_000), &options()), None);
        assert_eq!(learned(Seen::HalfOpen).verdict(at(1_001), &options()), None);
        assert_eq!(learned(Seen::Disabled).verdict(at(1_001), &options()), None);
    }

    #[test]
    fn an_answer_that_was_overtaken_changes_nothing() {
        let mut known = Known::default();
        let [slow, fast] = [1_000, 1_001].map(|ms| known.ask(at(ms)));
        assert!(known.learn(View { epoch: 7, seen: OPEN }, fast, at(1_002)));
        assert!(!known.learn(View { epoch: 6, seen: CLOSED }, slow, at(1_003)));
        assert!(!known.learn(View { epoch: 7, seen: Seen::HalfOpen }, slow, at(1_003)));
        assert!(known.verdict(at(1_004), &options()).is_some());
        assert!(known.learn(View { epoch: 8, seen: CLOSED }, slow, at(1_004)), "a later period is news from any time");
        assert_eq!(known.epoch(), 8);
    }

    #[test]
    fn a_store_that_forgot_everything_is_believed_when_asked_again() {
        let mut known = learned(OPEN);
        let asked = known.ask(at(2_000));
        assert!(known.learn(View { epoch: 0, seen: CLOSED }, asked, at(2_001)));
        assert_eq!(known.verdict(at(2_001), &options()), Some(Verdict::Closed { epoch: 0 }));
    }
}
