//! The store may fail (DESIGN 5.4).

use super::*;
use crate::shared::Whose;

const LOST: &str = "Connection is closed.";
const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

/// Three calls that the store does not answer; each is admitted by this process's own breaker.
fn outage(desk: &mut Desk, from: u64) {
    for now in [from, from + 1, from + 2] {
        let ticket = desk.asks(now);
        desk.sends();
        let step = desk.fails(now, ticket, LOST);
        assert!(step.answer.is_some());
        assert_eq!(step.health.is_some(), now == from + 2);
    }
    assert!(!desk.node.is_asked());
}

/// A second later the store answers again.
fn restored(desk: &mut Desk, now: u64) {
    desk.knows(now);
    let probe = desk.sends();
    assert_eq!(probe.command, Command::Run(Script::Admit));
    let step = desk.reads(now, probe.ticket, CLOSED_AT_42);
    assert_eq!((step.answer, step.health), (None, Some(Health::Restored(Whose::Node))));
}

#[test]
fn what_the_policy_says_decides() {
    let answer = |word: &'static str| {
        let mut desk = desk(&[("on_store_failure", word.into())]);
        let ticket = desk.asks(100);
        (desk.fails(101, ticket, "LOADING").answer.unwrap(), desk)
    };
    assert_eq!(answer("fail-closed").0, Answer::Unavailable);
    let (Answer::Granted(permit), mut open) = answer("fail-open") else { panic!("admitted") };
    assert_eq!(permit.kind, PermitKind::Unasked);
    assert_eq!(open.notes(102, permit, Outcome::Failure).0, Settlement::Stale);
    let (Answer::Granted(permit), mut local) = answer("local") else { panic!("admitted") };
    assert_eq!(permit.kind, PermitKind::LocalClosed);
    assert_eq!(local.notes(102, permit, Outcome::Failure).0, Settlement::Applied);
}

#[test]
fn after_three_failures_nobody_waits_any_more_and_after_one_success_everybody_asks() {
    let mut desk = desk(&[]);
    outage(&mut desk, 100);
    assert_eq!(granted(&desk.knows(103)).kind, PermitKind::LocalClosed);
    assert!(desk.is_quiet());
    desk.knows(1_101);
    assert!(desk.is_quiet());
    restored(&mut desk, 1_102);
    desk.asks(1_103);
}

#[test]
fn a_time_that_another_server_of_the_cluster_gives_is_no_answer_of_this_one() {
    let mut desk = desk(&[]);
    desk.node.clock.heard(ms(0), ms(0), &[600, 0]);
    // Half a minute apart, so that each call asks for the time as well.
    for (now, seconds, is_third) in [(30_000, 630, false), (60_000, 660, false), (90_000, 690, true)] {
        let host = |later: u64| Times::host(ms(now + later));
        let Begun::Wait(read) = desk.circuit.admit(&mut desk.node, host(0)) else { panic!("asked") };
        let asks = desk.sends_all();
        assert_eq!(
            asks.iter().map(|ask| ask.command).collect::<Vec<_>>(),
            [Command::Time, Command::Run(Script::Admit)]
        );
        let step = desk.circuit.on_reply(&mut desk.node, host(1), asks[0].ticket, &[seconds, 0]);
        assert_eq!(step, Step::default());
        let step = desk.circuit.on_deadline(&mut desk.node, host(100), read);
        assert_eq!(step.health.is_some(), is_third);
    }
}

#[test]
fn the_store_s_guard_is_told_of_once() {
    let mut desk = desk(&[]);
    outage(&mut desk, 100);
    for now in [1_102, 2_202, 3_302] {
        desk.knows(now);
        let probe = desk.sends();
        assert_eq!(desk.is_late(now + 100, probe.ticket), Step::default());
        desk.reads(now + 900, probe.ticket, CLOSED_AT_42);
    }
    assert!(!desk.node.is_asked(), "answers after the deadline are none");
    restored(&mut desk, 4_402);
}

#[test]
fn one_node_s_outage_is_known_to_every_circuit_there() {
    let mut one = desk(&[]);
    outage(&mut one, 100);
    let mut other = Desk { node: one.node, ..desk(&[]) };
    assert_eq!(granted(&other.knows(104)).kind, PermitKind::LocalClosed);
}

#[test]
fn what_breaks_for_one_circuit_breaks_for_it_alone() {
    let mut desk = desk(&[]);
    for now in [100, 101, 102] {
        let ticket = desk.asks(now);
        desk.sends();
        let step = desk.fails(now, ticket, "WRONGTYPE Operation against a key holding the wrong kind of value");
        assert_eq!(step.health, (now == 102).then_some(Health::Degraded(Whose::Circuit)));
    }
    assert!(desk.node.is_asked());
    assert_eq!(granted(&desk.knows(103)).kind, PermitKind::LocalClosed);
    desk.knows(1_102);
    let probe = desk.sends();
    let step = desk.reads(1_103, probe.ticket, CLOSED_AT_42);
    assert_eq!(step.health, Some(Health::Restored(Whose::Circuit)));
    desk.asks(1_104);
}

#[test]
fn a_replica_given_by_mistake_is_read_and_not_written_to() {
    let mut desk = desk(&[("failure_threshold", 4.into())]);
    for now in [100, 101, 102] {
        let permit = desk.admitted(now);
        let ask = desk.tells(now, Some(permit), Outcome::Failure);
        let step = desk.fails(now, ask.ticket, "READONLY You can't write against a read only replica.");
        assert_eq!((step.answer, step.counted), (Some(Answer::Settled(Settlement::Applied)), true));
    }
    let permit = desk.admitted(103);
    let (status, step) = desk.notes(104, permit, Outcome::Failure);
    assert!(desk.is_quiet());
    assert_eq!(status, Settlement::Applied);
    let transition = step.transition.expect("the fourth failure trips here");
    assert_eq!((transition.to, transition.reason.as_str(), transition.failures), (State::Open, "threshold", 4));
    assert_eq!(desk.knows(105).answer, refused(State::Open, Some(29_999)), "whatever the store says");
    let probing = desk.settles(1_102, Some(permit), Outcome::Failure);
    assert!(matches!(probing, Begun::Answered(_)));
    assert_eq!(desk.sends().command, Command::TryWrite);
}

#[test]
fn failures_during_an_outage_trip_this_process_and_its_own_probe_closes_it() {
    let mut desk = desk(&[("failure_threshold", 2.into())]);
    outage(&mut desk, 100);
    let permits = [granted(&desk.knows(103)), granted(&desk.knows(103))];
    assert_eq!(desk.notes(104, permits[0], Outcome::Failure).1.transition, None);
    assert!(desk.notes(104, permits[1], Outcome::Failure).1.transition.is_some());
    assert_eq!(desk.knows(105).answer, refused(State::Open, Some(29_999)));
    // The store is back, and says that all is well: what this process saw holds on.
    restored(&mut desk, 1_102);
    assert_eq!(desk.knows(1_103).answer, refused(State::Open, Some(29_001)));
    assert!(desk.is_quiet(), "nobody is asked for a call that is refused anyway");
    assert_eq!(desk.knows(30_103).answer, refused(State::Open, Some(1)));
    let ticket = desk.asks(30_104);
    desk.sends();
    assert_eq!(granted(&desk.reads(30_105, ticket, CLOSED_AT_42)).kind, PermitKind::LocalProbe);
}

/// Three outcomes that the store does not take, of calls that it admitted; and then it is not told any more.
fn read_only(desk: &mut Desk, from: u64) -> SharedPermit {
    let permit = desk.admitted(from);
    for now in [from, from + 1, from + 2] {
        let ask = desk.tells(now, Some(permit), Outcome::Failure);
        desk.fails(now, ask.ticket, READ_ONLY);
    }
    assert!(!desk.node.is_asked());
    permit
}

#[test]
fn a_call_that_is_refused_here_lets_the_guards_look_too() {
    let mut desk = desk(&[("failure_threshold", 3.into())]);
    read_only(&mut desk, 100);
    assert!(matches!(desk.knows(1_101).answer, Some(Answer::Refused { .. })));
    assert!(desk.is_quiet());
    desk.knows(1_102);
    let probe = desk.sends();
    assert_eq!(probe.command, Command::TryWrite);
    desk.knows(1_103);
    assert!(desk.is_quiet());
    assert_eq!(desk.replies(1_104, probe.ticket, &[0]).health, Some(Health::Restored(Whose::Node)));
    assert!(matches!(desk.knows(1_105).answer, Some(Answer::Refused { .. })), "what it saw holds on");
}

#[test]
fn and_so_does_one_that_has_nothing_to_write() {
    let mut desk = desk(&[]);
    read_only(&mut desk, 100);
    let ticket = desk.asks(1_102);
    let asks = desk.sends_all();
    assert_eq!(
        asks.iter().map(|ask| ask.command).collect::<Vec<_>>(),
        [Command::TryWrite, Command::Run(Script::Admit)]
    );
    assert_eq!(asks[1].ticket, ticket);
    assert_eq!(desk.replies(1_103, asks[0].ticket, &[0]).health, Some(Health::Restored(Whose::Node)));
}

#[test]
fn a_slot_whose_grant_was_lost_is_given_back_as_soon_as_the_store_takes_it() {
    let mut desk = desk(&[]);
    let asked = desk.asked_on();
    let permit = SharedPermit { kind: PermitKind::Closed, epoch: 42, id: id(0) };
    for now in [103, 104, 105] {
        let told = desk.tells(now, Some(permit), Outcome::Failure);
        desk.fails(now, told.ticket, READ_ONLY);
    }
    desk.fails(106, asked.ticket, LOST);
    assert!(desk.is_quiet(), "it takes nothing now");
    desk.asks(1_105);
    let [probe, read] = &desk.sends_all()[..] else { panic!("both") };
    assert_eq!(probe.command, Command::TryWrite);
    desk.replies(1_106, probe.ticket, &[0]);
    let back = desk.sends();
    assert_eq!((back.command, &back.args[1]), (Command::Run(Script::Release), &asked.args[1]));
    desk.replies(1_107, back.ticket, &long([1, 2, 0, 7, 0]));
    desk.reads(1_107, read.ticket, CLOSED_AT_42);
    assert_eq!(desk.circuit.in_flight(), 0);
}

#[test]
fn and_as_soon_as_another_circuit_has_found_out_that_it_does() {
    let mut desk = desk(&[]);
    let asked = desk.asked_on();
    let permit = SharedPermit { kind: PermitKind::Closed, epoch: 42, id: id(0) };
    for now in [103, 104, 105] {
        let told = desk.tells(now, Some(permit), Outcome::Failure);
        desk.fails(now, told.ticket, READ_ONLY);
    }
    desk.fails(106, asked.ticket, LOST);
    desk.node.replaced();
    let told = desk.circuit.settle(&mut desk.node, at(107), Some(permit), Outcome::Failure);
    assert!(matches!(told, Begun::Wait(_)));
    let commands: Vec<_> = desk.sends_all().iter().map(|ask| ask.command).collect();
    assert_eq!(commands, [Command::Run(Script::Release), Command::Run(Script::RecordFailure)]);
}

#[test]
fn the_slot_of_a_probe_whose_success_was_lost_is_given_back_and_that_of_a_failure_times_out() {
    let lost = |outcome| {
        let mut desk = desk(&[]);
        let permit = desk.probe();
        let told = desk.tells(110, Some(permit), outcome);
        desk.fails(111, told.ticket, LOST);
        assert!(desk.is_quiet(), "not at once");
        let told_of = told.args[1].clone();
        desk.circuit.admit(&mut desk.node, at(112));
        let back: Vec<_> = desk.sends_all().into_iter().filter(|ask| ask.args.get(1) == Some(&told_of)).collect();
        back.iter().map(|ask| ask.command).collect::<Vec<_>>()
    };
    assert_eq!(lost(Outcome::Success), [Command::Run(Script::Release)]);
    assert_eq!(lost(Outcome::Release), [Command::Run(Script::Release)]);
    assert_eq!(lost(Outcome::Failure), [], "the dependency fails: so long nobody need try again");
}

/// What this process saw for itself keeps it open until 30 201, whatever the store says.
fn stands(desk: &mut Desk) {
    let permit = desk.admitted(100);
    let ask = desk.tells(101, Some(permit), Outcome::Failure);
    assert!(desk.is_late(201, ask.ticket).transition.is_some());
}

#[test]
fn an_operator_who_holds_the_circuit_open_ends_nothing_that_this_process_saw() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    stands(&mut desk);
    let ticket = desk.asks(30_201);
    desk.sends();
    assert_eq!(desk.reads(30_202, ticket, FORCED_OPEN).answer, refused(State::Open, None));
    // The store has forgotten it: that is no later closed period.
    let ticket = desk.asks(31_202);
    desk.sends();
    assert_eq!(granted(&desk.reads(31_203, ticket, [None; 5])).kind, PermitKind::LocalProbe);
}

#[test]
fn and_his_reset_does() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    stands(&mut desk);
    let ticket = desk.asks(30_201);
    desk.sends();
    desk.reads(30_202, ticket, FORCED_OPEN);
    let ticket = desk.asks(31_202);
    desk.sends();
    let closed_later = [None, None, Some("51"), None, None];
    assert_eq!(granted(&desk.reads(31_203, ticket, closed_later)).kind, PermitKind::Closed);
    desk.admitted(31_204);
}

#[test]
fn what_he_holds_open_is_kept_through_an_outage_by_a_process_that_had_tripped_too() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    stands(&mut desk);
    let ticket = desk.asks(30_201);
    desk.sends();
    desk.reads(30_202, ticket, FORCED_OPEN);
    let ticket = desk.asks(31_202);
    desk.sends();
    assert_eq!(desk.fails(31_203, ticket, LOST).answer, refused(State::Open, None));
}

#[test]
fn one_who_switches_the_circuit_off_ends_it() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    stands(&mut desk);
    let ticket = desk.asks(30_201);
    desk.sends();
    let disabled = [None, Some("disabled"), Some("50"), None, None];
    assert_eq!(granted(&desk.reads(30_202, ticket, disabled)).kind, PermitKind::Bypass);
    let ticket = desk.asks(30_203);
    desk.sends();
    assert_eq!(granted(&desk.fails(30_204, ticket, LOST)).kind, PermitKind::Bypass, "also while the store is away");
}

#[test]
fn a_process_that_tripped_before_it_heard_of_a_period_takes_a_probe_of_its_own() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    let ticket = desk.asks(100);
    desk.sends();
    let permit = granted(&desk.fails(101, ticket, LOST));
    assert!(desk.notes(102, permit, Outcome::Failure).1.transition.is_some());
    // Whether that period is later than what it saw nobody can tell.
    let ticket = desk.asks(30_102);
    desk.sends();
    assert_eq!(granted(&desk.reads(30_103, ticket, CLOSED_AT_42)).kind, PermitKind::LocalProbe);
}

#[test]
fn a_tripped_process_asks_the_store_before_its_own_probe() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    let permit = desk.admitted(100);
    let ask = desk.tells(101, Some(permit), Outcome::Failure);
    assert!(desk.is_late(201, ask.ticket).transition.is_some());
    assert_eq!(desk.knows(202).answer, refused(State::Open, Some(29_899)));
    assert_eq!(desk.circuit.free_until(), None);
    let ticket = desk.asks(30_101);
    desk.sends();
    let permit = granted(&desk.reads(30_102, ticket, CLOSED_AT_42));
    assert_eq!(permit.kind, PermitKind::LocalProbe);
    assert!(matches!(desk.knows(30_103).answer, Some(Answer::Refused { state: State::HalfOpen, .. })));
    let (status, step) = desk.notes(30_104, permit, Outcome::Success);
    assert_eq!((status, step.transition.map(|t| t.to)), (Settlement::Applied, Some(State::Closed)));
    assert_eq!(desk.admitted(30_105).kind, PermitKind::Closed);
}

#[test]
fn a_tripped_process_follows_a_fleet_that_has_recovered() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    let permit = desk.admitted(100);
    let ask = desk.tells(101, Some(permit), Outcome::Failure);
    desk.is_late(201, ask.ticket);
    // It arrived after all, and the fleet tripped, probed and closed meanwhile.
    desk.replies(300, ask.ticket, &long([0, 0, 0, 250, 0]));
    assert_eq!(desk.admitted(301).kind, PermitKind::Closed);
}

#[test]
fn a_known_opening_is_kept_through_an_outage() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    desk.sends();
    desk.reads(100, ticket, OPEN);
    outage_while_open(&mut desk, 1_100);
    assert_eq!(desk.knows(2_000).answer, refused(State::Open, Some(28_050)));
    let step = desk.knows(30_050);
    assert_eq!(granted(&step).kind, PermitKind::LocalProbe);
    assert_eq!(step.transition.unwrap().reason.as_str(), "cooldown");
    assert!(matches!(desk.knows(30_051).answer, Some(Answer::Refused { state: State::HalfOpen, .. })));
}

/// Two failures that the store takes without tripping: this process has seen enough, its fleet has not.
fn outvoted(desk: &mut Desk) {
    for now in [100, 101] {
        let permit = desk.admitted(now);
        let ask = desk.tells(now, Some(permit), Outcome::Failure);
        desk.replies(now, ask.ticket, &long([1, 0, 0, 42, 0]));
    }
}

fn outage_while_open(desk: &mut Desk, from: u64) {
    for now in [from, from + 1, from + 2] {
        let ticket = desk.asks(now);
        desk.sends();
        let step = desk.fails(now, ticket, LOST);
        assert_eq!(step.answer, refused(State::Open, Some(30_050 - now)));
    }
}

#[test]
fn what_an_operator_forced_is_kept_through_an_outage() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    desk.sends();
    desk.reads(100, ticket, FORCED_OPEN);
    let ticket = desk.asks(1_100);
    assert_eq!(desk.fails(1_101, ticket, LOST).answer, refused(State::Open, None));
}

#[test]
fn failures_that_the_store_took_trip_the_fleet_and_not_this_process() {
    let mut desk = desk(&[("failure_threshold", 2.into())]);
    for now in [100, 101] {
        let permit = desk.admitted(now);
        let ask = desk.tells(now, Some(permit), Outcome::Failure);
        let step = desk.replies(now, ask.ticket, &long([1, 0, 0, 42, 0]));
        assert_eq!(step.transition, None, "this process's own trip is nobody's business");
    }
    assert_eq!(desk.admitted(102).kind, PermitKind::Closed, "the store decides");
    let ticket = desk.asks(103);
    let step = desk.fails(103, ticket, LOST);
    assert_eq!(step.answer, refused(State::Open, Some(29_998)), "but it was warm");
}

#[test]
fn with_a_quorum_an_instance_opens_alone() {
    let mut desk = desk(&[("failure_threshold", 2.into()), ("quorum", 2.into())]);
    let mut step = Step::default();
    for now in [100, 101] {
        let permit = desk.admitted(now);
        let ask = desk.tells(now, Some(permit), Outcome::Failure);
        step = desk.replies(now, ask.ticket, &long([1, 0, 0, 42, 0]));
    }
    assert_eq!(step.transition.map(|t| (t.to, t.failures)), Some((State::Open, 2)));
    assert_eq!(desk.knows(102).answer, refused(State::Open, Some(29_999)));
}

#[test]
fn a_probe_that_fails_untold_is_not_tried_again_at_once() {
    let mut desk = desk(&[]);
    let permit = desk.probe();
    let ask = desk.tells(110, Some(permit), Outcome::Failure);
    let step = desk.fails(111, ask.ticket, LOST);
    let transition = step.transition.unwrap();
    assert_eq!((transition.from, transition.to), (State::HalfOpen, State::Open));
    assert_eq!((transition.reason.as_str(), transition.open_ms), ("probe-failed", Some(30_000)));
    assert_eq!(desk.knows(112).answer, refused(State::Open, Some(29_998)));
}

#[test]
fn a_store_that_hangs_costs_a_deadline_three_times_and_then_nothing() {
    let mut desk = desk(&[]);
    for now in [100, 200, 300] {
        let ticket = desk.asks(now);
        desk.sends();
        assert_eq!(granted(&desk.is_late(now + 100, ticket)).kind, PermitKind::LocalClosed);
    }
    desk.knows(401);
    assert!(desk.is_quiet());
    assert_eq!(desk.circuit.in_flight(), 3, "what may still be answered");
}

#[test]
fn questions_are_answered_by_this_process_then() {
    let mut desk = desk(&[]);
    outage(&mut desk, 100);
    let Begun::Answered(step) = desk.circuit.get_state(&mut desk.node, at(104)) else { panic!("known") };
    assert!(matches!(step.answer, Some(Answer::Snapshot(snapshot)) if snapshot.state == State::Closed));
    let ask = desk.controls(105, Control::Reset);
    assert_eq!(desk.is_late(205, ask.ticket).answer, Some(Answer::Unavailable), "that is meant for the fleet");
}

#[test]
fn a_store_that_forgot_everything_resets_no_process() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    let permit = desk.admitted(100);
    let ask = desk.tells(101, Some(permit), Outcome::Failure);
    desk.fails(102, ask.ticket, LOST);
    let ticket = desk.asks(30_101);
    desk.sends();
    assert_eq!(granted(&desk.reads(30_101, ticket, [None; 5])).kind, PermitKind::LocalProbe, "an earlier epoch");
}

#[test]
fn settling_without_a_permit_goes_by_this_process_s_own_state_then() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(100);
    desk.sends();
    desk.reads(100, ticket, OPEN);
    outage_while_open(&mut desk, 1_100);
    assert_eq!(granted(&desk.knows(30_050)).kind, PermitKind::LocalProbe);
    while desk.circuit.next_ask().is_some() {}
    let ask = desk.tells(30_051, None, Outcome::Success);
    let step = desk.fails(30_052, ask.ticket, LOST);
    assert_eq!(step.answer, Some(Answer::Settled(Settlement::Applied)));
    assert_eq!(step.transition.map(|t| t.to), Some(State::Closed));
    assert_eq!(granted(&desk.knows(30_053)).kind, PermitKind::LocalClosed);
}

#[test]
fn a_tripped_process_takes_no_slot_that_it_had_asked_for_before() {
    let mut desk = desk(&[]);
    let permit = desk.probe();
    let asked = desk.asked_on();
    let told = desk.tells(110, Some(permit), Outcome::Failure);
    assert!(desk.is_late(210, told.ticket).transition.is_some());
    let step = desk.replies(211, asked.ticket, &long([2, 2, 0, 7, 0]));
    assert_eq!(step.answer, refused(State::Open, Some(29_899)));
    let back = desk.sends();
    assert_eq!((back.command, &back.args[1]), (Command::Run(Script::Release), &asked.args[1]));
}

#[test]
fn nor_does_it_ask_for_one() {
    let mut desk = desk(&[]);
    let permit = desk.probe();
    let ticket = desk.asks(105);
    desk.sends();
    let told = desk.tells(110, Some(permit), Outcome::Failure);
    desk.fails(111, told.ticket, LOST);
    assert_eq!(desk.reads(112, ticket, HALF_OPEN).answer, refused(State::Open, Some(29_998)));
    assert!(desk.is_quiet());
}

#[test]
fn a_slot_that_a_hanging_store_grants_is_given_back_though_nobody_asks_it_any_more() {
    let mut desk = desk(&[]);
    let asked = desk.asked_on();
    desk.is_late(200, asked.ticket);
    let permit = SharedPermit { kind: PermitKind::Probe, epoch: 7, id: id(9) };
    for now in [201, 202] {
        let Begun::Wait(told) = desk.settles(now, Some(permit), Outcome::Success) else { panic!("told") };
        desk.sends_all();
        desk.is_late(now + 100, told);
    }
    assert!(!desk.node.is_asked());
    desk.replies(303, asked.ticket, &long([2, 2, 0, 7, 0]));
    assert_eq!(desk.sends().command, Command::Run(Script::Release));
}

#[test]
fn a_process_that_mirrored_a_forgotten_opening_counts_again() {
    let mut desk = desk(&[("failure_threshold", 1.into())]);
    let ticket = desk.asks(100);
    desk.sends();
    assert_eq!(desk.reads(100, ticket, OPEN).answer, refused(State::Open, Some(29_950)));
    let ticket = desk.asks(1_100);
    desk.sends();
    let permit = granted(&desk.reads(1_100, ticket, [None; 5]));
    let ask = desk.tells(1_101, Some(permit), Outcome::Failure);
    assert!(desk.is_late(1_201, ask.ticket).transition.is_some(), "nobody else has this failure");
    assert_eq!(desk.knows(1_202).answer, refused(State::Open, Some(29_899)));
}

#[test]
fn a_process_that_its_fleet_outvoted_stands_as_soon_as_the_store_takes_no_more() {
    let mut desk = desk(&[("failure_threshold", 2.into())]);
    outvoted(&mut desk);
    let permit = desk.admitted(102);
    let ask = desk.tells(103, Some(permit), Outcome::Failure);
    let step = desk.fails(104, ask.ticket, "NOPERM this user has no permissions to run the 'hset' command");
    let transition = step.transition.expect("this process has seen enough");
    assert_eq!((transition.from, transition.to, transition.reason.as_str()), (State::Closed, State::Open, "threshold"));
    assert_eq!(desk.knows(105).answer, refused(State::Open, Some(29_998)));
}

#[test]
fn what_it_saw_long_ago_counts_no_more_where_the_store_says_closed() {
    let mut desk = desk(&[("failure_threshold", 2.into())]);
    outvoted(&mut desk);
    let permit = desk.admitted(30_101);
    let ask = desk.tells(30_102, Some(permit), Outcome::Failure);
    assert_eq!(desk.fails(30_103, ask.ticket, LOST).transition, None, "the first of two");
    let permit = desk.admitted(30_104);
    let ask = desk.tells(30_105, Some(permit), Outcome::Failure);
    assert!(desk.fails(30_106, ask.ticket, LOST).transition.is_some());
}

#[test]
fn a_node_that_others_have_replaced_is_mourned_no_longer() {
    let mut desk = desk(&[]);
    outage(&mut desk, 100);
    assert_eq!(desk.node.replaced(), Some(Health::Restored(Whose::Node)));
    assert!(desk.node.is_asked());
    assert_eq!(desk.node.replaced(), None);
}

#[test]
fn a_failure_from_before_the_trip_prolongs_nothing() {
    let mut desk = desk(&[]);
    let early = desk.admitted(90);
    let ticket = desk.asks(100);
    desk.sends();
    desk.reads(100, ticket, [Some("open"), None, Some("50"), Some("50"), Some("30000")]);
    let ask = desk.tells(900, Some(early), Outcome::Failure);
    assert_eq!(desk.fails(1_000, ask.ticket, LOST).transition, None);
    outage_while_open(&mut desk, 1_100);
}

#[test]
fn a_failure_that_nobody_took_marks_a_process_that_had_tripped_with_others() {
    let mut desk = desk(&[("trip_on", "consecutive".into()), ("failure_threshold", 2.into())]);
    outvoted(&mut desk);
    // Elsewhere a success came between: the store admits, and then takes no more.
    let permit = desk.admitted(102);
    let ask = desk.tells(103, Some(permit), Outcome::Failure);
    let step = desk.is_late(203, ask.ticket);
    assert_eq!(step.answer, Some(Answer::Settled(Settlement::Applied)));
    assert_eq!(step.transition.map(|t| (t.from, t.to)), Some((State::Closed, State::Open)));
    assert_eq!(desk.knows(204).answer, refused(State::Open, Some(29_899)));
}

#[test]
fn a_probe_of_this_process_is_its_only_one_whatever_the_store_says_meanwhile() {
    let mut desk = desk(&[]);
    let ticket = desk.asks(29_000);
    desk.sends();
    desk.reads(29_000, ticket, OPEN);
    let ticket = desk.asks(30_050);
    desk.sends();
    desk.reads(30_051, ticket, OPEN);
    let late = desk.sends();
    assert_eq!(granted(&desk.is_late(30_150, late.ticket)).kind, PermitKind::LocalProbe);
    desk.replies(30_151, late.ticket, &[2, 2, 0, 30_051, 0, 1, 1, 0, -1, 0]);
    desk.sends();
    let ticket = desk.asks(30_152);
    desk.sends();
    let step = desk.fails(30_153, ticket, LOST);
    assert!(matches!(step.answer, Some(Answer::Refused { state: State::HalfOpen, .. })), "{step:?}");
}

#[test]
fn what_can_be_read_and_not_written_to_still_says_that_it_is_half_open() {
    for fields in [HALF_OPEN, [Some("open"), None, Some("60"), Some("50"), Some("20")]] {
        let mut desk = desk(&[]);
        for now in [10, 11, 12] {
            let ask = desk.tells(now, None, Outcome::Success);
            desk.fails(now, ask.ticket, "READONLY You can't write against a read only replica.");
        }
        let ticket = desk.asks(100);
        desk.sends();
        assert_eq!(granted(&desk.reads(100, ticket, fields)).kind, PermitKind::LocalProbe);
        let ticket = desk.asks(101);
        desk.sends();
        let answer = desk.reads(101, ticket, fields).answer;
        assert!(matches!(answer, Some(Answer::Refused { state: State::HalfOpen, .. })), "{answer:?}");
    }
}
