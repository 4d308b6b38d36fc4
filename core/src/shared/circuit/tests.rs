//! Conversations with a made-up store at made-up times.

mod caches;
mod clock;
mod conversation;
mod flights;
mod outage;
mod successes;

use super::*;
use crate::breaker::State;
use crate::config::Value;
use crate::shared::Health;

const NONCE: u64 = 0xab;
const HALF_OPEN: [Option<&str>; 5] = [Some("half-open"), None, Some("7"), Some("50"), Some("30000")];
const CLOSED_AT_42: [Option<&str>; 5] = [None, None, Some("42"), None, None];
/// Until 30 050.
const OPEN: [Option<&str>; 5] = [Some("open"), None, Some("7"), Some("50"), Some("30000")];
const FORCED_OPEN: [Option<&str>; 5] = [None, Some("forced-open"), Some("50"), None, None];

/// A circuit and the node that it lives on.
struct Desk {
    circuit: SharedCircuit,
    node: Node,
}

fn desk(fields: &[(&str, Value<'_>)]) -> Desk {
    let (config, options) = SharedOptions::build(Naming::Snake, &[fields]).unwrap();
    let circuit = SharedCircuit::new("billing", Keys::DEFAULT_PREFIX, NONCE, "host-1", config, options).unwrap();
    Desk { circuit, node: Node::new() }
}

fn ms(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

fn at(now: u64) -> Times {
    Times::one(ms(now))
}

fn id(counter: u64) -> CallId {
    CallId { nonce: NONCE, counter }
}

/// A reply of the long kind without a transition.
fn long(head: [i64; 5]) -> [i64; 10] {
    let [status, state, mode, epoch, wait] = head;
    [status, state, mode, epoch, wait, -1, -1, 0, -1, 0]
}

fn granted(step: &Step) -> SharedPermit {
    let Some(Answer::Granted(permit)) = step.answer else { panic!("granted, not {step:?}") };
    permit
}

fn refused(state: State, retry_after: Option<u64>) -> Option<Answer> {
    Some(Answer::Refused { state, retry_after })
}

impl Desk {
    /// Asks for a call that is not answered at once: its ticket.
    fn asks(&mut self, now: u64) -> u64 {
        match self.circuit.admit(&mut self.node, at(now)) {
            Begun::Wait(ticket) => ticket,
            other => panic!("asks, not {other:?}"),
        }
    }

    /// Asks for a call that is answered at once.
    fn knows(&mut self, now: u64) -> Step {
        match self.circuit.admit(&mut self.node, at(now)) {
            Begun::Answered(step) => step,
            other => panic!("knows, not {other:?}"),
        }
    }

    fn reads(&mut self, now: u64, ticket: u64, fields: [Option<&str>; 5]) -> Step {
        self.circuit.on_reading(&mut self.node, at(now), ticket, fields)
    }

    fn replies(&mut self, now: u64, ticket: u64, reply: &[i64]) -> Step {
        self.circuit.on_reply(&mut self.node, at(now), ticket, reply)
    }

    fn fails(&mut self, now: u64, ticket: u64, error: &str) -> Step {
        self.circuit.on_error(&mut self.node, at(now), ticket, error)
    }

    fn is_late(&mut self, now: u64, ticket: u64) -> Step {
        self.circuit.on_deadline(&mut self.node, at(now), ticket)
    }

    fn settles(&mut self, now: u64, permit: Option<SharedPermit>, outcome: Outcome) -> Begun {
        self.circuit.settle(&mut self.node, at(now), permit, outcome)
    }

    /// Settles a call that nobody is told of: whether it counts.
    fn notes(&mut self, now: u64, permit: SharedPermit, outcome: Outcome) -> (Settlement, Step) {
        let Begun::Answered(step) = self.settles(now, Some(permit), outcome) else { panic!("told") };
        let Some(Answer::Settled(status)) = step.answer else { panic!("{step:?}") };
        (status, step)
    }

    /// Settles a call that the store is told of.
    fn tells(&mut self, now: u64, permit: Option<SharedPermit>, outcome: Outcome) -> Ask {
        let Begun::Wait(ticket) = self.settles(now, permit, outcome) else { panic!("not told") };
        let ask = self.sends();
        assert_eq!(ask.ticket, ticket);
        ask
    }

    fn controls(&mut self, now: u64, control: Control) -> Ask {
        let Begun::Wait(ticket) = self.circuit.control(&mut self.node, at(now), control).unwrap() else {
            panic!("told")
        };
        let ask = self.sends();
        assert_eq!(ask.ticket, ticket);
        ask
    }

    /// The one command that is to be sent now.
    fn sends(&mut self) -> Ask {
        let ask = self.circuit.next_ask().expect("something to send");
        assert_eq!(self.circuit.next_ask(), None);
        ask
    }

    /// All that is to be sent now.
    fn sends_all(&mut self) -> Vec<Ask> {
        core::iter::from_fn(|| self.circuit.next_ask()).collect()
    }

    fn is_quiet(&mut self) -> bool {
        self.circuit.next_ask().is_none()
    }

    /// A call that is admitted while closed.
    fn admitted(&mut self, now: u64) -> SharedPermit {
        let ticket = self.asks(now);
        self.sends();
        granted(&self.reads(now, ticket, CLOSED_AT_42))
    }

    /// An admission that has got as far as `can_request`.
    fn asked_on(&mut self) -> Ask {
        let ticket = self.asks(100);
        self.sends();
        assert_eq!(self.reads(101, ticket, HALF_OPEN).answer, None);
        self.sends()
    }

    fn probe(&mut self) -> SharedPermit {
        let ask = self.asked_on();
        granted(&self.replies(102, ask.ticket, &long([2, 2, 0, 7, 0])))
    }
}
