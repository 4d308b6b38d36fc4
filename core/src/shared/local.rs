//! The breaker of this process alone, which decides while the store cannot be asked (DESIGN 5.4).

use crate::breaker::{CircuitBreaker, State};
use crate::config::{Config, TripOn};
use crate::permit::{Admission, Decision, Outcome, Permit, Reason, Settled, Settlement, Transition};
use crate::quorum::Quorum;
use crate::snapshot::Snapshot;
use crate::time::{Millis, is_over};

use super::known::{Seen, View};
use super::options::{OnStoreFailure, SharedOptions};

/// A breaker of the same configuration that is fed with every outcome, so that it is warm when it takes over. Neither
/// takeover nor return resets it; only a later period of the store does, as it ends all that was counted before.
#[derive(Clone, Debug)]
pub(super) struct Local {
    breaker: CircuitBreaker,
    /// The store's period that it follows.
    followed: Option<u64>,
    /// Whether an operator holds the store's circuit open, as far as is known.
    is_forced: bool,
    /// When the store did not take a failure last, in this period.
    untaken_at: Option<u64>,
    /// Whether it refuses whatever the store says, until its own probe succeeds or the store reports a later closed period.
    stands: bool,
    /// Whether failures that the store did not take may make it stand: only where it decides while the store is away.
    stands_in: bool,
    /// Whether it stands wherever it trips: where a quorum must agree before the fleet trips, one instance trips alone.
    always_stands: bool,
}

impl Local {
    pub(super) fn new(config: Config, options: &SharedOptions) -> Self {
        Self {
            breaker: CircuitBreaker::new(config),
            followed: None,
            is_forced: false,
            untaken_at: None,
            stands: false,
            stands_in: options.on_store_failure == OnStoreFailure::Local,
            always_stands: options.quorum != Quorum::ONE,
        }
    }

    /// Names the period in which a call is admitted by the store; its outcome is stale here in any other.
    pub(super) fn period(&self) -> u64 {
        match self.breaker.hints().admit_free {
            Some(Permit::Closed { epoch }) => epoch,
            _ => NO_PERIOD,
        }
    }

    /// Whether it refuses whatever the store says: what refuses, and the wait.
    pub(super) fn objection(&self, host: Millis) -> Option<(State, Option<u64>)> {
        if !self.stands {
            return None;
        }
        match self.breaker.retry_after(host) {
            Some(0) => None,
            wait => Some((self.breaker.state(), wait)),
        }
    }

    /// Whether a call that the store admits needs the permit of this breaker too.
    pub(super) const fn stands(&self) -> bool {
        self.stands
    }

    /// Decides in the store's stead.
    pub(super) fn can_request(&mut self, host: Millis) -> Admission {
        if self.is_forced {
            let decision = Decision::Refused { state: State::Open, retry_after: None };
            return Admission { decision, transition: None };
        }
        self.breaker.can_request(host)
    }

    /// Settles a call that it admitted itself: the store hears nothing of it.
    pub(super) fn settle(&mut self, host: Millis, permit: Permit, outcome: Outcome) -> Settled {
        self.count(host, Some(permit), outcome, false)
    }

    /// Is told of a call that the store admitted in this period of ours, or of one without a permit. `taken`: the store has
    /// the outcome, too. The transition is one that callers notice; while the store decides, what happens here is nobody's
    /// business.
    pub(super) fn feed(&mut self, host: Millis, period: Option<u64>, outcome: Outcome, taken: bool) -> Settled {
        if period == Some(NO_PERIOD) && outcome == Outcome::Failure && !taken && !self.stands && !self.is_closed() {
            // It had tripped with failures that the store took, and the store went on admitting. This one marks it.
            return self.trip(host, (State::Closed, Reason::Threshold, 1));
        }
        let decides = self.stands || !taken && self.stands_in;
        // The plain rules of a half-open state free a slot: only where the slots that count are ours.
        if !(self.is_closed() || period.is_none() && decides) {
            return UNHEARD;
        }
        let mut settled = self.count(host, period.map(|epoch| Permit::Closed { epoch }), outcome, taken);
        settled.transition = settled.transition.filter(|_| decides || self.stands);
        settled
    }

    /// The store admits while CLOSED. What this breaker saw that the fleet does not go by, an opening's length ago, is over:
    /// it counts again.
    pub(super) fn agree(&mut self, host: Millis) {
        if self.stands || self.is_closed() || self.breaker.retry_after(host) != Some(0) {
            return;
        }
        self.breaker.reset(host);
        self.untaken_at = None;
    }

    /// The probe of the store failed, and the store does not know: this process at least does not try again at once.
    pub(super) fn probe_failed(&mut self, host: Millis) -> Settled {
        self.trip(host, (State::HalfOpen, Reason::ProbeFailed, 0))
    }

    /// Trips, and stands by it.
    fn trip(&mut self, host: Millis, (from, reason, failures): (State, Reason, u64)) -> Settled {
        if !self.stands_in {
            return UNHEARD;
        }
        // The error is that of `for_ms`, and none is given.
        let _ = self.breaker.trip(host, None);
        self.stands = true;
        let Snapshot { remaining_open_ms, epoch, .. } = self.breaker.snapshot(host);
        let (to, open_ms) = (State::Open, Some(remaining_open_ms));
        let transition = Some(Transition { from, to, at: host, reason, failures, open_ms, epoch });
        Settled { status: Settlement::Applied, transition }
    }

    fn is_closed(&self) -> bool {
        self.breaker.hints().admit_free.is_some()
    }

    /// What the store reports: a later period ends what was counted in this one.
    pub(super) fn follow(&mut self, host: Millis, view: View) {
        self.is_forced = view.seen == Seen::ForcedOpen;
        let is_first = self.followed.is_none();
        // The store has forgotten the period that this breaker only mirrors (FLUSHALL, a failover): it has to count again.
        let is_forgotten = view.seen == Seen::Closed && !self.stands && !self.is_closed();
        if !is_first && (self.followed == Some(view.epoch) || self.followed > Some(view.epoch) && !is_forgotten) {
            return;
        }
        self.followed = Some(view.epoch);
        match view.seen {
            Seen::Closed if is_first => return,
            Seen::Closed => drop(self.breaker.reset(host)),
            // The operator wants no breaker: neither the fleet's nor one of this process alone.
            Seen::Disabled => drop(self.breaker.disable(host)),
            // Whatever the fleet does, what this process saw for itself holds on.
            Seen::Open { .. } | Seen::HalfOpen | Seen::ForcedOpen if self.stands => return,
            Seen::ForcedOpen => drop(self.breaker.force_open(host)),
            // So does a probe of its own.
            Seen::HalfOpen if self.breaker.state() == State::HalfOpen => return,
            // A probe each, should the store go away now.
            Seen::Open { wait: 0 } | Seen::HalfOpen => {
                drop(self.breaker.trip(Millis::derived(host.get().saturating_sub(1)), Some(1)))
            }
            Seen::Open { wait } => drop(self.breaker.trip(host, Some(wait))),
        }
        self.stands = false;
        self.untaken_at = None;
    }

    pub(super) fn snapshot(&self, host: Millis) -> Snapshot {
        self.breaker.snapshot(host)
    }

    fn count(&mut self, host: Millis, permit: Option<Permit>, outcome: Outcome, taken: bool) -> Settled {
        let settled = self.breaker.settle(host, permit, outcome);
        if settled.status == UNHEARD.status {
            return settled;
        }
        if outcome == Outcome::Failure && !taken {
            self.untaken_at = Some(host.get());
        }
        match settled.transition {
            Some(Transition { to: State::Open, .. }) => {
                self.stands = self.always_stands || self.stands_in && self.saw_what_the_store_did_not(host);
                self.untaken_at = None;
            }
            Some(_) => {
                self.stands = false;
                self.untaken_at = None;
            }
            // The row is over, and with it what was in it.
            None if outcome == Outcome::Success && self.breaker.config().trip_on() == TripOn::Consecutive => {
                self.untaken_at = None;
            }
            None => {}
        }
        settled
    }

    /// Whether a failure that the store did not take is among those that count.
    fn saw_what_the_store_did_not(&self, host: Millis) -> bool {
        let config = self.breaker.config();
        self.untaken_at
            .is_some_and(|at| config.trip_on() == TripOn::Consecutive || !is_over(at, config.window_ms(), host.get()))
    }
}

/// The epoch of no period.
const NO_PERIOD: u64 = u64::MAX;

const UNHEARD: Settled = Settled { status: Settlement::Stale, transition: None };
