//! Random timelines of one to four instances on the core and on the Lua scripts in a real Redis: every answer, every
//! transition, every announcement and every field of every snapshot is the same (DESIGN section 8).
//!
//! The seed is printed. `SWITCHGEAR_SEED=<seed>` repeats a run, `SWITCHGEAR_TIMELINES=<n>` sets its length.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::env;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use proptest::test_runner::{Config as RunnerConfig, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use redis::{Connection, FromRedisValue, PubSub, from_redis_value};
use switchgear_core::{
    CircuitBreaker, Config, Decision, Instances, Millis, Naming, Outcome, Permit, Quorum, Reason, Settled, Settlement,
    Snapshot, State, Transition, TripOn, Value,
};
use switchgear_lua::SCRIPTS;
use switchgear_tests::lua::{
    Call, FailureNames, Fields, LuaPermit, PermitKind, Reading, Reply, Rest, Wire, call_id, read_snapshot,
};
use switchgear_tests::servers::{Server, run};

/// Timelines of a normal run.
const TIMELINES: u32 = 2500;
/// The longest timeline.
const STEPS: usize = 60;

/// What happens in one step, before it is known which permits there are.
#[derive(Clone, Copy, Debug)]
enum Op {
    CanRequest,
    /// With the permit that many back among those not yet used, or without one; telling of so many successes: of the last
    /// that succeeded one of them, or of so many before a failure.
    Settle(Outcome, Option<usize>, u64),
    Reset,
    Trip(Option<u64>),
    ForceOpen,
    Disable,
}

/// How the clock moves before a step.
#[derive(Clone, Copy, Debug)]
enum Tick {
    By(i64),
    /// By a duration of the configuration, give or take.
    ByDuration(Span, i64),
    /// The other way.
    BackByDuration(Span, i64),
}

#[derive(Clone, Copy, Debug)]
enum Span {
    Window,
    Bucket,
    Open,
    ProbeTimeout,
}

#[derive(Clone, Debug)]
struct Timeline {
    fields: Vec<(&'static str, Field)>,
    quorum: u64,
    fleet: usize,
    start: u64,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    tick: Tick,
    op: Op,
    /// Which instance does it, modulo those there are.
    instance: usize,
    /// Whether the command is delivered twice.
    twice: bool,
}

/// Names of instances, some of which could be taken for a slot of another's ring.
const INSTANCES: [&str; 4] = ["a", "a:1", "", "pod\n\u{1f9ef} 2"];
const CHANNEL: &str = "cb:events";

#[derive(Clone, Copy, Debug)]
enum Field {
    Number(f64),
    Word(&'static str),
}

/// One of these, as a field's value.
fn numbers(values: &'static [f64]) -> impl Strategy<Value = Field> {
    prop::sample::select(values).prop_map(Field::Number)
}

fn counting() -> impl Strategy<Value = Vec<(&'static str, Field)>> {
    let window = || numbers(&[1.0, 7.0, 10.0, 95.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0]);
    let threshold = || numbers(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    prop_oneof![
        (threshold(), window()).prop_map(|(k, w)| vec![("failureThreshold", k), ("windowMs", w)]),
        threshold().prop_map(|k| vec![("tripOn", Field::Word("consecutive")), ("failureThreshold", k)]),
        (
            window(),
            numbers(&[0.1, 0.25, 1.0 / 3.0, 0.5, 0.6, 0.75, 1.0]),
            numbers(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
        )
            .prop_map(|(w, rate, n)| vec![
                ("tripOn", Field::Word("rate")),
                ("windowMs", w),
                ("failureRate", rate),
                ("minimumCalls", n)
            ]),
    ]
}

fn opening() -> impl Strategy<Value = Vec<(&'static str, Field)>> {
    (
        prop::sample::select(&[1.0, 10.0, 100.0, 500.0, 5_000.0, 70_000.0][..]),
        prop::option::of((numbers(&[1.0, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0]), prop::option::of(1..60_u32))),
    )
        .prop_map(|(open, backoff)| {
            let mut fields = vec![("openDurationMs", Field::Number(open))];
            if let Some((factor, cap)) = backoff {
                fields.push(("openBackoff", factor));
                fields.extend(cap.map(|times| ("openDurationMaxMs", Field::Number(open * f64::from(times) + 1.0))));
            }
            fields
        })
}

fn probing() -> impl Strategy<Value = Vec<(&'static str, Field)>> {
    (
        numbers(&[1.0, 2.0, 3.0, 4.0]),
        numbers(&[1.0, 2.0, 3.0, 5.0]),
        prop::option::of(numbers(&[1.0, 10.0, 50.0, 300.0, 5_000.0, 100_000.0])),
    )
        .prop_map(|(calls, successes, timeout)| {
            let mut fields = vec![("halfOpenMaxCalls", calls), ("successThreshold", successes)];
            fields.extend(timeout.map(|timeout| ("probeTimeoutMs", timeout)));
            fields
        })
}

fn ticks() -> impl Strategy<Value = Tick> {
    let duration = || prop::sample::select(&[Span::Window, Span::Bucket, Span::Open, Span::ProbeTimeout][..]);
    prop_oneof![
        6 => Just(Tick::By(0)),
        4 => Just(Tick::By(1)),
        4 => (-3..20_i64).prop_map(Tick::By),
        6 => (duration(), -1..=1_i64).prop_map(|(of, more)| Tick::ByDuration(of, more)),
        2 => (duration(), -1..=1_i64).prop_map(|(of, more)| Tick::BackByDuration(of, more)),
        2 => (-2_000..2_000_i64).prop_map(Tick::By),
        // The line beyond which no time is believed, from both sides.
        2 => (-60_002..=-59_998_i64).prop_map(Tick::By),
        1 => (59_998..=60_002_i64).prop_map(Tick::By),
        1 => (-200_000..200_000_i64).prop_map(Tick::By),
        1 => Just(Tick::By(3_600_000)),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let outcome = || prop_oneof![4 => Just(Outcome::Failure), 3 => Just(Outcome::Success), 1 => Just(Outcome::Release)];
    let many = || prop_oneof![5 => Just(0), 1 => prop::sample::select(&[1, 2, 3, 7, 50_u64][..])];
    prop_oneof![
        40 => Just(Op::CanRequest),
        26 => (outcome(), 0..6_usize, many()).prop_map(|(outcome, back, many)| Op::Settle(outcome, Some(back), many)),
        13 => (outcome(), many()).prop_map(|(outcome, many)| Op::Settle(outcome, None, many)),
        2 => Just(Op::Reset),
        2 => prop::option::of(prop::sample::select(&[1, 50, 7_000, 3_155_760_000_000_u64][..])).prop_map(Op::Trip),
        1 => prop_oneof![Just(Op::ForceOpen), Just(Op::Disable)],
    ]
}

fn timelines() -> impl Strategy<Value = Timeline> {
    let starts = [0, 1, 1_000, 59_999, 1_700_000_000_000, 99_999_999_999_990, 100_000_000_000_000, (1 << 52) - 100_000];
    (counting(), opening(), probing(), (1..=4_u64, 1..=4_usize), prop::sample::select(starts.to_vec()), steps())
        .prop_map(|(counting, opening, probing, (quorum, fleet), start, steps)| Timeline {
            fields: [counting, opening, probing].concat(),
            quorum,
            fleet,
            start,
            steps,
        })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = |ticks, ops| {
        (ticks, ops, 0..4_usize, prop::bool::weighted(0.1)).prop_map(|(tick, op, instance, twice)| Step {
            tick,
            op,
            instance,
            twice,
        })
    };
    prop_oneof![
        2 => prop::collection::vec(step(ticks().boxed(), ops().boxed()), 1..STEPS),
        1 => prop::collection::vec(step(outage_ticks().boxed(), outage_ops().boxed()), 1..STEPS),
    ]
}

/// A clock that mostly stands, for a window to fill.
fn outage_ticks() -> impl Strategy<Value = Tick> {
    prop_oneof![12 => Just(Tick::By(0)), 4 => (0..3_i64).prop_map(Tick::By), 1 => ticks()]
}

/// What is failing mostly fails, and mostly whoever was admitted says so; so it is a quorum that a trip waits for.
fn outage_ops() -> impl Strategy<Value = Op> {
    prop_oneof![30 => Just(Op::Settle(Outcome::Failure, None, 0)), 1 => Just(Op::Reset), 6 => ops()]
}

impl Timeline {
    fn config(&self) -> Result<Config, String> {
        let values: Vec<(&str, Value)> = self
            .fields
            .iter()
            .map(|&(name, field)| match field {
                Field::Number(number) => (name, Value::Number(number)),
                Field::Word(word) => (name, Value::Text(word)),
            })
            .collect();
        Config::build(Naming::Camel, &[&values]).map_err(|error| error.to_string())
    }

    /// The quorum, or the largest that there is beside this configuration.
    fn quorum(&self, config: &Config) -> Result<Quorum, String> {
        let most = if config.trip_on() == TripOn::Rate { config.minimum_calls() } else { config.failure_threshold() };
        let number = Value::Number(self.quorum.min(most) as f64);
        Quorum::new(Naming::Camel, number, config).map_err(|error| error.to_string())
    }

    fn instance(&self, step: &Step) -> &'static str {
        INSTANCES[step.instance % self.fleet]
    }
}

impl Tick {
    fn from(self, now: u64, config: &Config) -> u64 {
        let ms = |duration| match duration {
            Span::Window => config.window_ms(),
            Span::Bucket => config.window_ms().div_ceil(10),
            Span::Open => config.open_duration_ms(),
            Span::ProbeTimeout => config.probe_timeout_ms(),
        };
        let by = match self {
            Tick::By(by) => by,
            Tick::ByDuration(duration, more) => ms(duration).cast_signed() + more,
            Tick::BackByDuration(duration, more) => more - ms(duration).cast_signed(),
        };
        now.saturating_add_signed(by).min(Millis::MAX.get())
    }
}

/// What the core said and the scripts must say: the calls of one step, and the check of their replies.
struct Expected {
    place: String,
    at: Millis,
    /// The call that does what the step says; none where the host has nothing to send.
    call: Option<Call>,
    answer: CoreAnswer,
    transition: Option<Transition>,
    snapshot: Snapshot,
}

#[derive(Clone, Copy, Debug)]
enum CoreAnswer {
    Admission(Decision),
    Settled(Settlement),
    /// A settlement that comes again, and counts no more.
    Repeated,
    /// Bypass permits are never sent.
    NotSent,
    Controlled,
}

/// A permit not yet used, on both sides.
type Kept = (Permit, LuaPermit);

/// The core on a timeline, and what the scripts are to be sent for it.
struct Fleet<'a> {
    timeline: &'a Timeline,
    wire: Wire,
    breaker: CircuitBreaker,
    failed: Instances,
    names: FailureNames,
    kept: Vec<Kept>,
    expected: Vec<Expected>,
}

/// A settlement, as it can come again.
#[derive(Clone, Copy, Debug)]
struct Told {
    at: Millis,
    outcome: Outcome,
    permit: Option<Permit>,
    instance: &'static str,
    successes: u64,
}

impl Fleet<'_> {
    fn step(&mut self, number: u64, step: &Step, at: Millis) -> Result<(), String> {
        let (now, id, instance) = (at.get(), call_id(number), self.timeline.instance(step));
        let wire = self.wire.of_instance(instance);
        let breaker = &mut self.breaker;
        let place = format!("step {number}: {step:?} at {now}");
        let (call, answer, transition, told) = match step.op {
            Op::CanRequest => {
                let admission = breaker.can_request(at);
                if let Decision::Allowed(permit) = admission.decision {
                    self.kept.push((permit, twin(permit, id.clone())));
                }
                let answer = CoreAnswer::Admission(admission.decision);
                (Some(wire.can_request(now, &id)), answer, admission.transition, None)
            }
            Op::Settle(outcome, back, successes) => {
                // A permit settles once: that is the host's part of the contract.
                let used =
                    back.and_then(|back| self.kept.len().checked_sub(back + 1)).map(|index| self.kept.remove(index));
                let permit = used.as_ref().map(|(permit, _)| *permit);
                let told = Told { at, outcome, permit, instance, successes };
                let many = (successes > 0).then_some(successes);
                let call = match used {
                    Some((Permit::Bypass, _)) => None,
                    Some((Permit::Closed { .. }, twin)) if outcome == Outcome::Failure => {
                        let id = self.names.failure_id(instance, twin.id);
                        Some(wire.settle_many(outcome, now, &LuaPermit { id, ..twin }, many))
                    }
                    Some((_, twin)) => Some(wire.settle_many(outcome, now, &twin, many)),
                    None if outcome == Outcome::Failure => {
                        let id = self.names.failure_id(instance, id);
                        Some(wire.settle_many_without(outcome, now, &id, many))
                    }
                    None => Some(wire.settle_many_without(outcome, now, &id, many)),
                };
                let settled = self.settle(told);
                let answer = if call.is_none() {
                    assert_eq!(settled.status, Settlement::Stale, "a bypass permit is always stale");
                    CoreAnswer::NotSent
                } else {
                    CoreAnswer::Settled(settled.status)
                };
                (call, answer, settled.transition, Some(told))
            }
            Op::Reset => (Some(wire.control(now, "reset", None)), CoreAnswer::Controlled, breaker.reset(at), None),
            Op::Trip(for_ms) => {
                let transition = breaker.trip(at, for_ms).map_err(|error| error.to_string())?;
                (Some(wire.control(now, "trip", for_ms)), CoreAnswer::Controlled, transition, None)
            }
            Op::ForceOpen => {
                (Some(wire.control(now, "force-open", None)), CoreAnswer::Controlled, breaker.force_open(at), None)
            }
            Op::Disable => {
                (Some(wire.control(now, "disable", None)), CoreAnswer::Controlled, breaker.disable(at), None)
            }
        };
        let snapshot = self.breaker.snapshot(at);
        let again = (step.twice && call.is_some()).then(|| call.clone());
        self.expected.push(Expected { place, at, call, answer, transition, snapshot });
        if let Some(call) = again {
            let (answer, transition) = self.again(step, at, answer, told)?;
            let place = format!("step {number}, again: {step:?} at {now}");
            let snapshot = self.breaker.snapshot(at);
            self.expected.push(Expected { place, at, call, answer, transition, snapshot });
        }
        Ok(())
    }

    /// What a settlement does: the successes that it also tells of count only while the circuit is closed.
    fn settle(&mut self, told: Told) -> Settled {
        let Told { at, outcome, permit, instance, successes } = told;
        let more = match outcome {
            _ if self.breaker.state() != State::Closed => 0,
            Outcome::Success => successes.saturating_sub(1),
            Outcome::Failure => successes,
            Outcome::Release => 0,
        };
        for _ in 0..more {
            self.breaker.record_success(at, permit);
        }
        if outcome == Outcome::Failure {
            self.breaker.record_failure_of(at, permit, instance, &mut self.failed)
        } else {
            self.breaker.settle(at, permit, outcome)
        }
    }

    /// What a command does that comes a second time: mostly nothing (the README of the scripts has the exceptions).
    fn again(
        &mut self,
        step: &Step,
        at: Millis,
        first: CoreAnswer,
        told: Option<Told>,
    ) -> Result<(CoreAnswer, Option<Transition>), String> {
        let is_rate = self.breaker.config().trip_on() == TripOn::Rate;
        Ok(match (step.op, told) {
            (Op::Reset, _) => (first, self.breaker.reset(at)),
            (Op::Trip(for_ms), _) => (first, self.breaker.trip(at, for_ms).map_err(|error| error.to_string())?),
            (Op::ForceOpen, _) => (first, self.breaker.force_open(at)),
            (Op::Disable, _) => (first, self.breaker.disable(at)),
            (Op::Settle(outcome, ..), Some(told)) => {
                let is_closed =
                    self.breaker.state() == State::Closed && matches!(told.permit, None | Some(Permit::Closed { .. }));
                let counts_twice = is_rate && is_closed && outcome != Outcome::Release;
                if counts_twice || (outcome == Outcome::Release && told.permit.is_none()) {
                    let settled = self.settle(told);
                    (CoreAnswer::Settled(settled.status), settled.transition)
                } else {
                    (CoreAnswer::Repeated, None)
                }
            }
            // Admitted again with the same permit, refused again with the same wait.
            _ => (first, None),
        })
    }
}

fn run_core(timeline: &Timeline, name: &str, config: &Config) -> Result<Vec<Expected>, String> {
    let quorum = timeline.quorum(config)?;
    let rest = Rest { channel: CHANNEL.to_owned(), origin: origin(name), ..Rest::default() };
    let mut fleet = Fleet {
        timeline,
        wire: Wire::with_quorum(name, config, quorum).saying(rest),
        breaker: CircuitBreaker::new(config.clone()),
        failed: Instances::new(quorum),
        names: FailureNames::new(quorum, config),
        kept: Vec::new(),
        expected: Vec::new(),
    };
    let mut now = timeline.start;
    for (number, step) in (1..).zip(&timeline.steps) {
        now = step.tick.from(now, config);
        fleet.step(number, step, Millis::new(now).map_err(|error| error.to_string())?)?;
    }
    Ok(fleet.expected)
}

fn origin(name: &str) -> String {
    format!("5317c49ea7000000 {name}\nsome instance")
}

/// What subscribers are told of a transition.
fn announcement(transition: &Transition, name: &str) -> String {
    let Transition { from, to, at, reason, failures, open_ms, epoch } = *transition;
    let open_ms = open_ms.map_or_else(|| "-1".to_owned(), |ms| ms.to_string());
    let [from, to, reason] = [from as u8, to as u8, reason as u8];
    format!("1 {from} {to} {reason} {epoch} {} {failures} {open_ms} {}", at.get(), origin(name))
}

/// The permit that the scripts must have granted where the core granted this one.
fn twin(permit: Permit, id: String) -> LuaPermit {
    let (kind, epoch) = match permit {
        Permit::Closed { epoch } => (PermitKind::Closed, epoch),
        Permit::Probe { epoch, .. } => (PermitKind::Probe, epoch),
        Permit::Bypass => (PermitKind::Bypass, 0),
    };
    LuaPermit { id, epoch, kind }
}

/// What the store said to one step.
struct Replies {
    /// What an admission reads ahead of the call.
    fields: Option<Fields>,
    answer: Option<Vec<i64>>,
    snapshot: Vec<i64>,
}

impl Replies {
    fn take(step: &Expected, replies: &mut impl Iterator<Item = redis::Value>) -> Result<Self, String> {
        let mut next = || replies.next().ok_or_else(|| "a reply is missing".to_owned());
        let fields = if step.reads() { Some(typed(next()?)?) } else { None };
        let answer = if step.call.is_some() { Some(typed(next()?)?) } else { None };
        Ok(Self { fields, answer, snapshot: typed(next()?)? })
    }
}

fn typed<T: FromRedisValue>(value: redis::Value) -> Result<T, String> {
    from_redis_value(value).map_err(|error| error.to_string())
}

impl Expected {
    fn reads(&self) -> bool {
        matches!(self.answer, CoreAnswer::Admission(_))
    }
}

/// Compares the replies to one step with what the core said.
fn compare(expected: &Expected, replies: &Replies) -> Result<(), String> {
    equal("snapshot", read_snapshot(&replies.snapshot)?, expected.snapshot)?;
    let Some(answer) = &replies.answer else { return Ok(()) };
    let reply = Reply::read(answer)?;
    match expected.answer {
        CoreAnswer::Admission(decision) => {
            compare_admission(decision, &reply)?;
            if let Some(fields) = &replies.fields {
                compare_reading(Reading::decide(expected.at, fields)?, decision)?;
            }
        }
        CoreAnswer::Settled(status) => {
            equal("status", reply.settlement(), status)?;
            equal("wait", reply.wait, Some(expected.snapshot.remaining_open_ms))?;
        }
        CoreAnswer::Controlled | CoreAnswer::Repeated => {
            equal("wait", reply.wait, Some(expected.snapshot.remaining_open_ms))?;
        }
        CoreAnswer::NotSent => {}
    }
    equal("state", reply.mode.seen(reply.state), expected.snapshot.state)?;
    equal("mode", reply.mode, expected.snapshot.mode)?;
    equal("epoch", reply.epoch, expected.snapshot.epoch)?;
    equal("mismatch", reply.mismatch, false)?;
    equal("from", reply.from, expected.transition.map(|t| t.from))?;
    equal("reason", reply.reason, expected.transition.map(|t| t.reason))?;
    equal("failures", reply.failures, expected.transition.map_or(0, |t| t.failures))?;
    if let Some(transition) = expected.transition {
        equal("epoch of the transition", reply.epoch, transition.epoch)?;
        equal("open_ms", reply.open_ms, transition.open_ms)?;
    }
    Ok(())
}

fn compare_admission(decision: Decision, reply: &Reply) -> Result<(), String> {
    match decision {
        Decision::Allowed(permit) => {
            let (kind, epoch) = match permit {
                Permit::Closed { epoch } => (PermitKind::Closed, epoch),
                Permit::Probe { epoch, .. } => (PermitKind::Probe, epoch),
                Permit::Bypass => (PermitKind::Bypass, reply.epoch),
            };
            equal("granted", reply.granted(), Some(kind))?;
            equal("epoch of the permit", reply.epoch, epoch)?;
            equal("wait", reply.wait, Some(0))
        }
        Decision::Refused { state, retry_after } => {
            equal("granted", reply.granted(), None)?;
            equal("refused by", reply.mode.seen(reply.state), state)?;
            equal("retryAfterMs", reply.wait, retry_after)
        }
    }
}

/// The plain read that comes first says the same, or leaves it to `can_request` where that may have to write.
fn compare_reading(reading: Reading, decision: Decision) -> Result<(), String> {
    let of_core = match decision {
        Decision::Allowed(Permit::Closed { epoch }) => Reading::Closed(epoch),
        Decision::Allowed(Permit::Bypass) => Reading::Bypass,
        Decision::Allowed(Permit::Probe { .. }) | Decision::Refused { state: State::HalfOpen, .. } => Reading::AskOn,
        Decision::Refused { retry_after, .. } => match reading {
            // Its start is not believed: can_request moves it.
            Reading::AskOn if retry_after.is_some() => reading,
            _ => Reading::Refused(retry_after),
        },
    };
    equal("reading", reading, of_core)
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, lua: T, core: T) -> Result<(), String> {
    if lua == core { Ok(()) } else { Err(format!("{what}: Lua {lua:?}, core {core:?}")) }
}

/// What the timelines of a run came across, so that a run which tests nothing is noticed.
#[derive(Debug, Default)]
struct Seen {
    counts: BTreeMap<String, u64>,
}

impl Seen {
    fn note(&mut self, expected: &Expected, replies: &Replies) {
        let mut count = |what: String| *self.counts.entry(what).or_default() += 1;
        if let Some(transition) = expected.transition {
            count(format!("{} to {}", transition.reason.as_str(), transition.to.as_str()));
        }
        if let Some(Ok(Reading::Refused(Some(_)))) =
            replies.fields.as_ref().map(|fields| Reading::decide(expected.at, fields))
        {
            count("refused by the reading alone".to_owned());
        }
        match expected.answer {
            CoreAnswer::Admission(Decision::Refused { state, retry_after }) => {
                let until = if retry_after.is_some() { "for a while" } else { "until reset" };
                count(format!("refused {} {until}", state.as_str()));
            }
            CoreAnswer::Settled(status) => count(format!("settled {}", status.as_str())),
            CoreAnswer::Admission(Decision::Allowed(permit)) => count(format!(
                "admitted by a {} permit",
                match permit {
                    Permit::Closed { .. } => "closed",
                    Permit::Probe { .. } => "probe",
                    Permit::Bypass => "bypass",
                }
            )),
            CoreAnswer::Repeated => count("came again and changed nothing".to_owned()),
            CoreAnswer::NotSent | CoreAnswer::Controlled => {}
        }
    }

    /// What makes a timeline one of a quorum.
    fn note_quorum(&mut self, expected: &Expected, config: &Config, quorum: Quorum) {
        if quorum == Quorum::ONE {
            return;
        }
        let Snapshot { state, failures_in_window, calls_in_window, consecutive_failures, .. } = expected.snapshot;
        let (word, threshold) = (config.trip_on().as_str(), config.failure_threshold());
        let is_reached = match config.trip_on() {
            TripOn::Rolling => failures_in_window >= threshold,
            TripOn::Consecutive => consecutive_failures >= threshold,
            TripOn::Rate => {
                calls_in_window >= config.minimum_calls()
                    && failures_in_window as f64 >= config.failure_rate() * calls_in_window as f64
            }
        };
        let mut count = |what: String| *self.counts.entry(what).or_default() += 1;
        if state == State::Closed && is_reached && matches!(expected.answer, CoreAnswer::Settled(Settlement::Applied)) {
            count(format!("{word}: at the threshold without a quorum"));
        }
        if expected.transition.is_some_and(|transition| transition.reason == Reason::Threshold) {
            count(format!("{word}: tripped by a quorum"));
        }
    }

    fn assert_everything_was_met(&self) {
        let reasons = [
            (Reason::Threshold, State::Open),
            (Reason::Cooldown, State::HalfOpen),
            (Reason::ProbeFailed, State::Open),
            (Reason::ProbesSucceeded, State::Closed),
            (Reason::Manual, State::Open),
            (Reason::Manual, State::Closed),
        ];
        let mut met: Vec<String> =
            reasons.iter().map(|(reason, to)| format!("{} to {}", reason.as_str(), to.as_str())).collect();
        met.extend(["closed", "probe", "bypass"].map(|kind| format!("admitted by a {kind} permit")));
        met.extend(["applied", "stale"].map(|status| format!("settled {status}")));
        met.extend(
            ["open for a while", "half-open for a while", "open until reset"].map(|how| format!("refused {how}")),
        );
        met.extend(["refused by the reading alone", "came again and changed nothing"].map(str::to_owned));
        for trip_on in [TripOn::Rolling, TripOn::Consecutive, TripOn::Rate].map(TripOn::as_str) {
            met.push(format!("{trip_on}: at the threshold without a quorum"));
            met.push(format!("{trip_on}: tripped by a quorum"));
        }
        for what in met {
            assert!(self.counts.get(&what).is_some_and(|&n| n > 5), "hardly ever met `{what}`: {:#?}", self.counts);
        }
    }
}

fn run_timeline(
    timeline: &Timeline,
    name: &str,
    connection: &mut Connection,
    events: &mut PubSub<'_>,
    seen: &mut Seen,
) -> Result<(), String> {
    let config = timeline.config()?;
    let quorum = timeline.quorum(&config)?;
    let wire = Wire::with_quorum(name, &config, quorum);
    let expected = run_core(timeline, name, &config)?;
    let mut pipeline = redis::pipe();
    for step in &expected {
        if step.reads() {
            pipeline.add_command(wire.reading());
        }
        for call in step.call.iter().chain([&wire.get_state(step.at.get())]) {
            pipeline.add_command(call.by_sha());
        }
    }
    // What the scripts announce arrives before this does.
    pipeline.cmd("PUBLISH").arg(CHANNEL).arg(name);
    let replies: Vec<redis::Value> = pipeline.query(connection).map_err(|error| error.to_string())?;
    let announced = heard(events, name)?;
    let mut replies = replies.into_iter();
    for step in &expected {
        let own = Replies::take(step, &mut replies)?;
        compare(step, &own).map_err(|difference| format!("{}: {difference}", step.place))?;
        seen.note(step, &own);
        seen.note_quorum(step, &config, quorum);
    }
    let transitions = expected.iter().filter_map(|step| step.transition.as_ref());
    equal("announcements", announced, transitions.map(|transition| announcement(transition, name)).collect())
}

/// Everything that was announced up to this word.
fn heard(events: &mut PubSub<'_>, end: &str) -> Result<Vec<String>, String> {
    let mut heard = Vec::new();
    loop {
        let message = events.get_message().map_err(|error| error.to_string())?;
        let message: String = message.get_payload().map_err(|error| error.to_string())?;
        if message == end {
            return Ok(heard);
        }
        heard.push(message);
    }
}

fn given<T: FromStr>(variable: &str) -> Result<Option<T>, String> {
    let Ok(text) = env::var(variable) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{variable} must be a whole number, got `{text}`"))
}

#[test]
fn core_and_lua_agree_on_random_timelines() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    let seed = given("SWITCHGEAR_SEED").unwrap().unwrap_or_else(|| u64::from(now.subsec_nanos()) ^ now.as_secs());
    let cases = given("SWITCHGEAR_TIMELINES").unwrap().unwrap_or(TIMELINES);
    println!("differential: SWITCHGEAR_SEED={seed}, {cases} timelines");

    let server = Server::start().unwrap();
    let mut connection = server.connect().unwrap();
    for script in &SCRIPTS {
        run(&mut connection, &["SCRIPT", "LOAD", script.text]).unwrap();
    }
    let mut listening = server.connect().unwrap();
    let mut events = listening.as_pubsub();
    // What is not announced at all is an error instead of a wait without end.
    events.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    events.subscribe(CHANNEL).unwrap();
    let (connection, events) = (RefCell::new(connection), RefCell::new(events));
    let (seen, circuits) = (RefCell::new(Seen::default()), Cell::new(0_u64));

    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let runner_config = RunnerConfig { cases, failure_persistence: None, ..RunnerConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let outcome = TestRunner::new_with_rng(runner_config, rng).run(&timelines(), |timeline| {
        circuits.set(circuits.get() + 1);
        let name = format!("timeline {}", circuits.get());
        let (mut connection, mut events) = (connection.borrow_mut(), events.borrow_mut());
        run_timeline(&timeline, &name, &mut connection, &mut events, &mut seen.borrow_mut())
            .map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, timeline)) => {
            panic!("SWITCHGEAR_SEED={seed}: {reason}\nsmallest timeline: {timeline:#?}")
        }
        Err(TestError::Abort(reason)) => panic!("SWITCHGEAR_SEED={seed}: gave up: {reason}"),
    }
    println!("differential: {:#?}", seen.borrow().counts);
    if cases >= TIMELINES {
        seen.borrow().assert_everything_was_met();
    }
}
