//! The model check of the engine: see `switchgear_tests::model`.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use switchgear_tests::model::{Scenario, World, explore};

fn check(scenarios: Vec<Scenario>) {
    let only = std::env::var("MODEL").ok();
    for scenario in scenarios {
        let name = scenario.name;
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let explored = World::new(scenario).and_then(|world| explore(&world));
        match explored {
            Ok(explored) => println!("{name}: {explored:?}"),
            Err(story) => panic!("{name}: {story}"),
        }
    }
}

#[test]
fn a_small_fleet_keeps_its_promises() {
    check(switchgear_tests::model::small());
}

#[test]
#[ignore = "minutes: by name"]
fn a_larger_fleet_keeps_its_promises() {
    check(switchgear_tests::model::larger());
}
