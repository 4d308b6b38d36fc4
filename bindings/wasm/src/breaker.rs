//! The state machine of one circuit. What is asked per call answers one number: a low value and flags, see `native.ts`.

use switchgear_core::{
    Admission, CircuitBreaker, Decision, Hints, Permit, Settled, Settlement, Snapshot, State, Transition,
};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::config::Config;
use crate::convert::{
    NONE, double, for_ms, moment, or_none, outcome, snapshot, state, thrown, transition, value, whole,
};
use crate::held::{hold, let_go, with};

const REFUSED: u32 = 0;
const ALLOWED_CLOSED: u32 = 1;
const ALLOWED_PROBE: u32 = 2;
const ALLOWED_BYPASS: u32 = 3;
const STALE: u32 = 0;
const APPLIED: u32 = 1;
const TRANSITION: u32 = 4;
const HINTS: u32 = 8;
const BY_HALF_OPEN: u32 = 16;

/// The places of [`Breaker::number`].
const PERMIT_EPOCH: u8 = 0;
const PERMIT_ID: u8 = 1;
const REFUSAL_WAIT: u8 = 2;
const STATE: u8 = 3;
const ADMIT_EPOCH: u8 = 4;
const SUCCESS_FREE: u8 = 5;
const SUCCESS_IGNORED: u8 = 6;
const REFUSE_FROM: u8 = 7;
const REFUSE_UNTIL: u8 = 8;
const TRANSITION_FROM: u8 = 9;
const SNAPSHOT: u8 = 15;

const RESET: u8 = 0;
const TRIP: u8 = 1;
const FORCE_OPEN: u8 = 2;

/// One circuit.
pub struct Breaker {
    machine: CircuitBreaker,
    /// What the facade knows of the hints: it is told when they change.
    hints: Hints,
    /// The last answers whose details the facade may still ask for.
    decision: Option<Decision>,
    transition: Option<Transition>,
    snapshot: Option<Snapshot>,
}

/// A closed circuit.
#[wasm_bindgen(js_name = newBreaker)]
pub fn new_breaker(config: *mut Config) -> *mut Breaker {
    let machine = with(config, |config| CircuitBreaker::new(config.inner.clone()));
    let hints = machine.hints();
    hold(Breaker { machine, hints, decision: None, transition: None, snapshot: None })
}

#[wasm_bindgen(js_name = freeBreaker)]
pub fn free_breaker(breaker: *mut Breaker) {
    let_go(breaker);
}

/// Asks for one call: refused or allowed, and flags. Throws `time_invalid`.
#[wasm_bindgen(js_name = canRequest)]
pub fn can_request(breaker: *mut Breaker, now: f64) -> Result<u32, JsValue> {
    let now = moment(now)?;
    with(breaker, |breaker| {
        let Admission { decision, transition } = breaker.machine.can_request(now);
        breaker.decision = Some(decision);
        let answer = match decision {
            Decision::Allowed(Permit::Closed { .. }) => ALLOWED_CLOSED,
            Decision::Allowed(Permit::Probe { .. }) => ALLOWED_PROBE,
            Decision::Allowed(Permit::Bypass) => ALLOWED_BYPASS,
            Decision::Refused { state: State::HalfOpen, .. } => REFUSED | BY_HALF_OPEN,
            Decision::Refused { state: State::Open | State::Closed, .. } => REFUSED,
        };
        Ok(answer | breaker.flags(transition))
    })
}

/// Settles a call: applied or stale, and flags. Throws `time_invalid`.
#[wasm_bindgen]
pub fn settle(breaker: *mut Breaker, now: f64, kind: u32, epoch: f64, id: f64, ending: u32) -> Result<u32, JsValue> {
    let (now, ending) = (moment(now)?, outcome(ending)?);
    with(breaker, |breaker| {
        let Settled { status, transition } = breaker.machine.settle(now, permit(kind, epoch, id), ending);
        let answer = match status {
            Settlement::Applied => APPLIED,
            Settlement::Stale => STALE,
        };
        Ok(answer | breaker.flags(transition))
    })
}

/// What may be asked of the last answers, number by number: see [`Breaker::number`].
#[wasm_bindgen]
pub fn number(breaker: *mut Breaker, place: u8) -> f64 {
    with(breaker, |breaker| breaker.number(place))
}

/// How long a request would have to wait, in milliseconds; -1 if that is unknown. Throws `time_invalid`.
#[wasm_bindgen(js_name = retryAfter)]
pub fn retry_after(breaker: *mut Breaker, now: f64) -> Result<f64, JsValue> {
    let now = moment(now)?;
    Ok(or_none(with(breaker, |breaker| breaker.machine.retry_after(now))))
}

/// Looks at everything the circuit knows. Throws `time_invalid`.
#[wasm_bindgen]
pub fn look(breaker: *mut Breaker, now: f64) -> Result<(), JsValue> {
    let now = moment(now)?;
    with(breaker, |breaker| breaker.snapshot = Some(breaker.machine.snapshot(now)));
    Ok(())
}

/// Manual control: reset, trip (for as long as given), force open, disable. Answers flags; throws `time_invalid` or
/// `config_invalid`.
#[wasm_bindgen]
pub fn control(
    breaker: *mut Breaker,
    operation: u8,
    now: f64,
    kind: u8,
    number: f64,
    text: &str,
) -> Result<u32, JsValue> {
    let now = moment(now)?;
    let for_ms = for_ms(value(kind, number, text))?;
    with(breaker, |breaker| {
        let transition = match operation {
            RESET => breaker.machine.reset(now),
            TRIP => breaker.machine.trip(now, for_ms).map_err(thrown)?,
            FORCE_OPEN => breaker.machine.force_open(now),
            _ => breaker.machine.disable(now),
        };
        Ok(breaker.flags(transition))
    })
}

impl Breaker {
    /// What may be asked of the last answers, number by number: of the permit given last its epoch and its slot (0 for none); the
    /// wait of the last refusal in milliseconds (-1 if it is unknown); the state; what the next answers are bound to be; the
    /// transition that the last operation made; what was seen at the last look.
    fn number(&self, place: u8) -> f64 {
        match place {
            PERMIT_EPOCH => match self.decision {
                Some(Decision::Allowed(Permit::Closed { epoch } | Permit::Probe { epoch, .. })) => double(epoch),
                Some(Decision::Allowed(Permit::Bypass) | Decision::Refused { .. }) | None => 0.0,
            },
            PERMIT_ID => match self.decision {
                Some(Decision::Allowed(Permit::Probe { id, .. })) => double(id),
                Some(Decision::Allowed(Permit::Closed { .. } | Permit::Bypass) | Decision::Refused { .. }) | None => {
                    0.0
                }
            },
            REFUSAL_WAIT => match self.decision {
                Some(Decision::Refused { retry_after, .. }) => or_none(retry_after),
                Some(Decision::Allowed(_)) | None => NONE,
            },
            STATE => state(self.machine.state()).into(),
            ADMIT_EPOCH => match self.hints.admit_free {
                Some(Permit::Closed { epoch }) => double(epoch),
                Some(Permit::Probe { .. } | Permit::Bypass) | None => NONE,
            },
            SUCCESS_FREE => u8::from(self.hints.success_free).into(),
            SUCCESS_IGNORED => u8::from(self.machine.config().trip_on().ignores_successes()).into(),
            REFUSE_FROM => self.hints.refuse.map_or(0.0, |(from, _)| double(from.get())),
            REFUSE_UNTIL => self.hints.refuse.map_or(0.0, |(_, until)| double(until.get())),
            TRANSITION_FROM..SNAPSHOT => {
                self.transition.as_ref().map_or(NONE, |made| transition(made, place - TRANSITION_FROM))
            }
            _ => self.snapshot.as_ref().map_or(NONE, |seen| snapshot(seen, place - SNAPSHOT)),
        }
    }

    /// Keeps the transition for whoever asks, and says what is new.
    fn flags(&mut self, transition: Option<Transition>) -> u32 {
        self.transition = transition;
        let hints = self.machine.hints();
        let changed = hints != self.hints;
        self.hints = hints;
        u32::from(transition.is_some()) * TRANSITION + u32::from(changed) * HINTS
    }
}

/// A permit from the numbers it went out as; the doubles are integers that this module gave out.
const fn permit(kind: u32, epoch: f64, id: f64) -> Option<Permit> {
    match kind {
        ALLOWED_CLOSED => Some(Permit::Closed { epoch: whole(epoch) }),
        ALLOWED_PROBE => Some(Permit::Probe { epoch: whole(epoch), id: whole(id) }),
        ALLOWED_BYPASS => Some(Permit::Bypass),
        _ => None,
    }
}
