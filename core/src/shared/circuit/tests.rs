//! Conversations with a made-up store at made-up times.

use super::*;

const NONCE: u64 = 0xab;

fn circuit(fields: &[(&str, Value<'_>)]) -> SharedCircuit {
    let (config, options) = SharedOptions::build(Naming::Snake, &[fields]).unwrap();
    SharedCircuit::new("billing", Keys::DEFAULT_PREFIX, NONCE, config, options).unwrap()
}

fn at(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
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

const HALF_OPEN: [Option<&str>; 5] = [Some("half-open"), None, Some("7"), Some("50"), Some("30000")];
const CLOSED_AT_42: [Option<&str>; 5] = [None, None, Some("42"), None, None];

/// An admission that has got as far as `can_request`.
fn asked_on(circuit: &mut SharedCircuit) -> Ask {
    let first = circuit.admit(at(100));
    let step = circuit.on_reading(at(101), first.ticket, HALF_OPEN);
    assert_eq!(step.answer, None);
    step.ask.unwrap()
}

fn probe(circuit: &mut SharedCircuit) -> SharedPermit {
    let ask = asked_on(circuit);
    granted(&circuit.on_reply(at(102), ask.ticket, &long([2, 2, 0, 7, 0])))
}

#[test]
fn a_closed_admission_is_one_round_trip_and_its_success_none() {
    let mut circuit = circuit(&[]);
    let ask = circuit.admit(at(100));
    assert_eq!((ask.script, ask.args.as_slice(), ask.by_text, ask.delay_ms), (Script::Admit, &[][..], false, 0));
    assert_eq!(circuit.keys().of(Script::Admit), ["{cb:billing}"]);
    let permit = granted(&circuit.on_reading(at(101), ask.ticket, CLOSED_AT_42));
    assert_eq!(permit, SharedPermit { kind: PermitKind::Closed, epoch: 42, id: id(1) });
    assert!(circuit.success_is_free());
    assert_eq!(circuit.settle(at(110), Some(permit), Outcome::Success), Settle::Done(Settlement::Applied));
    assert_eq!(circuit.settle(at(110), Some(permit), Outcome::Release), Settle::Done(Settlement::Applied));
    assert_eq!(circuit.in_flight(), 0);
}

#[test]
fn calls_admitted_while_closed_are_told_apart_when_they_are_told() {
    let mut circuit = circuit(&[]);
    let permit = SharedPermit { kind: PermitKind::Closed, epoch: 42, id: id(0) };
    let ids = [(); 2].map(|()| {
        let Settle::Tell(ask) = circuit.settle(at(110), Some(permit), Outcome::Failure) else { panic!("not told") };
        ask.args[1].clone()
    });
    assert_eq!(ids, [id(1).to_string(), id(2).to_string()]);
}

#[test]
fn what_counts_successes_hears_of_them() {
    for trip_on in ["consecutive", "rate"] {
        let mut circuit = circuit(&[("trip_on", trip_on.into())]);
        assert!(!circuit.success_is_free());
        let permit = SharedPermit { kind: PermitKind::Closed, epoch: 42, id: id(1) };
        let Settle::Tell(ask) = circuit.settle(at(110), Some(permit), Outcome::Success) else { panic!("{trip_on}") };
        assert_eq!(ask.script, Script::RecordSuccess);
        let step = circuit.on_reply(at(111), ask.ticket, &long([1, 0, 0, 42, 0]));
        assert_eq!(step.answer, Some(Answer::Settled(Settlement::Applied)));
    }
}

#[test]
fn only_rate_uses_the_key_of_buckets() {
    assert_eq!(circuit(&[]).keys().of(Script::RecordFailure), ["{cb:billing}", "{cb:billing}:f", "{cb:billing}:p"]);
    let rate = circuit(&[("trip_on", "rate".into())]);
    assert_eq!(rate.keys().of(Script::Control)[3], "{cb:billing}:r");
    assert_eq!(rate.keys().of(Script::Admit).len(), 1);
}

#[test]
fn a_failure_is_told_with_its_permit_and_its_trip_comes_back() {
    let mut circuit = circuit(&[]);
    let permit = SharedPermit { kind: PermitKind::Closed, epoch: 42, id: id(1) };
    let Settle::Tell(ask) = circuit.settle(at(110), Some(permit), Outcome::Failure) else { panic!("told") };
    assert_eq!(ask.script, Script::RecordFailure);
    assert_eq!(ask.args[..4], ["110", "00000000000000ab0000000000001", "42", "0"]);
    assert_eq!(ask.args[4], "rolling 5 10000 0.5 20 30000 1 300000 1 1 30000 86400000 1");
    let step = circuit.on_reply(at(112), ask.ticket, &[1, 1, 0, 110, 30_000, 0, 0, 5, 30_000, 0]);
    assert_eq!(step.answer, Some(Answer::Settled(Settlement::Applied)));
    let transition = step.transition.unwrap();
    assert_eq!((transition.from, transition.to, transition.at), (State::Closed, State::Open, at(110)));
    assert_eq!((transition.reason.as_str(), transition.failures, transition.open_ms), ("threshold", 5, Some(30_000)));
}

#[test]
fn without_a_permit_the_epoch_is_unknown_and_the_id_fresh() {
    let mut circuit = circuit(&[]);
    let args = |settle: Settle| {
        let Settle::Tell(ask) = settle else { panic!("told") };
        (ask.args[1].clone(), ask.args[2].clone(), ask.args[3].clone())
    };
    let (first, epoch, kind) = args(circuit.settle(at(1), None, Outcome::Success));
    let (second, ..) = args(circuit.settle(at(1), None, Outcome::Failure));
    assert!(first < second && first.len() == 29 && (epoch.as_str(), kind.as_str()) == ("-1", "0"));
    assert_eq!(args(circuit.settle(at(1), None, Outcome::Release)).0, "", "the newest slot, whosever it is");
}

#[test]
fn a_half_open_admission_asks_on_under_the_same_ticket() {
    let mut circuit = circuit(&[]);
    let first = circuit.admit(at(100));
    let second =
        circuit.on_reading(at(101), first.ticket, [Some("open"), None, Some("7"), Some("50"), Some("51")]).ask.unwrap();
    assert_eq!((second.ticket, second.script), (first.ticket, Script::CanRequest));
    assert_eq!(second.args[..2], ["101", "00000000000000ab0000000000001"]);
    let step = circuit.on_reply(at(102), second.ticket, &[2, 2, 0, 101, 0, 1, 1, 0, -1, 0]);
    let permit = granted(&step);
    assert_eq!((permit.kind, permit.epoch), (PermitKind::Probe, 101));
    assert_eq!(step.transition.unwrap().reason.as_str(), "cooldown");
    let Settle::Tell(ask) = circuit.settle(at(110), Some(permit), Outcome::Release) else { panic!("told") };
    assert_eq!(ask.args[..4], ["110", "00000000000000ab0000000000001", "101", "1"]);
}

#[test]
fn refusals_say_what_refused_and_for_how_long() {
    let mut circuit = circuit(&[]);
    let mut refusal = |fields| {
        let ask = circuit.admit(at(100));
        circuit.on_reading(at(101), ask.ticket, fields).answer.unwrap()
    };
    let open = refusal([Some("open"), None, Some("50"), Some("51"), Some("450")]);
    assert_eq!(open, Answer::Refused { state: State::Open, retry_after: Some(400) });
    let forced = refusal([None, Some("forced-open"), Some("50"), None, None]);
    assert_eq!(forced, Answer::Refused { state: State::Open, retry_after: None });
    let ask = asked_on(&mut circuit);
    let step = circuit.on_reply(at(102), ask.ticket, &long([0, 2, 0, 7, 30]));
    assert_eq!(step.answer, Some(Answer::Refused { state: State::HalfOpen, retry_after: Some(30) }));
}

#[test]
fn a_disabled_circuit_admits_and_hears_nothing() {
    let mut circuit = circuit(&[]);
    let ask = circuit.admit(at(100));
    let permit =
        granted(&circuit.on_reading(at(101), ask.ticket, [Some("open"), Some("disabled"), Some("7"), None, None]));
    assert_eq!(permit.kind, PermitKind::Bypass);
    assert_eq!(circuit.settle(at(102), Some(permit), Outcome::Failure), Settle::Done(Settlement::Stale));
}

#[test]
fn an_unknown_script_is_sent_again_by_its_text_with_the_same_id() {
    let mut circuit = circuit(&[]);
    let first = asked_on(&mut circuit);
    let step = circuit.on_error(at(103), first.ticket, "NOSCRIPT No matching script. Please use EVAL.");
    let again = step.ask.unwrap();
    assert_eq!(step.answer, None);
    assert_eq!(again, Ask { by_text: true, ..first });
    let step = circuit.on_error(at(104), again.ticket, "NOSCRIPT who knows why");
    assert_eq!(step.answer, Some(Answer::Unavailable), "asked by text it must know it");
}

#[test]
fn a_slot_on_the_move_is_asked_again_until_the_deadline() {
    let mut circuit = circuit(&[]);
    let ask = circuit.admit(at(100));
    for _ in 0..3 {
        let again = circuit
            .on_error(at(101), ask.ticket, "TRYAGAIN Multiple keys request during rehashing of slot")
            .ask
            .unwrap();
        assert!(again.delay_ms > 0);
    }
    assert_eq!(circuit.on_deadline(ask.ticket).answer, Some(Answer::Unavailable));
    assert_eq!(circuit.on_error(at(300), ask.ticket, "TRYAGAIN"), Step::default());
    assert_eq!(circuit.in_flight(), 0);
}

#[test]
fn a_store_that_fails_makes_the_circuit_unavailable_or_unguarded() {
    let mut closed = circuit(&[]);
    let ask = closed.admit(at(100));
    assert_eq!(closed.on_error(at(101), ask.ticket, "LOADING").answer, Some(Answer::Unavailable));
    let mut open = circuit(&[("on_store_failure", "fail-open".into())]);
    let ask = open.admit(at(100));
    let permit = granted(&open.on_deadline(ask.ticket));
    assert_eq!(permit.kind, PermitKind::Unasked);
    assert_eq!(open.settle(at(102), Some(permit), Outcome::Failure), Settle::Done(Settlement::Stale));
}

#[test]
fn an_answer_comes_once() {
    let mut circuit = circuit(&[]);
    let ask = circuit.admit(at(100));
    assert!(circuit.on_deadline(ask.ticket).answer.is_some());
    assert_eq!(circuit.on_deadline(ask.ticket), Step::default());
    assert_eq!(circuit.on_reading(at(300), ask.ticket, CLOSED_AT_42), Step::default());
    assert_eq!(circuit.on_reading(at(301), ask.ticket, CLOSED_AT_42), Step::default());
    assert_eq!(circuit.on_error(at(302), ask.ticket, "gone"), Step::default());
}

#[test]
fn a_late_answer_to_the_first_question_asks_no_second() {
    let mut circuit = circuit(&[]);
    let ask = circuit.admit(at(100));
    circuit.on_deadline(ask.ticket);
    assert_eq!(circuit.on_reading(at(300), ask.ticket, HALF_OPEN), Step::default());
}

#[test]
fn a_probe_granted_too_late_is_given_back() {
    let mut circuit = circuit(&[]);
    let ask = asked_on(&mut circuit);
    assert_eq!(circuit.on_deadline(ask.ticket).answer, Some(Answer::Unavailable));
    let step = circuit.on_reply(at(300), ask.ticket, &[2, 2, 0, 101, 0, 1, 1, 0, -1, 0]);
    assert_eq!(step.answer, None);
    assert!(step.transition.is_some(), "listeners hear of it all the same");
    let back = step.ask.unwrap();
    assert_eq!(
        (back.script, &back.args[..4]),
        (Script::Release, &["300", "00000000000000ab0000000000001", "-1", "1"].map(String::from)[..])
    );
    let again = circuit.on_error(at(301), back.ticket, "NOSCRIPT").ask.unwrap();
    assert!(again.by_text);
    assert_eq!(circuit.on_reply(at(302), back.ticket, &long([1, 2, 0, 101, 0])), Step::default());
    assert_eq!(circuit.in_flight(), 0);
}

#[test]
fn a_probe_whose_grant_was_lost_is_given_back() {
    let mut circuit = circuit(&[]);
    let ask = asked_on(&mut circuit);
    let step = circuit.on_error(at(103), ask.ticket, "Connection is closed.");
    assert_eq!(step.answer, Some(Answer::Unavailable));
    let back = step.ask.unwrap();
    assert_eq!(back.script, Script::Release);
    assert_eq!(circuit.on_error(at(104), back.ticket, "TRYAGAIN"), Step::default(), "its slot times out instead");
}

#[test]
fn outcomes_that_could_not_be_told_are_said_to_be_so() {
    let mut circuit = circuit(&[]);
    let permit = probe(&mut circuit);
    let Settle::Tell(ask) = circuit.settle(at(110), Some(permit), Outcome::Success) else { panic!("told") };
    assert_eq!(circuit.on_deadline(ask.ticket).answer, Some(Answer::Unavailable));
    let step = circuit.on_reply(at(400), ask.ticket, &[1, 0, 0, 110, 0, 2, 3, 0, -1, 0]);
    assert_eq!((step.answer, step.counted), (None, true));
    assert_eq!(step.transition.unwrap().to, State::Closed);
}

#[test]
fn manual_operations_are_told_by_their_names() {
    let mut circuit = circuit(&[]);
    let words = [
        (Control::Reset, "reset", "-1"),
        (Control::Trip { for_ms: None }, "trip", "-1"),
        (Control::Trip { for_ms: Some(50) }, "trip", "50"),
        (Control::ForceOpen, "force-open", "-1"),
        (Control::Disable, "disable", "-1"),
    ];
    for (control, op, for_ms) in words {
        let ask = circuit.control(at(9), control).unwrap();
        assert_eq!(ask.args[..3], ["9", op, for_ms]);
        assert_eq!(circuit.on_reply(at(10), ask.ticket, &long([1, 0, 0, 9, 0])).answer, Some(Answer::Controlled));
    }
    assert_eq!(circuit.control(at(9), Control::Trip { for_ms: Some(0) }).unwrap_err().field(), "for_ms");
    assert_eq!(circuit.in_flight(), 0);
}

#[test]
fn a_manual_change_that_nobody_sees_is_no_transition() {
    let mut circuit = circuit(&[]);
    let ask = circuit.control(at(9), Control::Reset).unwrap();
    let step = circuit.on_reply(at(10), ask.ticket, &[1, 0, 0, 9, 0, 0, 4, 0, -1, 0]);
    assert_eq!((step.answer, step.transition), (Some(Answer::Controlled), None));
}

#[test]
fn the_snapshot_is_read_field_by_field() {
    let mut circuit = circuit(&[]);
    let ask = circuit.get_state(at(9));
    let step = circuit.on_reply(at(10), ask.ticket, &[1, 1, 7, 5, 600, 3, 1, 2, 4, 8, 9]);
    let Some(Answer::Snapshot(snapshot)) = step.answer else { panic!("{step:?}") };
    assert_eq!(
        (snapshot.state, snapshot.mode.as_str(), snapshot.epoch, snapshot.opened_at),
        (State::Open, "forced-open", 7, Some(5))
    );
    assert_eq!((snapshot.remaining_open_ms, snapshot.trips), (600, 3));
    assert_eq!((snapshot.failures_in_window, snapshot.calls_in_window, snapshot.consecutive_failures), (1, 2, 4));
    assert_eq!((snapshot.half_open_successes, snapshot.half_open_in_flight), (8, 9));
}

#[test]
fn another_configuration_is_reported_once() {
    let mut circuit = circuit(&[]);
    let mut mismatch = || {
        let ask = asked_on(&mut circuit);
        circuit.on_reply(at(102), ask.ticket, &[0, 2, 0, 7, 30, -1, -1, 0, -1, 1]).config_mismatch
    };
    assert_eq!([mismatch(), mismatch()], [true, false]);
}

#[test]
fn a_reply_that_is_none_of_ours_is_no_answer() {
    let replies: [&[i64]; 7] =
        [&[], &[1], &[9, 0, 0, 0, 0], &[1, 0, 0, -5, 0], &[0, 7, 0, 0, 0], &[0, 0, 7, 0, 0], &[i64::MIN; 5]];
    for reply in replies {
        let mut circuit = circuit(&[]);
        let ask = asked_on(&mut circuit);
        let step = circuit.on_reply(at(101), ask.ticket, reply);
        assert_eq!((step.answer, step.malformed), (Some(Answer::Unavailable), true), "{reply:?}");
        let ask = circuit.get_state(at(100));
        assert!(circuit.on_reply(at(101), ask.ticket, reply).malformed);
        let ask = circuit.control(at(100), Control::Reset).unwrap();
        assert!(circuit.on_reply(at(101), ask.ticket, reply).malformed);
    }
    let mut circuit = circuit(&[]);
    let ask = asked_on(&mut circuit);
    let step = circuit.on_reply(at(101), ask.ticket, &long([4, 2, 0, 7, 0]));
    assert!(step.malformed && step.ask.is_some(), "it may have taken a slot");
}

#[test]
fn construction_checks_the_names() {
    let new = |name: &str, prefix: &str| {
        let config = Config::default();
        let options = SharedOptions::for_config(&config);
        SharedCircuit::new(name, prefix, 0, config, options)
    };
    assert!(new("GET /users/{id}", "cb:").is_ok());
    for (name, prefix) in [("", "cb:"), ("a\nb", "cb:"), ("x", ""), ("x", "}cb:")] {
        assert_eq!(new(name, prefix).unwrap_err().code(), "name_invalid");
    }
}

#[test]
fn a_reading_belongs_to_the_first_question_only() {
    let mut circuit = circuit(&[]);
    let second = asked_on(&mut circuit);
    assert_eq!(circuit.on_reading(at(102), second.ticket, CLOSED_AT_42), Step::default());
    assert_eq!(circuit.on_reading(at(102), 999, CLOSED_AT_42), Step::default());
    assert_eq!(circuit.in_flight(), 1, "the script's reply is still awaited");
    let first = circuit.admit(at(103));
    assert!(circuit.on_reply(at(104), first.ticket, &long([1, 0, 0, 42, 0])).malformed, "integers are no reading");
}

#[test]
fn an_outcome_counts_also_when_the_script_is_missed_after_the_deadline() {
    let mut circuit = circuit(&[]);
    let permit = probe(&mut circuit);
    let Settle::Tell(ask) = circuit.settle(at(110), Some(permit), Outcome::Success) else { panic!("told") };
    circuit.on_deadline(ask.ticket);
    let again = circuit.on_error(at(300), ask.ticket, "NOSCRIPT").ask.unwrap();
    assert_eq!(again, Ask { by_text: true, ..ask });
    let step = circuit.on_reply(at(301), again.ticket, &[1, 0, 0, 110, 0, 2, 3, 0, -1, 0]);
    assert_eq!((step.answer, step.transition.map(|t| t.to)), (None, Some(State::Closed)));
}

#[test]
fn an_admission_is_over_at_its_deadline() {
    let mut circuit = circuit(&[]);
    let ask = asked_on(&mut circuit);
    circuit.on_deadline(ask.ticket);
    let step = circuit.on_error(at(300), ask.ticket, "NOSCRIPT");
    assert_eq!(step.ask.map(|ask| ask.script), Some(Script::Release), "nothing is asked for the caller who left");
}

#[test]
fn an_outcome_that_was_stale_has_not_counted() {
    let mut circuit = circuit(&[]);
    let permit = probe(&mut circuit);
    let Settle::Tell(ask) = circuit.settle(at(110), Some(permit), Outcome::Failure) else { panic!("told") };
    let step = circuit.on_reply(at(111), ask.ticket, &long([0, 0, 0, 110, 0]));
    assert_eq!((step.answer, step.counted), (Some(Answer::Settled(Settlement::Stale)), false));
    let ask = circuit.control(at(112), Control::Reset).unwrap();
    assert!(!circuit.on_reply(at(113), ask.ticket, &long([1, 0, 0, 112, 0])).counted, "no outcome");
}
