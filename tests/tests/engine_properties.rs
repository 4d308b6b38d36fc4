//! What holds for the engine of a shared circuit on any input: whatever the store replies, whenever it replies, and
//! whatever the clocks say.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseResult;
use switchgear_core::shared::{
    Announcement, Answer, Begun, Command, Control, Keys, Node, Others, PermitKind, Script, SharedCircuit,
    SharedOptions, SharedPermit, Step, Times,
};
use switchgear_core::{Millis, Naming, Outcome, Value};

const LATEST: u64 = 1 << 52;
const NONCE: u64 = 7;

#[derive(Clone, Debug)]
enum Op {
    Admit,
    AdmitUnasked,
    /// With one of the permits given so far, used or not, or without one.
    Settle(Outcome, Option<Index>),
    GetState,
    Control(Control),
    /// What becomes of one of the tickets handed out so far, answered or not.
    Ticket(Index, Fate),
    Event(String),
}

#[derive(Clone, Debug)]
enum Fate {
    Reading([Option<&'static str>; 5]),
    Reply(Vec<i64>),
    Error(&'static str),
    Deadline,
}

/// How the clocks move before a step, and whether the store's is known to the host.
#[derive(Clone, Copy, Debug)]
struct Tick {
    host: i64,
    store: Option<i64>,
}

fn options() -> impl Strategy<Value = Vec<(&'static str, Value<'static>)>> {
    let counting = prop::sample::select(vec![
        vec![("tripOn", Value::Text("rolling")), ("failureThreshold", 2.into())],
        vec![("tripOn", Value::Text("consecutive")), ("failureThreshold", 2.into())],
        vec![("tripOn", Value::Text("rate")), ("minimumCalls", 2.into())],
    ]);
    let failure = prop::sample::select(vec!["local", "fail-open", "fail-closed"]);
    let (caches, quorum) = (prop::sample::select(vec![0, 1, 50, 5_000]), 1..=2_i32);
    (counting, failure, caches.clone(), caches, quorum).prop_map(|(mut fields, failure, open, closed, quorum)| {
        fields.push(("onStoreFailure", Value::Text(failure)));
        fields.push(("openCacheMs", open.into()));
        fields.push(("closedCacheMs", closed.into()));
        fields.push(("quorum", quorum.into()));
        fields.push(("openDurationMs", 100.into()));
        fields
    })
}

fn ticks() -> impl Strategy<Value = Tick> {
    let steps = || {
        prop_oneof![
            8 => 0..120_i64,
            2 => prop::sample::select(vec![1_000, 30_000, 60_001, -60_001]),
            1 => any::<i64>(),
        ]
    };
    (steps(), prop::option::of(steps())).prop_map(|(host, store)| Tick { host, store })
}

fn ops() -> impl Strategy<Value = Op> {
    let outcomes = || prop::sample::select(vec![Outcome::Success, Outcome::Failure, Outcome::Release]);
    let controls = prop_oneof![
        Just(Control::Reset),
        prop::option::of(any::<u64>()).prop_map(|for_ms| Control::Trip { for_ms }),
        Just(Control::ForceOpen),
        Just(Control::Disable),
    ];
    prop_oneof![
        8 => Just(Op::Admit),
        1 => Just(Op::AdmitUnasked),
        6 => (outcomes(), any::<Index>()).prop_map(|(outcome, which)| Op::Settle(outcome, Some(which))),
        1 => outcomes().prop_map(|outcome| Op::Settle(outcome, None)),
        1 => Just(Op::GetState),
        1 => controls.prop_map(Op::Control),
        16 => (any::<Index>(), fates()).prop_map(|(which, fate)| Op::Ticket(which, fate)),
        1 => events().prop_map(Op::Event),
    ]
}

fn fates() -> impl Strategy<Value = Fate> {
    let errors = prop::sample::select(vec![
        "NOSCRIPT No matching script",
        "TRYAGAIN Multiple keys request",
        "Connection is closed.",
        "WRONGTYPE Operation against a key",
        "NOPERM this user has no permissions",
        "",
    ]);
    prop_oneof![
        4 => readings().prop_map(Fate::Reading),
        4 => replies().prop_map(Fate::Reply),
        2 => errors.prop_map(Fate::Error),
        2 => Just(Fate::Deadline),
    ]
}

fn readings() -> impl Strategy<Value = [Option<&'static str>; 5]> {
    let words = |words: &[&'static str]| {
        let words: Vec<Option<&str>> = words.iter().map(|&word| (!word.is_empty()).then_some(word)).collect();
        prop::sample::select(words)
    };
    let numbers = ["", "0", "7", "100", "4503599627370496", "9007199254740991", "-1", "1e3"];
    (
        words(&["", "", "open", "half-open", "?"]),
        words(&["", "", "", "forced-open", "disabled", "?"]),
        words(&numbers),
        words(&numbers),
        words(&numbers),
    )
        .prop_map(|(state, mode, epoch, opened_at, open_ms)| [state, mode, epoch, opened_at, open_ms])
}

/// Replies of the right length and of any other, mostly of small numbers.
fn replies() -> impl Strategy<Value = Vec<i64>> {
    let numbers = || prop_oneof![8 => -1..5_i64, 1 => any::<i64>()];
    prop_oneof![
        4 => prop::collection::vec(numbers(), 10),
        2 => prop::collection::vec(numbers(), 11),
        2 => prop::collection::vec(numbers(), 2),
        1 => prop::collection::vec(numbers(), 0..14),
    ]
}

fn events() -> impl Strategy<Value = String> {
    let numbers = || prop_oneof![4 => -1..5_i64, 1 => any::<i64>()];
    let heads = prop::collection::vec(numbers(), 7).prop_map(|words| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        format!("1 {} 0000000000000009 any\nhost", words.join(" "))
    });
    prop_oneof![8 => heads, 1 => any::<String>()]
}

/// An engine, and what its host has to remember of it.
struct Run {
    circuit: SharedCircuit,
    node: Node,
    host: u64,
    store: u64,
    permits: Vec<SharedPermit>,
    /// Every ticket that was handed out.
    tickets: Vec<u64>,
    /// What was sent last under a ticket, until it is replied to.
    under_way: BTreeMap<u64, Command>,
    awaited: BTreeSet<u64>,
    answered: BTreeSet<u64>,
}

impl Run {
    fn new(fields: &[(&str, Value<'_>)]) -> Self {
        let (config, options) = SharedOptions::build(Naming::Camel, &[fields]).unwrap();
        let circuit = SharedCircuit::new("any", Keys::DEFAULT_PREFIX, NONCE, "host", config, options).unwrap();
        Self {
            circuit,
            node: Node::new(),
            host: 1_000,
            store: 1_000_000,
            permits: Vec::new(),
            tickets: Vec::new(),
            under_way: BTreeMap::new(),
            awaited: BTreeSet::new(),
            answered: BTreeSet::new(),
        }
    }

    fn tick(&mut self, tick: Tick) -> Times {
        let moved = |clock: u64, by: i64| clock.saturating_add_signed(by).min(LATEST);
        self.host = moved(self.host, tick.host);
        let store = tick.store.map(|by| {
            self.store = moved(self.store, by);
            millis(self.store)
        });
        Times { host: millis(self.host), store }
    }

    fn step(&mut self, tick: Tick, op: Op) -> TestCaseResult {
        let at = self.tick(tick);
        match op {
            Op::Admit => {
                let begun = self.circuit.admit(&mut self.node, at);
                self.begun(&begun)?;
            }
            Op::AdmitUnasked => {
                let step = self.circuit.admit_unasked(at);
                prop_assert!(step.answer.is_some());
                self.keep(&step);
            }
            Op::Settle(outcome, which) => {
                let permit = which.filter(|_| !self.permits.is_empty()).map(|which| *which.get(&self.permits));
                let begun = self.circuit.settle(&mut self.node, at, permit, outcome);
                self.begun(&begun)?;
            }
            Op::GetState => {
                let begun = self.circuit.get_state(&mut self.node, at);
                self.begun(&begun)?;
            }
            Op::Control(control) => {
                let begun = self.circuit.control(&mut self.node, at, control);
                let is_valid = !matches!(control, Control::Trip { for_ms: Some(0 | 3_155_760_000_001..) });
                prop_assert_eq!(begun.is_ok(), is_valid);
                begun.iter().try_for_each(|begun| self.begun(begun))?;
            }
            Op::Ticket(which, fate) => {
                let ticket = if self.tickets.is_empty() { 0 } else { *which.get(&self.tickets) };
                let step = self.befalls(at, ticket, fate);
                self.told(ticket, &step)?;
            }
            Op::Event(message) => {
                if let Some(heard) = Announcement::parse(&message) {
                    self.circuit.on_event(&self.node, at, &heard);
                }
            }
        }
        self.send()?;
        self.check()
    }

    fn befalls(&mut self, at: Times, ticket: u64, fate: Fate) -> Step {
        let sent = self.under_way.get(&ticket).copied();
        match fate {
            Fate::Reading(fields) => {
                if sent == Some(Command::Run(Script::Admit)) {
                    self.under_way.remove(&ticket);
                }
                self.circuit.on_reading(&mut self.node, at, ticket, fields)
            }
            Fate::Reply(reply) => {
                self.under_way.remove(&ticket);
                self.circuit.on_reply(&mut self.node, at, ticket, &reply)
            }
            Fate::Error(error) => {
                self.under_way.remove(&ticket);
                self.circuit.on_error(&mut self.node, at, ticket, error)
            }
            Fate::Deadline => self.circuit.on_deadline(&mut self.node, at, ticket),
        }
    }

    fn begun(&mut self, begun: &Begun) -> TestCaseResult {
        match begun {
            Begun::Answered(step) => {
                prop_assert!(step.answer.is_some());
                self.keep(step);
            }
            Begun::Wait(ticket) => prop_assert!(self.awaited.insert(*ticket), "a ticket that others have"),
            Begun::Join(ticket) => {
                prop_assert!(self.awaited.contains(ticket) && !self.answered.contains(ticket), "nobody asks for them");
            }
        }
        Ok(())
    }

    fn told(&mut self, ticket: u64, step: &Step) -> TestCaseResult {
        if step.answer.is_some() {
            prop_assert!(self.awaited.contains(&ticket), "nobody asked");
            prop_assert!(self.answered.insert(ticket), "a second answer");
        }
        self.keep(step);
        Ok(())
    }

    fn keep(&mut self, step: &Step) {
        if let Some(Answer::Granted(permit)) = step.answer {
            self.permits.push(permit);
        }
    }

    fn send(&mut self) -> TestCaseResult {
        while let Some(ask) = self.circuit.next_ask() {
            prop_assert!(self.under_way.insert(ask.ticket, ask.command).is_none(), "two commands under one ticket");
            self.tickets.push(ask.ticket);
            let has_args = matches!(ask.command, Command::Run(script) if script != Script::Admit);
            prop_assert_eq!(ask.args.is_empty(), !has_args);
        }
        Ok(())
    }

    fn check(&self) -> TestCaseResult {
        prop_assert_eq!(self.circuit.in_flight(), self.under_way.len(), "what was sent and has not been replied to");
        for ticket in self.awaited.difference(&self.answered) {
            prop_assert!(self.under_way.contains_key(ticket), "nothing will ever answer {ticket}");
        }
        if let Some((permit, from, until)) = self.circuit.free_until() {
            prop_assert!(from < until && permit.kind == PermitKind::Closed);
        }
        Ok(())
    }

    /// Whatever is still waited for is answered at the deadline, and by nothing afterwards.
    fn end(&mut self) -> TestCaseResult {
        let at = self.tick(Tick { host: 100, store: None });
        for ticket in self.awaited.clone() {
            let was_answered = self.answered.contains(&ticket);
            let step = self.circuit.on_deadline(&mut self.node, at, ticket);
            prop_assert_eq!(step.answer.is_none(), was_answered);
            prop_assert!(!was_answered || step.others == Others::Share);
            self.told(ticket, &step)?;
            self.send()?;
        }
        for ticket in self.tickets.clone() {
            let step = self.befalls(at, ticket, Fate::Error("Connection is closed."));
            prop_assert_eq!(step.answer, None);
            // Its slot may be given back.
            self.send()?;
        }
        self.check()
    }
}

fn millis(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_takes_any_reply(
        fields in options(),
        steps in prop::collection::vec((ticks(), ops()), 1..80),
    ) {
        let mut run = Run::new(&fields);
        for (tick, op) in steps {
            run.step(tick, op)?;
        }
        run.end()?;
    }
}
