//! The small model check of the shared engine: see `switchgear_tests::model`.

use switchgear_tests::model::{World, explore, small};

#[test]
fn a_small_fleet_keeps_its_promises() {
    for scenario in small() {
        let name = scenario.name;
        match World::new(scenario).and_then(|world| explore(&world)) {
            Ok(explored) => println!("{name}: {explored:?}"),
            Err(story) => panic!("{name}: {story}"),
        }
    }
}
