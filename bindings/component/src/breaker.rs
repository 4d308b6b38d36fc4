//! The state machine of one local circuit.

use std::cell::RefCell;

use switchgear_core as core;

use crate::Component;
use crate::bindings::exports::switchgear::breaker::local::{
    Admission, Breaker, Decision, Error, Guest, GuestBreaker, Hints, Naming, Outcome, Permit, PermitKind, Setting,
    Settled, Snapshot, Span, State, Transition,
};
use crate::convert::{build, for_ms, moment, refusal, setting};
use crate::group::Order;

impl Guest for Component {
    type Breaker = Machine;
    type Recency = Order;
}

/// One circuit.
pub struct Machine {
    /// A component is not entered while it runs, so this is never borrowed twice.
    machine: RefCell<core::CircuitBreaker>,
    naming: core::Naming,
}

impl GuestBreaker for Machine {
    fn create(naming: Naming, layers: Vec<Vec<Setting>>) -> Result<Breaker, Error> {
        let naming = naming.into();
        let config = build(naming, &layers, core::Config::build)?;
        Ok(Breaker::new(Self { machine: RefCell::new(core::CircuitBreaker::new(config)), naming }))
    }

    fn can_request(&self, now: u64) -> Result<Admission, Error> {
        let core::Admission { decision, transition } = self.machine.borrow_mut().can_request(moment(now)?);
        let decision = match decision {
            core::Decision::Allowed(permit) => Decision::Allowed(permit.into()),
            core::Decision::Refused { state, retry_after } => Decision::Refused(refusal(state, retry_after)),
        };
        Ok(Admission { decision, transition: transition.map(Into::into) })
    }

    fn settle(&self, now: u64, permit: Option<Permit>, outcome: Outcome) -> Result<Settled, Error> {
        let now = moment(now)?;
        let core::Settled { status, transition } =
            self.machine.borrow_mut().settle(now, permit.map(Into::into), outcome.into());
        Ok(Settled { status: status.into(), transition: transition.map(Into::into) })
    }

    fn reset(&self, now: u64) -> Result<Option<Transition>, Error> {
        Ok(self.machine.borrow_mut().reset(moment(now)?).map(Into::into))
    }

    fn trip(&self, now: u64, for_how_long: Option<u64>) -> Result<Option<Transition>, Error> {
        let now = moment(now)?;
        let for_how_long = for_ms(self.naming, for_how_long)?;
        Ok(self.machine.borrow_mut().trip(now, for_how_long)?.map(Into::into))
    }

    fn force_open(&self, now: u64) -> Result<Option<Transition>, Error> {
        Ok(self.machine.borrow_mut().force_open(moment(now)?).map(Into::into))
    }

    fn disable(&self, now: u64) -> Result<Option<Transition>, Error> {
        Ok(self.machine.borrow_mut().disable(moment(now)?).map(Into::into))
    }

    fn state(&self) -> State {
        self.machine.borrow().state().into()
    }

    fn retry_after_ms(&self, now: u64) -> Result<Option<u64>, Error> {
        Ok(self.machine.borrow().retry_after(moment(now)?))
    }

    fn snapshot(&self, now: u64) -> Result<Snapshot, Error> {
        Ok(self.machine.borrow().snapshot(moment(now)?).into())
    }

    fn hints(&self) -> Hints {
        let core::Hints { admit_free, success_free, refuse } = self.machine.borrow().hints();
        Hints {
            admit_free: admit_free.map(Into::into),
            success_free,
            refuse: refuse.map(|(begin, end)| Span { begin: begin.get(), end: end.get() }),
        }
    }

    fn config(&self) -> Vec<Setting> {
        let machine = self.machine.borrow();
        machine.config().fields_in_force().into_iter().map(|field| setting(self.naming, field)).collect()
    }
}

impl From<core::Permit> for Permit {
    fn from(permit: core::Permit) -> Self {
        match permit {
            core::Permit::Closed { epoch } => Self { kind: PermitKind::Closed, epoch, id: 0 },
            core::Permit::Probe { epoch, id } => Self { kind: PermitKind::Probe, epoch, id },
            core::Permit::Bypass => Self { kind: PermitKind::Bypass, epoch: 0, id: 0 },
        }
    }
}

impl From<Permit> for core::Permit {
    fn from(permit: Permit) -> Self {
        let Permit { kind, epoch, id } = permit;
        match kind {
            PermitKind::Closed => Self::Closed { epoch },
            PermitKind::Probe => Self::Probe { epoch, id },
            PermitKind::Bypass => Self::Bypass,
        }
    }
}
