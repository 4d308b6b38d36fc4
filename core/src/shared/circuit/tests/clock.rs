//! The store's time (DESIGN 5.5).

use super::*;

fn host(now: u64) -> Times {
    Times::host(ms(now))
}

#[test]
fn a_node_is_asked_for_its_time_ahead_of_the_first_command() {
    let mut desk = desk(&[]);
    let Begun::Wait(ticket) = desk.circuit.admit(&mut desk.node, host(1_000)) else { panic!("asked") };
    assert_eq!(desk.sends(), Ask { ticket, command: Command::Time, by_text: false, delay_ms: 0, args: vec![] });
    desk.circuit.on_reply(&mut desk.node, host(1_010), ticket, &[700, 5_000]);
    assert_eq!(desk.sends().command, Command::Run(Script::Admit));
    let step = desk.circuit.on_reading(&mut desk.node, host(1_015), ticket, CLOSED_AT_42);
    let permit = granted(&step);
    let Begun::Wait(_) = desk.circuit.settle(&mut desk.node, host(1_105), Some(permit), Outcome::Failure) else {
        panic!("told")
    };
    assert_eq!(desk.sends().args[0], "700105", "the node's time");
}

#[test]
fn a_host_whose_clock_is_wrong_refuses_exactly_as_long() {
    let mut desk = desk(&[]);
    let Begun::Wait(ticket) = desk.circuit.admit(&mut desk.node, host(5)) else { panic!("asked") };
    desk.circuit.on_reply(&mut desk.node, host(5), ticket, &[600, 0]);
    let open = [Some("open"), None, Some("7"), Some("599000"), Some("30000")];
    let step = desk.circuit.on_reading(&mut desk.node, host(5), ticket, open);
    assert_eq!(step.answer, refused(State::Open, Some(29_000)));
}

#[test]
fn outcomes_and_questions_wait_for_the_time_too() {
    let mut desk = desk(&[]);
    let Begun::Wait(ticket) = desk.circuit.get_state(&mut desk.node, host(5)) else { panic!("asked") };
    assert_eq!(desk.sends().command, Command::Time);
    desk.circuit.on_reply(&mut desk.node, host(7), ticket, &[600, 0]);
    let ask = desk.sends();
    assert_eq!((ask.command, ask.args[0].as_str()), (Command::Run(Script::GetState), "600001"));
}

#[test]
fn it_is_asked_again_by_a_call_that_comes_half_a_minute_later_and_does_not_wait() {
    let mut desk = desk(&[]);
    desk.node.clock.heard(ms(0), ms(0), &[600, 0]);
    desk.node.clock.asked(ms(0));
    let Begun::Wait(_) = desk.circuit.admit(&mut desk.node, host(30_000)) else { panic!("asked") };
    let (time, read) = (desk.circuit.next_ask().unwrap(), desk.circuit.next_ask().unwrap());
    assert_eq!((time.command, read.command), (Command::Time, Command::Run(Script::Admit)));
    desk.circuit.on_reply(&mut desk.node, host(30_002), time.ticket, &[631, 0]);
    assert_eq!(desk.node.now(ms(30_001)), Some(ms(631_000)));
    assert_eq!(desk.circuit.in_flight(), 1);
}

#[test]
fn a_sample_slower_than_the_deadline_is_dropped() {
    let mut desk = desk(&[]);
    let Begun::Wait(ticket) = desk.circuit.admit(&mut desk.node, host(5)) else { panic!("asked") };
    desk.sends();
    desk.circuit.on_deadline(&mut desk.node, host(105), ticket);
    desk.circuit.on_reply(&mut desk.node, host(9_000), ticket, &[600, 0]);
    assert_eq!(desk.node.now(ms(9_000)), None);
    assert!(desk.is_quiet(), "nobody waits for what was to follow");
}

#[test]
fn a_user_who_may_not_ask_goes_by_the_host_s_time() {
    let mut desk = desk(&[]);
    let Begun::Wait(ticket) = desk.circuit.admit(&mut desk.node, host(5)) else { panic!("asked") };
    desk.sends();
    let error = "NOPERM this user has no permissions to run the 'time' command";
    assert_eq!(desk.circuit.on_error(&mut desk.node, host(6), ticket, error), Step::default());
    assert_eq!(desk.sends().command, Command::Run(Script::Admit));
    assert_eq!(desk.node.now(ms(6)), Some(ms(6)));
}
