//! Where searches begin, and what may happen in them.

use switchgear_core::shared::{Control, SharedOptions};
use switchgear_core::{Config, Naming, Outcome, Value};

use super::instance::{Clock, Seat};
use super::world::{Action, Left, World};

/// A search.
#[derive(Clone)]
pub struct Scenario {
    /// What it is called.
    pub name: &'static str,
    pub(super) fields: Vec<(&'static str, Value<'static>)>,
    /// Of each process.
    pub(super) clocks: Vec<Clock>,
    /// Each circuit of each process.
    pub(super) seats: Vec<Seat>,
    /// What happens before anything may.
    pub(super) prelude: fn(&mut World) -> Result<(), String>,
    pub(super) outcomes: Vec<Outcome>,
    /// What is told by hand, of calls that nobody was asked for.
    pub(super) by_hand: Vec<Outcome>,
    pub(super) controls: Vec<Control>,
    pub(super) crashes: bool,
    /// Whether another server may take over.
    pub(super) failovers: bool,
    /// By how much time may go on.
    pub(super) ticks: Vec<u64>,
    pub(super) left: Left,
}

/// The configuration of all: an opening of two seconds, and a probe's timeout as long.
const OPEN_MS: i32 = 2_000;

impl Scenario {
    pub(super) fn build(&self) -> Result<(Config, SharedOptions), String> {
        let common = [("failureThreshold", 1.into()), ("openDurationMs", OPEN_MS.into())];
        SharedOptions::build(Naming::Camel, &[&common, &self.fields]).map_err(|error| error.to_string())
    }
}

/// So many processes with a circuit that they share.
fn seats(count: usize) -> Vec<Seat> {
    (0..count).map(|process| Seat { process, circuit: 0, server: 0 }).collect()
}

/// The first process has two circuits, on one server or on two; the second process shares the first of them.
fn two_circuits(servers: usize) -> Vec<Seat> {
    let seat = |process, circuit| Seat { process, circuit, server: circuit % servers };
    vec![seat(0, 0), seat(0, 1), seat(1, 0)]
}

/// The store's time as the user's own clocks say it, a little apart.
fn clocks(count: usize) -> Vec<Clock> {
    let skews = [0, 40, -40];
    skews.iter().cycle().take(count).map(|&skew| Clock { host: 0, store: Some(skew) }).collect()
}

/// Hosts whose clocks are ten minutes apart: they ask the node.
fn wild_clocks(count: usize) -> Vec<Clock> {
    (0..count as u64).map(|place| Clock { host: place * 600_000, store: None }).collect()
}

fn fresh(_: &mut World) -> Result<(), String> {
    Ok(())
}

/// Each process has been admitted once, and knows that the circuit is closed.
fn known(world: &mut World) -> Result<(), String> {
    for place in 0..world.instances.len() {
        world.act(Action::Call(place))?;
        deliver(world)?;
        world.act(Action::End(place, 0, Outcome::Success))?;
        deliver(world)?;
    }
    Ok(())
}

/// A call is at the dependency, and what the process knew by it is too old.
fn expired(world: &mut World) -> Result<(), String> {
    world.act(Action::Call(0))?;
    deliver(world)?;
    world.act(Action::Tick(350))
}

/// The circuit has tripped, and its opening is over.
fn reopening(world: &mut World) -> Result<(), String> {
    trip(world)?;
    world.act(Action::Tick(2_050))
}

/// The second process knows that the circuit has tripped.
fn ending(world: &mut World) -> Result<(), String> {
    trip(world)?;
    world.act(Action::Tick(1_500))?;
    world.act(Action::Call(1))?;
    deliver(world)
}

/// The circuit has closed, and tripped again; the second process has heard of nothing.
fn reopened(world: &mut World) -> Result<(), String> {
    probing(world)?;
    world.act(Action::End(0, 0, Outcome::Success))?;
    deliver(world)?;
    trip(world)?;
    world.act(Action::Tick(350))
}

fn trip(world: &mut World) -> Result<(), String> {
    world.act(Action::Call(0))?;
    deliver(world)?;
    world.act(Action::End(0, 0, Outcome::Failure))?;
    deliver(world)
}

/// The first process holds the slot of a half-open circuit.
fn probing(world: &mut World) -> Result<(), String> {
    reopening(world)?;
    world.act(Action::Call(0))?;
    deliver(world)
}

/// The first process has not been answered three times, and does not ask any more.
fn away(world: &mut World) -> Result<(), String> {
    known(world)?;
    for _ in 0..3 {
        world.act(Action::Call(0))?;
        world.act(Action::Break(0))?;
        if !world.instance(0)?.running.is_empty() {
            world.act(Action::End(0, 0, Outcome::Success))?;
        }
    }
    Ok(())
}

/// The first process has seen a failure.
fn failed(world: &mut World) -> Result<(), String> {
    known(world)?;
    trip(world)
}

fn deliver(world: &mut World) -> Result<(), String> {
    while !world.net.is_empty() {
        world.act(Action::RoundTrip(0))?;
    }
    Ok(())
}

fn scenario(name: &'static str, prelude: fn(&mut World) -> Result<(), String>, left: [u32; 4]) -> Scenario {
    let [calls, faults, ticks, hears] = left;
    Scenario {
        name,
        fields: vec![],
        clocks: clocks(2),
        seats: seats(2),
        prelude,
        outcomes: vec![Outcome::Success, Outcome::Failure],
        by_hand: vec![],
        controls: vec![],
        crashes: true,
        failovers: false,
        ticks: vec![100, 2_000],
        left: Left { calls, faults, ticks, hears },
    }
}

/// The searches of every test run.
pub fn small() -> Vec<Scenario> {
    searches([1, 1, 1], [1, 0, 1])
}

/// The larger ones, for a run by name.
pub fn larger() -> Vec<Scenario> {
    searches([2, 1, 1], [1, 1, 1])
}

/// `probing_left`: what may happen where calls are under way from the beginning, which makes for more courses.
fn searches([calls, faults, ticks]: [u32; 3], probing_left: [u32; 3]) -> Vec<Scenario> {
    let only = [calls, faults, ticks, 0];
    let [more, wrong, later] = probing_left;
    let in_flight = [more, wrong, later, 0];
    let heard = [calls, faults, ticks, 1];
    vec![
        scenario("a trip and a probe", reopening, [2, wrong, 1, 0]),
        Scenario { ticks: vec![400, 700], ..scenario("an opening that ends", ending, [1, 0, 2, 0]) },
        Scenario {
            fields: vec![("closedCacheMs", 300.into())],
            ticks: vec![100, 250],
            ..scenario("a cache that ends", known, [2, 0, 2, 0])
        },
        Scenario {
            fields: vec![("closedCacheMs", 300.into())],
            seats: seats(1),
            crashes: false,
            ..scenario("an answer that is overtaken", expired, [2, 1, 0, 0])
        },
        Scenario {
            fields: vec![("closedCacheMs", 300.into())],
            ticks: vec![100],
            ..scenario("late announcements", reopened, [1, 0, 1, 2])
        },
        Scenario { ticks: vec![60], crashes: false, ..scenario("a failed probe", probing, [1, 0, 2, 0]) },
        Scenario { ticks: vec![60], crashes: false, ..scenario("calls beside a probe", probing, [2, 0, 1, 0]) },
        scenario("a probe in flight", probing, in_flight),
        Scenario {
            fields: vec![("halfOpenMaxCalls", 2.into()), ("successThreshold", 2.into())],
            ..scenario("two probes in flight", probing, in_flight)
        },
        Scenario {
            fields: vec![("closedCacheMs", 300.into())],
            ticks: vec![100, 250, 2_000],
            ..scenario("caches and announcements", known, heard)
        },
        scenario("the store is away", away, only),
        Scenario {
            fields: vec![("tripOn", "consecutive".into()), ("failureThreshold", 2.into())],
            ..scenario("successes that have to be told", known, only)
        },
        Scenario { clocks: wild_clocks(2), ..scenario("clocks that are wrong", fresh, only) },
        Scenario {
            controls: vec![Control::Reset, Control::ForceOpen, Control::Trip { for_ms: Some(500) }],
            ..scenario("an operator", known, [calls, 1, ticks, 1])
        },
        Scenario { fields: vec![("onStoreFailure", "fail-open".into())], ..scenario("open on failure", away, only) },
        Scenario {
            fields: vec![("onStoreFailure", "fail-closed".into())],
            ..scenario("closed on failure", away, only)
        },
        Scenario { clocks: clocks(3), seats: seats(3), ..scenario("three processes", probing, in_flight) },
        Scenario { seats: two_circuits(1), ..scenario("two circuits of one server", probing, in_flight) },
        Scenario { seats: two_circuits(1), ..scenario("a server of two circuits that is away", away, only) },
        Scenario { seats: two_circuits(2), ..scenario("two servers", probing, in_flight) },
        Scenario { seats: two_circuits(2), ..scenario("one of two servers is away", away, only) },
        Scenario { failovers: true, crashes: false, ..scenario("a replica takes over", probing, [1, 1, calls - 1, 0]) },
        Scenario {
            failovers: true,
            clocks: wild_clocks(2),
            ..scenario("a replica takes over from a server that is away", away, only)
        },
        Scenario {
            fields: vec![("failureThreshold", 2.into()), ("quorum", 2.into())],
            ..scenario("a quorum", failed, only)
        },
        Scenario {
            fields: vec![("tripOn", "rate".into()), ("minimumCalls", 3.into()), ("failureRate", 0.5.into())],
            ..scenario("a rate", known, only)
        },
        Scenario {
            outcomes: vec![Outcome::Success, Outcome::Failure, Outcome::Release],
            ..scenario("calls that are given up", probing, in_flight)
        },
        Scenario {
            by_hand: vec![Outcome::Success, Outcome::Failure, Outcome::Release],
            ..scenario("outcomes told by hand", probing, in_flight)
        },
    ]
}
