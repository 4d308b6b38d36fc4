//! What instances announce to each other of a circuit (DESIGN 5.6).

use alloc::format;
use alloc::string::{String, ToString};

use super::known::{Seen, View};
use crate::breaker::State;
use crate::permit::{Reason, Transition};
use crate::time::Millis;

/// One announcement: a transition that a script made for some instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The circuit's name.
    pub circuit: String,
    /// The name of the instance whose call made the transition.
    pub instance: String,
    /// What happened; `at` is the store's time.
    pub transition: Transition,
    nonce: u64,
}

impl Announcement {
    /// The channel that the circuits of a prefix are announced on.
    #[must_use]
    pub fn channel(prefix: &str) -> String {
        format!("{prefix}events")
    }

    /// Reads a message of the channel; none for what no script of ours has sent.
    #[must_use]
    pub fn parse(message: &str) -> Option<Self> {
        let (head, instance) = message.split_once('\n')?;
        let mut words = head.splitn(10, ' ');
        let mut next = || words.next();
        if next()? != VERSION {
            return None;
        }
        let [from, to] = [next()?, next()?].map(state);
        let reason = *Reason::ALL.get(next()?.parse::<usize>().ok()?)?;
        let [epoch, at, failures] = [next()?, next()?, next()?].map(|word| word.parse::<u64>().ok());
        let open_ms = next()?.parse::<i64>().ok()?;
        let nonce = u64::from_str_radix(next()?, 16).ok()?;
        let transition = Transition {
            from: from?,
            to: to?,
            at: Millis::new(at?).ok()?,
            reason,
            failures: failures?,
            open_ms: u64::try_from(open_ms).ok(),
            epoch: epoch?,
        };
        Some(Self { circuit: next()?.to_string(), instance: instance.to_string(), transition, nonce })
    }

    /// Whether the circuit with this nonce made it itself.
    pub(super) const fn is_of(&self, nonce: u64) -> bool {
        self.nonce == nonce
    }

    /// What it says of the circuit, where that is all there is to know: what an operator did may be said by the next answer
    /// only, for a mode is not announced.
    pub(super) fn view(&self, store: Option<Millis>) -> Option<View> {
        let Transition { to, at, reason, open_ms, epoch, .. } = self.transition;
        let seen = match (to, open_ms) {
            (State::Closed, _) if reason != Reason::Manual => Seen::Closed,
            (State::HalfOpen, _) => Seen::HalfOpen,
            (State::Open, Some(ms)) => {
                let gone = store.map_or(0, |now| now.get().saturating_sub(at.get()));
                Seen::Open { wait: ms.saturating_sub(gone) }
            }
            _ => return None,
        };
        Some(View { epoch, seen })
    }
}

/// What scripts put behind the numbers of an announcement: whose it is.
pub(super) fn origin(nonce: u64, circuit: &str, instance: &str) -> String {
    format!("{nonce:016x} {circuit}\n{instance}")
}

/// The first word of each message; another one is of another version.
const VERSION: &str = "1";

fn state(word: &str) -> Option<State> {
    match word {
        "0" => Some(State::Closed),
        "1" => Some(State::Open),
        "2" => Some(State::HalfOpen),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(head: &str, circuit: &str, instance: &str) -> String {
        format!("{head} {}", origin(0xab, circuit, instance))
    }

    #[test]
    fn a_trip_says_all_of_it() {
        let heard = Announcement::parse(&message("1 0 1 0 1700 1700 5 30000", "GET /a b", "host\n7")).unwrap();
        assert_eq!((heard.circuit.as_str(), heard.instance.as_str()), ("GET /a b", "host\n7"));
        let Transition { from, to, at, reason, failures, open_ms, epoch } = heard.transition;
        assert_eq!((from, to, reason), (State::Closed, State::Open, Reason::Threshold));
        assert_eq!((at.get(), failures, open_ms, epoch), (1_700, 5, Some(30_000), 1_700));
        assert!(heard.is_of(0xab) && !heard.is_of(0xac));
        let now = Millis::new(2_000).unwrap();
        assert_eq!(heard.view(Some(now)), Some(View { epoch: 1_700, seen: Seen::Open { wait: 29_700 } }));
    }

    #[test]
    fn what_an_operator_did_is_for_the_next_answer() {
        for (head, known) in [("1 1 0 4 9 9 0 -1", false), ("1 0 1 4 9 9 0 -1", false), ("1 0 1 4 9 9 0 50", true)] {
            let heard = Announcement::parse(&message(head, "x", "i")).unwrap();
            assert_eq!(heard.view(None).is_some(), known, "{head}");
        }
        let closed = Announcement::parse(&message("1 2 0 3 9 9 0 -1", "x", "i")).unwrap();
        assert_eq!(closed.view(None), Some(View { epoch: 9, seen: Seen::Closed }));
    }

    #[test]
    fn what_is_no_announcement_is_none() {
        let good = message("1 0 1 0 1700 1700 5 30000", "x", "i");
        assert!(Announcement::parse(&good).is_some());
        for cut in 0..good.len() - 2 {
            assert_eq!(Announcement::parse(&good[..cut]), None, "{cut}");
        }
        for head in ["2 0 1 0 1 1 5 1", "1 3 1 0 1 1 5 1", "1 0 1 5 1 1 5 1", "1 0 1 0 -1 1 5 1", "1 0 1 0 1 x 5 1", ""]
        {
            assert_eq!(Announcement::parse(&message(head, "x", "i")), None, "{head}");
        }
    }
}
