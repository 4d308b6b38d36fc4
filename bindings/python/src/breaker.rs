//! The state machine of one local circuit, safe under threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::prelude::*;
use switchgear_core::config::HostOption;
use switchgear_core::{
    Admission, CircuitBreaker, ConfigError, Decision, Hints, Millis, Naming, Outcome, Permit, Settlement, State,
    Transition,
};

use crate::config::Config;
use crate::convert::{Given, Moment, Raise, SnapshotSeen, locked, outcome_of, snapshot_seen};

/// How many listen to what every single call emits: to one breaker, and to the group it is in.
#[pyclass(frozen, module = "switchgear._native")]
#[derive(Clone, Default)]
pub struct Loudness {
    own: Arc<AtomicIsize>,
    outer: Option<Arc<AtomicIsize>>,
}

#[pymethods]
impl Loudness {
    #[new]
    #[pyo3(signature = (outer = None))]
    fn new(outer: Option<&Self>) -> Self {
        Self { own: Arc::default(), outer: outer.map(|outer| outer.own.clone()) }
    }

    fn add(&self, listeners: isize) {
        self.own.fetch_add(listeners, Ordering::SeqCst);
    }

    #[getter]
    fn count(&self) -> isize {
        let outer = self.outer.as_ref().map_or(0, |outer| outer.load(Ordering::SeqCst));
        self.own.load(Ordering::SeqCst) + outer
    }
}

/// The right to one call.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Grant {
    permit: Permit,
}

#[pymethods]
impl Grant {
    #[getter]
    const fn is_probe(&self) -> bool {
        matches!(self.permit, Permit::Probe { .. })
    }

    #[getter]
    const fn epoch(&self) -> u64 {
        match self.permit {
            Permit::Closed { epoch } | Permit::Probe { epoch, .. } => epoch,
            Permit::Bypass => 0,
        }
    }
}

/// The answer to a call that may not go ahead.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Denial {
    #[pyo3(get)]
    state: &'static str,
    #[pyo3(get)]
    retry_after_ms: Option<u64>,
}

impl Denial {
    pub(crate) const fn new(state: State, retry_after_ms: Option<u64>) -> Self {
        Self { state: state.as_str(), retry_after_ms }
    }
}

/// A change of the state as callers see it.
#[pyclass(frozen, module = "switchgear._native", name = "Transition")]
pub struct TransitionSeen {
    transition: Transition,
}

#[pymethods]
impl TransitionSeen {
    #[getter(from_state)]
    const fn before(&self) -> &'static str {
        self.transition.from.as_str()
    }

    #[getter(to_state)]
    const fn after(&self) -> &'static str {
        self.transition.to.as_str()
    }

    #[getter]
    const fn at(&self) -> u64 {
        self.transition.at.get()
    }

    #[getter]
    const fn reason(&self) -> &'static str {
        self.transition.reason.as_str()
    }

    #[getter]
    const fn failures(&self) -> u64 {
        self.transition.failures
    }

    #[getter]
    const fn open_ms(&self) -> Option<u64> {
        self.transition.open_ms
    }
}

impl From<Transition> for TransitionSeen {
    fn from(transition: Transition) -> Self {
        Self { transition }
    }
}

/// The answer to a request.
#[derive(IntoPyObject)]
pub enum Admitted {
    /// It may go ahead.
    Granted(Grant),
    /// It may not.
    Denied(Denial),
}

/// One circuit.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Machine {
    inner: Mutex<Inner>,
    /// The epoch of the closed permit that every call gets unasked and whose success changes nothing; [`NOT_HOT`] if none.
    /// Written under the lock, so that after an operation nobody reads what was true before it.
    hot: AtomicU64,
    has_transitions: AtomicBool,
    loudness: Loudness,
    is_plain: bool,
    success_ignored: bool,
}

struct Inner {
    breaker: CircuitBreaker,
    /// In the order in which they happened, whichever thread comes to tell them.
    transitions: VecDeque<Transition>,
}

const NOT_HOT: u64 = u64::MAX;

#[pymethods]
impl Machine {
    #[new]
    fn new(config: &Config, loudness: &Loudness, plain: bool) -> Self {
        let breaker = CircuitBreaker::new(config.inner.clone());
        Self {
            hot: AtomicU64::new(hot_epoch(breaker.hints())),
            has_transitions: AtomicBool::new(false),
            loudness: loudness.clone(),
            is_plain: plain,
            success_ignored: config.inner.trip_on().ignores_successes(),
            inner: Mutex::new(Inner { breaker, transitions: VecDeque::new() }),
        }
    }

    #[getter]
    pub(crate) fn hot(&self) -> Option<u64> {
        if !self.is_plain || self.loudness.count() > 0 {
            return None;
        }
        Some(self.hot.load(Ordering::SeqCst)).filter(|&epoch| epoch != NOT_HOT)
    }

    #[getter]
    pub(crate) const fn success_ignored(&self) -> bool {
        self.success_ignored
    }

    fn admit(&self, now: Moment) -> Admitted {
        let mut inner = locked(&self.inner);
        let Admission { decision, transition } = inner.breaker.can_request(now.0);
        self.note(&mut inner, transition);
        drop(inner);
        match decision {
            Decision::Allowed(permit) => Admitted::Granted(Grant { permit }),
            Decision::Refused { state, retry_after } => Admitted::Denied(Denial::new(state, retry_after)),
        }
    }

    #[pyo3(signature = (now, grant, outcome))]
    fn settle(&self, now: Moment, grant: Option<&Grant>, outcome: u32) -> PyResult<bool> {
        Ok(self.settled(now.0, grant.map(|grant| grant.permit), outcome_of(outcome)?))
    }

    fn settle_closed(&self, now: Moment, epoch: u64, outcome: u32) -> PyResult<bool> {
        Ok(self.settled(now.0, Some(Permit::Closed { epoch }), outcome_of(outcome)?))
    }

    #[getter]
    fn has_transitions(&self) -> bool {
        self.has_transitions.load(Ordering::SeqCst)
    }

    fn take_transitions(&self) -> Vec<TransitionSeen> {
        let mut inner = locked(&self.inner);
        let taken = std::mem::take(&mut inner.transitions);
        self.has_transitions.store(false, Ordering::SeqCst);
        drop(inner);
        taken.into_iter().map(TransitionSeen::from).collect()
    }

    fn retry_after_ms(&self, now: Moment) -> Option<u64> {
        locked(&self.inner).breaker.retry_after(now.0)
    }

    fn state(&self) -> &'static str {
        locked(&self.inner).breaker.state().as_str()
    }

    fn snapshot(&self, now: Moment) -> SnapshotSeen {
        let snapshot = locked(&self.inner).breaker.snapshot(now.0);
        snapshot_seen(snapshot)
    }

    fn reset(&self, now: Moment) {
        self.controlled(|breaker| breaker.reset(now.0));
    }

    #[pyo3(signature = (now, for_ms = None))]
    fn trip(&self, py: Python<'_>, now: Moment, for_ms: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let for_ms = checked_for_ms(for_ms).map_err(|error| error.raise(py))?;
        let mut inner = locked(&self.inner);
        let tripped = inner.breaker.trip(now.0, for_ms);
        if let Ok(transition) = &tripped {
            self.note(&mut inner, *transition);
        }
        drop(inner);
        tripped.map(drop).map_err(|error| error.raise(py))
    }

    fn force_open(&self, now: Moment) {
        self.controlled(|breaker| breaker.force_open(now.0));
    }

    fn disable(&self, now: Moment) {
        self.controlled(|breaker| breaker.disable(now.0));
    }
}

impl Machine {
    fn settled(&self, now: Millis, permit: Option<Permit>, outcome: Outcome) -> bool {
        let mut inner = locked(&self.inner);
        let settled = inner.breaker.settle(now, permit, outcome);
        self.note(&mut inner, settled.transition);
        match settled.status {
            Settlement::Applied => true,
            Settlement::Stale => false,
        }
    }

    fn controlled(&self, operation: impl FnOnce(&mut CircuitBreaker) -> Option<Transition>) {
        let mut inner = locked(&self.inner);
        let transition = operation(&mut inner.breaker);
        self.note(&mut inner, transition);
    }

    /// What every operation ends with, still under the lock.
    fn note(&self, inner: &mut MutexGuard<'_, Inner>, transition: Option<Transition>) {
        self.hot.store(hot_epoch(inner.breaker.hints()), Ordering::SeqCst);
        if let Some(transition) = transition {
            inner.transitions.push_back(transition);
            self.has_transitions.store(true, Ordering::SeqCst);
        }
    }
}

/// The length of a manual opening, checked by the core's rules.
pub fn checked_for_ms(for_ms: Option<&Bound<'_, PyAny>>) -> Result<Option<u64>, ConfigError> {
    for_ms.map(|given| HostOption::ForMs.check(Naming::Snake, Given::of(given).value())).transpose()
}

const fn hot_epoch(hints: Hints) -> u64 {
    match hints.admit_free {
        Some(Permit::Closed { epoch }) if hints.success_free => epoch,
        Some(Permit::Closed { .. } | Permit::Probe { .. } | Permit::Bypass) | None => NOT_HOT,
    }
}
