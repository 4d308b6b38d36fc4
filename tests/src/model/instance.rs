//! One circuit of a process of the fleet: an engine, and what its host remembers.

use std::collections::BTreeMap;

use switchgear_core::shared::{Keys, SharedCircuit, SharedOptions, SharedPermit, Times};
use switchgear_core::{Config, Millis, Outcome};

/// How long a host waits for the store.
pub const TIMEOUT_MS: u64 = 100;

/// Where a circuit of a process is: the numbers of the process, of the circuit, and of the server that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Those of one process die together.
    pub process: usize,
    /// Those of one circuit share it.
    pub circuit: usize,
    /// Those of one server are told to go there, and each process has one idea of it.
    pub server: usize,
}

/// One circuit of a process.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Where it is.
    pub seat: Seat,
    /// The engine.
    pub circuit: SharedCircuit,
    /// The server as this process knows it, by its place among all of them.
    pub node: usize,
    /// Tells it from those before it.
    pub nonce: u64,
    /// What is waited for, by ticket.
    pub waiting: BTreeMap<u64, Waiting>,
    /// When each ticket is over, on the host's clock, and the server that was asked.
    pub deadlines: BTreeMap<u64, (u64, usize)>,
    /// The calls at the dependency.
    pub running: Vec<Running>,
    /// The latest period that it can have heard of.
    pub told: u64,
    /// The latest period that the store has told it of, by its place among all that there were.
    pub heard: usize,
    /// The latest period that it was announced.
    pub announced: u64,
    /// The ticket under which it last told something that changes the circuit.
    pub last_word: u64,
    /// What it saw for itself, and must be protected from.
    pub shield: Option<Shield>,
    /// How many of its own failures count, by its permits of this closed period.
    pub failed: (u64, u64),
    /// How far its clock is from the model's, and its idea of the store's.
    pub clock: Clock,
}

/// Whoever waits for a ticket.
#[derive(Clone, Debug)]
pub enum Waiting {
    /// One caller, and so many who joined.
    Admission {
        /// How many joined.
        joined: u64,
        /// When the ticket was handed out, in the model's time.
        since: u64,
    },
    /// The outcome of a call.
    Settlement {
        /// Its permit; none of one that was told by hand.
        permit: Option<SharedPermit>,
        /// How it ended.
        outcome: Outcome,
    },
    /// A manual operation.
    Control,
}

/// A call at the dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// What it was admitted with.
    pub permit: SharedPermit,
    /// When it began, in the model's time.
    pub since: u64,
}

/// This process tripped with failures that the store did not take.
#[derive(Clone, Debug)]
pub struct Shield {
    /// Until when nothing at all goes through, in the model's time.
    pub until: u64,
    /// Only a closed period after this one ends it.
    pub epoch: u64,
}

/// What an instance takes for the time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The host's minus the model's.
    pub host: u64,
    /// The store's, as this process is told it, minus the model's; none: it asks the node.
    pub store: Option<i64>,
}

impl Instance {
    /// A process that has just started.
    pub fn new(
        (nonce, seat, node): (u64, Seat, usize),
        config: &Config,
        options: SharedOptions,
        clock: Clock,
    ) -> Result<Self, String> {
        let (name, circuit) = (format!("host-{nonce}"), format!("circuit-{}", seat.circuit));
        let circuit = SharedCircuit::new(&circuit, Keys::DEFAULT_PREFIX, nonce, &name, config.clone(), options);
        Ok(Self {
            seat,
            circuit: circuit.map_err(|error| error.to_string())?,
            nonce,
            node,
            waiting: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            running: Vec::new(),
            told: 0,
            heard: 0,
            announced: 0,
            last_word: 0,
            shield: None,
            failed: (0, 0),
            clock,
        })
    }

    /// What this process takes the time for.
    pub fn times(&self, now: u64) -> Times {
        let millis = |ms: u64| Millis::new(ms).unwrap_or_default();
        Times {
            host: millis(now + self.clock.host),
            store: self.clock.store.map(|skew| millis(now.saturating_add_signed(skew))),
        }
    }
}
