//! The runners on the Rust core: asked each time, and answered from its hints where they allow it (DESIGN 3.7).

use switchgear_core::{CircuitBreaker, Config, Decision, Hints, Millis, Outcome, Permit, Settlement, Snapshot};

use crate::vectors::{Answer, Machine, Operation};

/// Asks the machine for everything.
#[derive(Debug)]
pub struct Asked {
    breaker: CircuitBreaker,
}

impl Asked {
    /// A fresh circuit.
    pub fn new(config: &Config) -> Self {
        Self { breaker: CircuitBreaker::new(config.clone()) }
    }
}

impl Machine for Asked {
    type Permit = Permit;

    fn step(&mut self, at: Millis, operation: Operation<'_, Permit>) -> Result<Answer<Permit>, String> {
        ask(&mut self.breaker, at, operation)
    }

    fn snapshot(&mut self, at: Millis) -> Result<Snapshot, String> {
        Ok(self.breaker.snapshot(at))
    }
}

/// Asks the machine only what the hints of its last operation leave open, as a host does that wants to stay off the
/// language boundary.
#[derive(Debug)]
pub struct Hinted {
    breaker: CircuitBreaker,
    hints: Hints,
    asked: usize,
}

impl Hinted {
    /// A fresh circuit.
    pub fn new(config: &Config) -> Self {
        let breaker = CircuitBreaker::new(config.clone());
        Self { hints: breaker.hints(), breaker, asked: 0 }
    }

    /// How many operations the machine has seen.
    pub fn asked(&self) -> usize {
        self.asked
    }

    fn known(&self, at: Millis, operation: &Operation<'_, Permit>) -> Option<Answer<Permit>> {
        match operation {
            Operation::CanRequest => self.admission(at),
            Operation::Settle(Outcome::Success, Some(permit)) => {
                let free = self.hints.success_free && self.hints.admit_free == Some(**permit);
                free.then_some(Answer::Settled(Settlement::Applied))
            }
            _ => None,
        }
    }

    fn admission(&self, at: Millis) -> Option<Answer<Permit>> {
        if let Some(permit) = self.hints.admit_free {
            return Some(Answer::Allowed(permit));
        }
        self.hints.refused_for(at).map(|wait| Answer::Refused(Some(wait)))
    }
}

impl Machine for Hinted {
    type Permit = Permit;

    fn step(&mut self, at: Millis, operation: Operation<'_, Permit>) -> Result<Answer<Permit>, String> {
        if let Some(answer) = self.known(at, &operation) {
            return Ok(answer);
        }
        let answer = ask(&mut self.breaker, at, operation);
        self.hints = self.breaker.hints();
        self.asked += 1;
        answer
    }

    fn snapshot(&mut self, at: Millis) -> Result<Snapshot, String> {
        Ok(self.breaker.snapshot(at))
    }
}

pub(crate) fn ask(
    breaker: &mut CircuitBreaker,
    at: Millis,
    operation: Operation<'_, Permit>,
) -> Result<Answer<Permit>, String> {
    Ok(match operation {
        Operation::CanRequest => match breaker.can_request(at).decision {
            Decision::Allowed(permit) => Answer::Allowed(permit),
            Decision::Refused { retry_after, .. } => Answer::Refused(retry_after),
        },
        Operation::Settle(outcome, permit) => Answer::Settled(breaker.settle(at, permit.copied(), outcome).status),
        Operation::Reset => {
            breaker.reset(at);
            Answer::Done
        }
        Operation::Trip(for_ms) => {
            breaker.trip(at, for_ms).map_err(|error| format!("forMs: {error}"))?;
            Answer::Done
        }
        Operation::ForceOpen => {
            breaker.force_open(at);
            Answer::Done
        }
        Operation::Disable => {
            breaker.disable(at);
            Answer::Done
        }
    })
}
