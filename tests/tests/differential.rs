//! Random timelines on the core and on the Lua scripts in a real Redis: every answer, every transition and every field of
//! every snapshot is the same (DESIGN section 8).
//!
//! The seed is printed. `SWITCHGEAR_SEED=<seed>` repeats a run, `SWITCHGEAR_TIMELINES=<n>` sets its length.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::env;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use proptest::test_runner::{Config as RunnerConfig, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use redis::{Connection, FromRedisValue, from_redis_value};
use switchgear_core::{
    CircuitBreaker, Config, Decision, Millis, Naming, Outcome, Permit, Reason, Settlement, Snapshot, State, Transition,
    Value,
};
use switchgear_lua::SCRIPTS;
use switchgear_tests::lua::{Call, Fields, LuaPermit, PermitKind, Reading, Reply, Wire, call_id, read_snapshot};
use switchgear_tests::servers::{Server, run};

/// Timelines of a normal run.
const TIMELINES: u32 = 2500;
/// The longest timeline.
const STEPS: usize = 60;

/// What happens in one step, before it is known which permits there are.
#[derive(Clone, Copy, Debug)]
enum Op {
    CanRequest,
    /// With the permit that many back among those not yet used, or without one.
    Settle(Outcome, Option<usize>),
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
    ByDuration(Duration, i64),
    /// The other way.
    BackByDuration(Duration, i64),
}

#[derive(Clone, Copy, Debug)]
enum Duration {
    Window,
    Bucket,
    Open,
    ProbeTimeout,
}

#[derive(Clone, Debug)]
struct Timeline {
    fields: Vec<(&'static str, Field)>,
    start: u64,
    steps: Vec<(Tick, Op)>,
}

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
    let duration =
        || prop::sample::select(&[Duration::Window, Duration::Bucket, Duration::Open, Duration::ProbeTimeout][..]);
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
    prop_oneof![
        40 => Just(Op::CanRequest),
        26 => (outcome(), 0..6_usize).prop_map(|(outcome, back)| Op::Settle(outcome, Some(back))),
        13 => outcome().prop_map(|outcome| Op::Settle(outcome, None)),
        2 => Just(Op::Reset),
        2 => prop::option::of(prop::sample::select(&[1, 50, 7_000, 3_155_760_000_000_u64][..])).prop_map(Op::Trip),
        1 => prop_oneof![Just(Op::ForceOpen), Just(Op::Disable)],
    ]
}

fn timelines() -> impl Strategy<Value = Timeline> {
    let starts = [0, 1, 1_000, 59_999, 1_700_000_000_000, 99_999_999_999_990, 100_000_000_000_000, (1 << 52) - 100_000];
    (counting(), opening(), probing(), prop::sample::select(starts.to_vec()), steps()).prop_map(
        |(counting, opening, probing, start, steps)| Timeline {
            fields: [counting, opening, probing].concat(),
            start,
            steps,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<(Tick, Op)>> {
    prop::collection::vec((ticks(), ops()), 1..STEPS)
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
}

impl Tick {
    fn from(self, now: u64, config: &Config) -> u64 {
        let ms = |duration| match duration {
            Duration::Window => config.window_ms(),
            Duration::Bucket => config.window_ms().div_ceil(10),
            Duration::Open => config.open_duration_ms(),
            Duration::ProbeTimeout => config.probe_timeout_ms(),
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
    /// Bypass permits are never sent.
    NotSent,
    Controlled,
}

/// A permit not yet used, on both sides.
type Kept = (Permit, LuaPermit);

fn run_core(timeline: &Timeline, wire: &Wire, config: &Config) -> Result<Vec<Expected>, String> {
    let mut breaker = CircuitBreaker::new(config.clone());
    let mut kept: Vec<Kept> = Vec::new();
    let mut now = timeline.start;
    let mut expected = Vec::new();
    for (number, &(tick, op)) in (1..).zip(&timeline.steps) {
        now = tick.from(now, config);
        let at = Millis::new(now).map_err(|error| error.to_string())?;
        let id = call_id(number);
        let mut call = None;
        let (answer, transition) = match op {
            Op::CanRequest => {
                call = Some(wire.can_request(now, &id));
                let admission = breaker.can_request(at);
                if let Decision::Allowed(permit) = admission.decision {
                    kept.push((permit, twin(permit, id)));
                }
                (CoreAnswer::Admission(admission.decision), admission.transition)
            }
            Op::Settle(outcome, back) => {
                // A permit settles once: that is the host's part of the contract.
                let used = back.and_then(|back| kept.len().checked_sub(back + 1)).map(|index| kept.remove(index));
                let settled = breaker.settle(at, used.as_ref().map(|(permit, _)| *permit), outcome);
                match &used {
                    Some((Permit::Bypass, _)) => {
                        assert_eq!(settled.status, Settlement::Stale, "a bypass permit is always stale");
                        (CoreAnswer::NotSent, settled.transition)
                    }
                    Some((_, twin)) => {
                        call = Some(wire.settle(outcome, now, twin));
                        (CoreAnswer::Settled(settled.status), settled.transition)
                    }
                    None => {
                        call = Some(wire.settle_without(outcome, now, &id));
                        (CoreAnswer::Settled(settled.status), settled.transition)
                    }
                }
            }
            Op::Reset => {
                call = Some(wire.control(now, "reset", None));
                (CoreAnswer::Controlled, breaker.reset(at))
            }
            Op::Trip(for_ms) => {
                call = Some(wire.control(now, "trip", for_ms));
                (CoreAnswer::Controlled, breaker.trip(at, for_ms).map_err(|error| error.to_string())?)
            }
            Op::ForceOpen => {
                call = Some(wire.control(now, "force-open", None));
                (CoreAnswer::Controlled, breaker.force_open(at))
            }
            Op::Disable => {
                call = Some(wire.control(now, "disable", None));
                (CoreAnswer::Controlled, breaker.disable(at))
            }
        };
        let place = format!("step {number}: {op:?} at {now}");
        expected.push(Expected { place, at, call, answer, transition, snapshot: breaker.snapshot(at) });
    }
    Ok(expected)
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
        CoreAnswer::Controlled => equal("wait", reply.wait, Some(expected.snapshot.remaining_open_ms))?,
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
            CoreAnswer::NotSent | CoreAnswer::Controlled => {}
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
        met.push("refused by the reading alone".to_owned());
        for what in met {
            assert!(self.counts.get(&what).is_some_and(|&n| n > 100), "hardly ever met `{what}`: {:#?}", self.counts);
        }
    }
}

fn run_timeline(timeline: &Timeline, name: &str, connection: &mut Connection, seen: &mut Seen) -> Result<(), String> {
    let config = timeline.config()?;
    let wire = Wire::new(name, &config);
    let expected = run_core(timeline, &wire, &config)?;
    let mut pipeline = redis::pipe();
    for step in &expected {
        if step.reads() {
            pipeline.add_command(wire.reading());
        }
        for call in step.call.iter().chain([&wire.get_state(step.at.get())]) {
            pipeline.add_command(call.by_sha());
        }
    }
    let replies: Vec<redis::Value> = pipeline.query(connection).map_err(|error| error.to_string())?;
    let mut replies = replies.into_iter();
    for step in &expected {
        let own = Replies::take(step, &mut replies)?;
        compare(step, &own).map_err(|difference| format!("{}: {difference}", step.place))?;
        seen.note(step, &own);
    }
    Ok(())
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
    let connection = RefCell::new(connection);
    let (seen, circuits) = (RefCell::new(Seen::default()), Cell::new(0_u64));

    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let runner_config = RunnerConfig { cases, failure_persistence: None, ..RunnerConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let outcome = TestRunner::new_with_rng(runner_config, rng).run(&timelines(), |timeline| {
        circuits.set(circuits.get() + 1);
        let name = format!("timeline {}", circuits.get());
        run_timeline(&timeline, &name, &mut connection.borrow_mut(), &mut seen.borrow_mut())
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
