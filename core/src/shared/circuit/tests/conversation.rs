//! What is asked, and what the replies mean.

use super::*;

#[test]
fn a_closed_admission_is_one_round_trip_and_its_success_none() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    let ask = desk.sends();
    let read = Ask { ticket, command: Command::Run(Script::Admit), by_text: false, delay_ms: 0, args: vec![] };
    assert_eq!(ask, read);
    assert_eq!(desk.circuit.keys().of(Script::Admit), ["{cb:billing}"]);
    let permit = granted(&desk.reads(101, ticket, CLOSED_AT_42));
    assert_eq!((permit.kind, permit.epoch), (PermitKind::Closed, 42));
    assert!(desk.circuit.success_is_free());
    assert_eq!(desk.notes(110, permit, Outcome::Success).0, Settlement::Applied);
    assert_eq!(desk.notes(110, permit, Outcome::Release).0, Settlement::Applied);
    assert!(desk.is_quiet());
    assert_eq!(desk.circuit.in_flight(), 0);
}

#[test]
fn calls_admitted_while_closed_are_told_apart_when_they_are_told() {
    let mut desk = desk(&[]);
    let permit = desk.admitted(100);
    let ids = [(); 2].map(|()| desk.tells(110, Some(permit), Outcome::Failure).args[1].clone());
    assert_eq!(ids, [id(2).to_string(), id(3).to_string()]);
}

#[test]
fn keys_are_exactly_those_that_are_used() {
    let keys = |fields: &[(&str, Value<'_>)]| desk(fields).circuit.keys().of(Script::RecordFailure).to_vec();
    assert_eq!(keys(&[]), ["{cb:billing}", "{cb:billing}:f", "{cb:billing}:p"]);
    assert_eq!(keys(&[("trip_on", "rate".into())])[3], "{cb:billing}:r");
    assert_eq!(keys(&[("trip_on", "rate".into()), ("quorum", 2.into())])[4], "{cb:billing}:i");
    assert_eq!(keys(&[("trip_on", "consecutive".into()), ("quorum", 2.into())])[3], "{cb:billing}:i");
    assert_eq!(keys(&[("quorum", 2.into())]).len(), 3, "there each instance's failures bear its name");
}

#[test]
fn a_failure_is_told_with_its_permit_and_its_trip_comes_back() {
    let mut desk = desk(&[]);
    let permit = desk.admitted(100);
    let ask = desk.tells(110, Some(permit), Outcome::Failure);
    assert_eq!(ask.command, Command::Run(Script::RecordFailure));
    assert_eq!(ask.args[..4], ["110", "00000000000000ab0000000000002", "42", "0"]);
    assert_eq!(ask.args[4], "rolling 5 10000 0.5 20 30000 1 300000 1 1 30000 86400000 1");
    assert_eq!(ask.args[5..], ["cb:events", "00000000000000ab billing\nhost-1", "0", "host-1"]);
    let step = desk.replies(112, ask.ticket, &[1, 1, 0, 110, 30_000, 0, 0, 5, 30_000, 0]);
    assert_eq!(step.answer, Some(Answer::Settled(Settlement::Applied)));
    let transition = step.transition.unwrap();
    assert_eq!((transition.from, transition.to, transition.at), (State::Closed, State::Open, ms(110)));
    assert_eq!((transition.reason.as_str(), transition.failures, transition.open_ms), ("threshold", 5, Some(30_000)));
}

#[test]
fn without_a_permit_the_epoch_is_unknown_and_the_id_fresh() {
    let mut desk = desk(&[]);
    let mut args = |outcome| {
        let ask = desk.tells(1, None, outcome);
        (ask.args[1].clone(), ask.args[2].clone(), ask.args[3].clone())
    };
    let (first, epoch, kind) = args(Outcome::Success);
    let (second, ..) = args(Outcome::Failure);
    assert!(first < second && first.len() == 29 && (epoch.as_str(), kind.as_str()) == ("-1", "0"));
    assert_eq!(args(Outcome::Release).0, "", "the newest slot, whosever it is");
}

#[test]
fn a_half_open_admission_asks_on_under_the_same_ticket() {
    let mut desk = desk(&[]);
    let first = desk.asks(100);
    desk.sends();
    assert_eq!(desk.reads(101, first, HALF_OPEN), Step::default());
    let second = desk.sends();
    assert_eq!((second.ticket, second.command), (first, Command::Run(Script::CanRequest)));
    assert_eq!(second.args[..2], ["101", "00000000000000ab0000000000001"]);
    assert_eq!(second.args[3..], ["cb:events", "00000000000000ab billing\nhost-1"]);
    let step = desk.replies(102, first, &[2, 2, 0, 101, 0, 1, 1, 0, -1, 0]);
    let permit = granted(&step);
    assert_eq!((permit.kind, permit.epoch), (PermitKind::Probe, 101));
    assert_eq!(step.transition.unwrap().reason.as_str(), "cooldown");
    let ask = desk.tells(110, Some(permit), Outcome::Release);
    assert_eq!(ask.args[..4], ["110", "00000000000000ab0000000000001", "101", "1"]);
}

#[test]
fn refusals_say_what_refused_and_for_how_long() {
    let refusal = |fields| {
        let mut desk = desk(&[]);
        let ticket = desk.asks(100);
        desk.reads(101, ticket, fields).answer
    };
    let open = refusal([Some("open"), None, Some("50"), Some("51"), Some("450")]);
    assert_eq!(open, refused(State::Open, Some(400)));
    assert_eq!(refusal(FORCED_OPEN), refused(State::Open, None));
    let mut desk = desk(&[]);
    let ask = desk.asked_on();
    let step = desk.replies(102, ask.ticket, &long([0, 2, 0, 7, 30]));
    assert_eq!(step.answer, refused(State::HalfOpen, Some(30)));
}

#[test]
fn a_disabled_circuit_admits_and_hears_nothing() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    let permit = granted(&desk.reads(101, ticket, [Some("open"), Some("disabled"), Some("7"), None, None]));
    assert_eq!(permit.kind, PermitKind::Bypass);
    assert_eq!(desk.notes(102, permit, Outcome::Failure).0, Settlement::Stale);
}

#[test]
fn an_unknown_script_is_sent_again_by_its_text_with_the_same_id() {
    let mut desk = desk(&[]);
    let first = desk.asked_on();
    let step = desk.fails(103, first.ticket, "NOSCRIPT No matching script. Please use EVAL.");
    assert_eq!(step, Step::default());
    let again = desk.sends();
    assert!(again.by_text);
    assert_eq!((again.command, &again.args[1..]), (first.command, &first.args[1..]));
    let step = desk.fails(104, again.ticket, "NOSCRIPT who knows why");
    assert!(step.answer.is_some(), "asked by text it must know it");
}

#[test]
fn a_slot_on_the_move_is_asked_again_until_the_deadline() {
    let mut desk = desk(&[("on_store_failure", "fail-closed".into())]);
    let ticket = desk.asks(100);
    desk.sends();
    for _ in 0..3 {
        assert_eq!(desk.fails(101, ticket, "TRYAGAIN Multiple keys request during rehashing of slot"), Step::default());
        assert!(desk.sends().delay_ms > 0);
    }
    assert_eq!(desk.is_late(200, ticket).answer, Some(Answer::Unavailable));
    assert_eq!(desk.fails(300, ticket, "TRYAGAIN"), Step::default());
    assert_eq!(desk.circuit.in_flight(), 0);
}

#[test]
fn an_answer_comes_once() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    assert!(desk.is_late(200, ticket).answer.is_some());
    assert_eq!(desk.is_late(200, ticket), Step::default());
    assert_eq!(desk.reads(300, ticket, CLOSED_AT_42).answer, None);
    assert_eq!(desk.reads(301, ticket, CLOSED_AT_42), Step::default());
    assert_eq!(desk.fails(302, ticket, "gone"), Step::default());
}

#[test]
fn a_late_answer_to_the_first_question_asks_no_second() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    desk.sends();
    desk.is_late(200, ticket);
    assert_eq!(desk.reads(300, ticket, HALF_OPEN), Step::default());
    assert!(desk.is_quiet());
}

#[test]
fn a_probe_granted_too_late_is_given_back() {
    let mut desk = desk(&[]);
    let ask = desk.asked_on();
    assert!(desk.is_late(200, ask.ticket).answer.is_some());
    let step = desk.replies(300, ask.ticket, &[2, 2, 0, 101, 0, 1, 1, 0, -1, 0]);
    assert_eq!(step.answer, None);
    assert!(step.transition.is_some(), "listeners hear of it all the same");
    let back = desk.sends();
    assert_eq!(back.command, Command::Run(Script::Release));
    assert_eq!(back.args[..4], ["300", "00000000000000ab0000000000001", "-1", "1"]);
    desk.fails(301, back.ticket, "NOSCRIPT");
    assert!(desk.sends().by_text);
    assert_eq!(desk.replies(302, back.ticket, &long([1, 2, 0, 101, 0])), Step::default());
    assert_eq!(desk.circuit.in_flight(), 0);
}

#[test]
fn a_probe_whose_grant_was_lost_is_given_back() {
    let mut desk = desk(&[]);
    let ask = desk.asked_on();
    assert!(desk.fails(103, ask.ticket, "Connection is closed.").answer.is_some());
    let back = desk.sends();
    assert_eq!(back.command, Command::Run(Script::Release));
    assert_eq!(desk.fails(104, back.ticket, "TRYAGAIN"), Step::default());
    assert!(desk.is_quiet(), "not at once");
    desk.asks(105);
    let again = desk.sends_all();
    assert_eq!(
        again.iter().map(|ask| ask.command).collect::<Vec<_>>(),
        [Command::Run(Script::Release), Command::Run(Script::Admit)]
    );
    assert_eq!(again[0].args[1..], back.args[1..]);
    assert_eq!(desk.fails(106, again[0].ticket, "NOPERM this user has no permissions"), Step::default());
    desk.reads(106, again[1].ticket, CLOSED_AT_42);
    desk.asks(107);
    assert_eq!(desk.sends().command, Command::Run(Script::Admit), "its slot times out instead");
}

#[test]
fn an_outcome_that_is_told_too_late_counts_all_the_same() {
    let mut desk = desk(&[("on_store_failure", "fail-closed".into())]);
    let permit = desk.probe();
    let ask = desk.tells(110, Some(permit), Outcome::Success);
    assert_eq!(desk.is_late(210, ask.ticket).answer, Some(Answer::Unavailable));
    let step = desk.replies(400, ask.ticket, &[1, 0, 0, 110, 0, 2, 3, 0, -1, 0]);
    assert_eq!((step.answer, step.counted), (None, true));
    assert_eq!(step.transition.unwrap().to, State::Closed);
}

#[test]
fn an_outcome_counts_also_when_the_script_is_missed_after_the_deadline() {
    let mut desk = desk(&[]);
    let permit = desk.probe();
    let ask = desk.tells(110, Some(permit), Outcome::Success);
    desk.is_late(210, ask.ticket);
    desk.fails(300, ask.ticket, "NOSCRIPT");
    let again = desk.sends();
    assert!(again.by_text && again.args[1..] == ask.args[1..]);
    let step = desk.replies(301, again.ticket, &[1, 0, 0, 110, 0, 2, 3, 0, -1, 0]);
    assert_eq!((step.answer, step.transition.map(|t| t.to)), (None, Some(State::Closed)));
}

#[test]
fn an_admission_is_over_at_its_deadline() {
    let mut desk = desk(&[]);
    let ask = desk.asked_on();
    desk.is_late(201, ask.ticket);
    desk.fails(300, ask.ticket, "NOSCRIPT");
    let next = desk.sends();
    assert_eq!(next.command, Command::Run(Script::Release), "nothing is asked for the caller who left");
}

#[test]
fn an_outcome_that_was_stale_has_not_counted() {
    let mut desk = desk(&[]);
    let permit = desk.probe();
    let ask = desk.tells(110, Some(permit), Outcome::Failure);
    let step = desk.replies(111, ask.ticket, &long([0, 0, 0, 110, 0]));
    assert_eq!((step.answer, step.counted), (Some(Answer::Settled(Settlement::Stale)), false));
    let ask = desk.controls(112, Control::Reset);
    assert!(!desk.replies(113, ask.ticket, &long([1, 0, 0, 112, 0])).counted, "no outcome");
}

#[test]
fn manual_operations_are_told_by_their_names() {
    let mut desk = desk(&[]);
    let words = [
        (Control::Reset, "reset", "-1"),
        (Control::Trip { for_ms: None }, "trip", "-1"),
        (Control::Trip { for_ms: Some(50) }, "trip", "50"),
        (Control::ForceOpen, "force-open", "-1"),
        (Control::Disable, "disable", "-1"),
    ];
    for (control, op, for_ms) in words {
        let ask = desk.controls(9, control);
        assert_eq!(ask.args[..3], ["9", op, for_ms]);
        assert_eq!(desk.replies(10, ask.ticket, &long([1, 0, 0, 9, 0])).answer, Some(Answer::Controlled));
    }
    let zero = Control::Trip { for_ms: Some(0) };
    let error = desk.circuit.control(&mut desk.node, at(9), zero).unwrap_err();
    assert_eq!(error.field(), "for_ms");
    assert_eq!(desk.circuit.in_flight(), 0);
}

#[test]
fn a_manual_change_that_nobody_sees_is_no_transition() {
    let mut desk = desk(&[]);
    let ask = desk.controls(9, Control::Reset);
    let step = desk.replies(10, ask.ticket, &[1, 0, 0, 9, 0, 0, 4, 0, -1, 0]);
    assert_eq!((step.answer, step.transition), (Some(Answer::Controlled), None));
}

#[test]
fn the_snapshot_is_read_field_by_field() {
    let mut desk = desk(&[]);
    let Begun::Wait(ticket) = desk.circuit.get_state(&mut desk.node, at(9)) else { panic!("asked") };
    let step = desk.replies(10, ticket, &[1, 1, 7, 5, 600, 3, 1, 2, 4, 8, 9]);
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
    let mut desk = desk(&[]);
    let mut mismatch = || {
        let ask = desk.asked_on();
        desk.replies(102, ask.ticket, &[0, 2, 0, 7, 30, -1, -1, 0, -1, 1]).config_mismatch
    };
    assert_eq!([mismatch(), mismatch()], [true, false]);
}

#[test]
fn a_reply_that_is_none_of_ours_is_no_answer() {
    let replies: [&[i64]; 7] =
        [&[], &[1], &[9, 0, 0, 0, 0], &[1, 0, 0, -5, 0], &[0, 7, 0, 0, 0], &[0, 0, 7, 0, 0], &[i64::MIN; 5]];
    for reply in replies {
        let mut desk = desk(&[("on_store_failure", "fail-closed".into())]);
        let ask = desk.asked_on();
        let step = desk.replies(101, ask.ticket, reply);
        assert_eq!((step.answer, step.malformed), (Some(Answer::Unavailable), true), "{reply:?}");
        let Begun::Wait(ticket) = desk.circuit.get_state(&mut desk.node, at(100)) else { panic!("asked") };
        assert!(desk.replies(101, ticket, reply).malformed);
        while desk.circuit.next_ask().is_some() {}
        let ask = desk.controls(100, Control::Reset);
        assert!(desk.replies(101, ask.ticket, reply).malformed);
    }
    let mut desk = desk(&[]);
    let ask = desk.asked_on();
    let step = desk.replies(101, ask.ticket, &long([4, 2, 0, 7, 0]));
    assert!(step.malformed && !desk.is_quiet(), "it may have taken a slot");
}

#[test]
fn construction_checks_the_names() {
    let new = |name: &str, prefix: &str| {
        let config = Config::default();
        let options = SharedOptions::for_config(&config);
        SharedCircuit::new(name, prefix, 0, "i", config, options)
    };
    assert!(new("GET /users/{id}", "cb:").is_ok());
    for (name, prefix) in [("", "cb:"), ("a\nb", "cb:"), ("x", ""), ("x", "}cb:")] {
        assert_eq!(new(name, prefix).unwrap_err().code(), "name_invalid");
    }
}

#[test]
fn a_reading_belongs_to_the_first_question_only() {
    let mut desk = desk(&[]);
    let second = desk.asked_on();
    assert_eq!(desk.reads(102, second.ticket, CLOSED_AT_42), Step::default());
    assert_eq!(desk.reads(102, 999, CLOSED_AT_42), Step::default());
    assert_eq!(desk.circuit.in_flight(), 1, "the script's reply is still awaited");
    desk.replies(103, second.ticket, &long([0, 2, 0, 7, 30]));
    let first = desk.asks(103);
    assert!(desk.replies(104, first, &long([1, 0, 0, 42, 0])).malformed, "integers are no reading");
}

#[test]
fn a_quorum_gives_each_instance_a_few_places() {
    let mut desk = desk(&[("failure_threshold", 5.into()), ("quorum", 2.into())]);
    let permit = desk.admitted(100);
    let members = [(); 4].map(|()| desk.tells(110, Some(permit), Outcome::Failure).args[1].clone());
    assert_eq!(members, ["host-1:0", "host-1:1", "host-1:2", "host-1:0"]);
    assert!(desk.tells(110, Some(permit), Outcome::Failure).args[4].ends_with(" 2"));
}
