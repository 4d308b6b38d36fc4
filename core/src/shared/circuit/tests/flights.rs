//! Concurrent admissions share a round trip (DESIGN 5.3).

use super::*;

fn joins(desk: &mut Desk, now: u64) -> u64 {
    match desk.circuit.admit(&mut desk.node, at(now)) {
        Begun::Join(ticket) => ticket,
        other => panic!("joins, not {other:?}"),
    }
}

#[test]
fn whoever_comes_meanwhile_gets_the_same_answer() {
    for (fields, others) in [(CLOSED_AT_42, Others::Share), (OPEN, Others::Share), (FORCED_OPEN, Others::Share)] {
        let mut desk = desk(&[]);
        let ticket = desk.asks(100);
        desk.sends();
        assert_eq!([joins(&mut desk, 100), joins(&mut desk, 101)], [ticket; 2]);
        assert!(desk.is_quiet());
        assert_eq!(desk.reads(102, ticket, fields).others, others);
    }
}

#[test]
fn the_next_flight_begins_when_one_has_landed() {
    let mut desk = desk(&[]);
    let first = desk.asks(100);
    desk.reads(101, first, CLOSED_AT_42);
    assert_ne!(desk.asks(101), first);
}

#[test]
fn a_probe_is_nobody_else_s_and_its_refusal_everybody_s() {
    let mut desk = desk(&[]);
    let ask = desk.asked_on();
    assert_eq!(joins(&mut desk, 101), ask.ticket, "its second leg is the same flight");
    let step = desk.replies(102, ask.ticket, &long([2, 2, 0, 7, 0]));
    assert_eq!((granted(&step).kind, step.others), (PermitKind::Probe, Others::AskAgain));
    let ask = desk.asked_on();
    let step = desk.replies(102, ask.ticket, &long([0, 2, 0, 7, 30]));
    assert_eq!((step.answer, step.others), (refused(State::HalfOpen, Some(30)), Others::Share));
}

#[test]
fn no_flight_is_joined_that_left_before_what_this_process_told_last() {
    let mut desk = desk(&[]);
    let permit = desk.admitted(90);
    let early = desk.asks(100);
    desk.sends();
    let told = desk.tells(101, Some(permit), Outcome::Failure);
    let between = desk.asks(102);
    assert_ne!(between, early);
    desk.sends();
    desk.replies(103, told.ticket, &long([1, 0, 0, 42, 0]));
    assert_ne!(desk.asks(104), between, "it may have overtaken what was told");
    desk.sends();
    desk.controls(105, Control::Reset);
    desk.asks(106);
}

#[test]
fn an_early_flight_that_lands_ends_no_later_one() {
    let mut desk = desk(&[]);
    let permit = desk.admitted(90);
    let early = desk.asks(100);
    desk.sends();
    desk.tells(101, Some(permit), Outcome::Failure);
    let later = desk.asks(102);
    desk.reads(103, early, CLOSED_AT_42);
    assert_eq!(joins(&mut desk, 104), later);
}

#[test]
fn nobody_waits_again_for_a_store_that_did_not_answer() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    desk.sends();
    joins(&mut desk, 150);
    assert_eq!(desk.is_late(200, ticket).others, Others::GoOn);
    let ticket = desk.asks(200);
    assert_eq!(desk.fails(201, ticket, "Connection is closed.").others, Others::GoOn);
    assert_eq!(granted(&desk.circuit.admit_unasked(at(201))).kind, PermitKind::LocalClosed);
}

#[test]
fn those_who_joined_ask_again_where_the_leader_has_gone_and_nobody_blames_the_store() {
    let mut desk = desk(&[]);
    for _ in 0..5 {
        let ticket = desk.asks(100);
        desk.sends();
        joins(&mut desk, 100);
        let step = desk.circuit.on_gone(at(101), ticket);
        assert_eq!((step.answer, step.others), (None, Others::AskAgain));
        assert_eq!(desk.circuit.on_gone(at(101), ticket), Step::default());
        assert_eq!(desk.is_late(200, ticket), Step::default());
        assert_eq!(desk.fails(200, ticket, "the connection is closed"), Step::default());
    }
    assert!(desk.node.is_asked());
    assert_eq!(desk.circuit.in_flight(), 0);
}

#[test]
fn a_slot_that_a_leader_is_given_after_he_has_gone_is_given_back() {
    let mut desk = desk(&[]);
    let ask = desk.asked_on();
    desk.circuit.on_gone(at(102), ask.ticket);
    assert_eq!(desk.replies(103, ask.ticket, &long([2, 2, 0, 7, 0])).answer, None);
    assert_eq!(desk.sends().command, Command::Run(Script::Release));
}

#[test]
fn an_outcome_whose_caller_has_gone_is_seen_to_by_this_process() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    let permit = desk.admitted(90);
    let told = desk.tells(100, Some(permit), Outcome::Failure);
    assert!(desk.circuit.on_gone(at(101), told.ticket).counted);
    assert!(matches!(desk.knows(102).answer, Some(Answer::Refused { .. })), "it stands until the store says more");
}
