//! What need not be asked (DESIGN 5.2).

use alloc::format;

use super::*;

#[test]
fn an_open_circuit_refuses_without_asking_for_a_second() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    desk.sends();
    assert_eq!(desk.reads(110, ticket, OPEN).answer, refused(State::Open, Some(29_940)));
    assert_eq!(desk.knows(1_099).answer, refused(State::Open, Some(28_951)));
    assert!(desk.is_quiet());
    let ticket = desk.asks(1_100);
    assert_eq!(desk.reads(1_101, ticket, OPEN).answer, refused(State::Open, Some(28_949)));
    assert_eq!(desk.knows(2_099).answer, refused(State::Open, Some(27_951)));
}

#[test]
fn but_never_past_the_reopening() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(29_800);
    desk.reads(29_810, ticket, OPEN);
    assert_eq!(desk.knows(30_049).answer, refused(State::Open, Some(1)));
    desk.asks(30_050);
}

#[test]
fn a_cache_of_no_length_asks_each_time() {
    let mut desk = desk(&[("open_cache_ms", 0.into())]);
    let ticket = desk.asks(100);
    desk.reads(100, ticket, OPEN);
    desk.asks(100);
}

#[test]
fn the_trip_that_this_process_made_is_known_at_once() {
    let mut desk = desk(&[]);
    let permit = desk.admitted(100);
    let ask = desk.tells(110, Some(permit), Outcome::Failure);
    desk.replies(112, ask.ticket, &[1, 1, 0, 110, 30_000, 0, 0, 5, 30_000, 0]);
    assert_eq!(desk.knows(113).answer, refused(State::Open, Some(29_997)));
}

#[test]
fn what_an_operator_forces_open_is_known_too() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    desk.reads(101, ticket, FORCED_OPEN);
    assert_eq!(desk.knows(1_099).answer, refused(State::Open, None));
    desk.asks(1_100);
}

#[test]
fn half_open_refusals_are_asked_for_each_time() {
    let mut desk = desk(&[]);
    let ask = desk.asked_on();
    desk.replies(102, ask.ticket, &long([0, 2, 0, 7, 30]));
    desk.asks(103);
}

#[test]
fn a_closed_circuit_admits_without_asking_for_as_long_as_was_allowed() {
    let mut desk = desk(&[("closed_cache_ms", 200.into())]);
    assert_eq!(desk.circuit.free_until(), None);
    let permit = desk.admitted(100);
    assert_eq!(desk.circuit.free_until(), Some((permit, ms(100), ms(300))));
    assert_eq!(desk.knows(299).answer, Some(Answer::Granted(permit)));
    desk.asks(300);
}

#[test]
fn nobody_who_did_not_allow_it_is_admitted_unasked() {
    let mut desk = desk(&[]);
    desk.admitted(100);
    assert_eq!(desk.circuit.free_until(), None);
    desk.asks(100);
}

#[test]
fn what_a_settlement_hears_corrects_the_cache() {
    let mut desk = desk(&[("closed_cache_ms", 1_000.into())]);
    let permit = desk.admitted(100);
    let ask = desk.tells(110, Some(permit), Outcome::Failure);
    desk.replies(111, ask.ticket, &long([0, 1, 0, 105, 400]));
    assert_eq!(desk.circuit.free_until(), None);
    assert_eq!(desk.knows(112).answer, refused(State::Open, Some(398)));
}

#[test]
fn an_older_answer_that_comes_later_is_not_believed() {
    let mut desk = desk(&[("closed_cache_ms", 1_000.into())]);
    let permit = SharedPermit { kind: PermitKind::Closed, epoch: 0, id: id(0) };
    let slow = desk.asks(100);
    desk.sends();
    let ask = desk.tells(101, Some(permit), Outcome::Failure);
    desk.replies(102, ask.ticket, &[1, 1, 0, 101, 30_000, 0, 0, 5, 30_000, 0]);
    let answer = desk.reads(103, slow, [None; 5]).answer;
    assert!(matches!(answer, Some(Answer::Granted(_))), "it was asked before the trip, and answered so");
    assert_eq!(desk.knows(104).answer, refused(State::Open, Some(29_997)));
}

#[test]
fn what_others_announce_is_known_at_once() {
    let mut desk = desk(&[("closed_cache_ms", 1_000.into())]);
    desk.admitted(100);
    let message = |head: &str, nonce: u64| format!("{head} {nonce:016x} billing\nhost-2");
    let mut hear = |text: &str, now| {
        let heard = Announcement::parse(text).unwrap();
        desk.circuit.on_event(&desk.node, at(now), &heard)
    };
    let trip = message("1 0 1 0 150 150 5 30000", 0xcd);
    assert!(hear(&trip, 160));
    assert!(!hear(&trip, 161), "said twice");
    assert!(!hear(&message("1 2 0 3 149 149 0 -1", 0xcd), 162), "late");
    assert!(!hear(&message("1 1 2 1 170 170 0 -1", NONCE), 171), "one's own");
    assert_eq!(desk.knows(172).answer, refused(State::Open, Some(29_978)));
}

#[test]
fn what_an_operator_does_elsewhere_is_asked_for() {
    let mut desk = desk(&[("closed_cache_ms", 1_000.into())]);
    desk.admitted(100);
    let heard = Announcement::parse("1 0 1 4 150 150 0 -1 00000000000000cd billing\nhost-2").unwrap();
    assert!(desk.circuit.on_event(&desk.node, at(160), &heard));
    let ticket = desk.asks(161);
    assert_eq!(desk.reads(162, ticket, FORCED_OPEN).answer, refused(State::Open, None));
}

#[test]
fn an_announcement_is_as_old_as_it_is_late() {
    let mut desk = desk(&[("closed_cache_ms", 1_000.into())]);
    let heard = Announcement::parse("1 2 0 3 150 150 0 -1 00000000000000cd billing\nhost-2").unwrap();
    assert!(desk.circuit.on_event(&desk.node, at(1_140), &heard));
    assert_eq!(
        desk.circuit.free_until().map(|(permit, from, until)| (permit.epoch, from, until)),
        Some((150, ms(150), ms(1_150)))
    );
    desk.knows(1_149);
    desk.asks(1_150);
}

#[test]
fn an_announcement_of_an_unknown_age_makes_the_next_call_ask() {
    let mut desk = desk(&[]);
    let heard = Announcement::parse("1 0 1 0 150 150 5 30000 00000000000000cd billing\nhost-2").unwrap();
    assert!(desk.circuit.on_event(&desk.node, Times::host(ms(160)), &heard));
    let begun = desk.circuit.admit(&mut desk.node, Times::host(ms(161)));
    assert!(matches!(begun, Begun::Wait(_)));
}
