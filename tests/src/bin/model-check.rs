//! The larger model check of the shared engine, which takes minutes: see `switchgear_tests::model`. `model-check [scenario]`

use std::process::ExitCode;

use switchgear_tests::model::{World, explore, larger};

fn main() -> ExitCode {
    let only = std::env::args().nth(1);
    let scenarios: Vec<_> =
        larger().into_iter().filter(|scenario| only.as_deref().is_none_or(|only| only == scenario.name)).collect();
    if scenarios.is_empty() {
        let names: Vec<_> = larger().iter().map(|scenario| format!("`{}`", scenario.name)).collect();
        eprintln!("there is no such scenario; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    for scenario in scenarios {
        let name = scenario.name;
        match World::new(scenario).and_then(|world| explore(&world)) {
            Ok(explored) => println!("{name}: {explored:?}"),
            Err(story) => {
                eprintln!("{name}: {story}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
