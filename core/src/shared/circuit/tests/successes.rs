//! Successes that have to be told, and that nobody waits for (DESIGN 5.1).

use super::*;

#[test]
fn they_are_never_awaited_and_one_command_is_under_way() {
    for trip_on in ["consecutive", "rate"] {
        let mut desk = desk(&[("trip_on", trip_on.into())]);
        assert!(!desk.circuit.success_is_free());
        let permit = desk.admitted(100);
        assert_eq!(desk.notes(110, permit, Outcome::Success).0, Settlement::Applied);
        let first = desk.sends();
        assert_eq!(first.command, Command::Run(Script::RecordSuccess));
        assert_eq!((first.args[2].as_str(), first.args[7].as_str()), ("42", "1"));
        for _ in 0..3 {
            desk.notes(111, permit, Outcome::Success);
        }
        assert!(desk.is_quiet());
        assert_eq!(desk.replies(112, first.ticket, &long([1, 0, 0, 42, 0])), Step::default());
        let next = desk.sends();
        assert_eq!((next.args[0].as_str(), next.args[7].as_str()), ("112", "3"));
        desk.replies(113, next.ticket, &long([1, 0, 0, 42, 0]));
        assert!(desk.is_quiet());
        assert_eq!(desk.circuit.in_flight(), 0);
    }
}

#[test]
fn a_failure_takes_along_what_came_before_it() {
    let mut desk = desk(&[("trip_on", "rate".into())]);
    let permit = desk.admitted(100);
    desk.notes(110, permit, Outcome::Success);
    desk.sends();
    desk.notes(111, permit, Outcome::Success);
    desk.notes(111, permit, Outcome::Success);
    let ask = desk.tells(112, Some(permit), Outcome::Failure);
    assert_eq!((ask.command, ask.args[7].as_str()), (Command::Run(Script::RecordFailure), "2"));
}

#[test]
fn one_that_is_lost_does_not_hold_up_the_next() {
    let mut desk = desk(&[("trip_on", "rate".into())]);
    let permit = desk.admitted(100);
    desk.notes(110, permit, Outcome::Success);
    let lost = desk.sends();
    assert_eq!(desk.is_late(210, lost.ticket).answer, None);
    desk.notes(211, permit, Outcome::Success);
    let next = desk.sends();
    assert_eq!(desk.fails(212, next.ticket, "NOSCRIPT"), Step::default());
    assert!(desk.sends().by_text);
    desk.fails(213, next.ticket, "Connection is closed.");
    desk.notes(214, permit, Outcome::Success);
    desk.sends();
}

#[test]
fn a_store_that_is_away_is_told_nothing_later() {
    let mut desk = desk(&[("trip_on", "rate".into())]);
    let permit = desk.admitted(100);
    for now in [110, 111, 112] {
        desk.notes(now, permit, Outcome::Success);
        let ask = desk.sends();
        desk.fails(now, ask.ticket, "READONLY You can't write against a read only replica.");
    }
    desk.notes(113, permit, Outcome::Success);
    assert!(desk.is_quiet());
    desk.notes(1_112, permit, Outcome::Success);
    let probe = desk.sends();
    assert_eq!(probe.command, Command::TryWrite);
    desk.replies(1_113, probe.ticket, &[0]);
    desk.notes(1_114, permit, Outcome::Success);
    assert_eq!(desk.sends().args[7], "1");
}
