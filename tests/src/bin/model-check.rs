//! The larger model check of the shared engine, which takes minutes: see `switchgear_tests::model`. `model-check [scenario]`

use std::process::ExitCode;
use std::time::Instant;

use switchgear_tests::model::{Explored, World, explore, larger};

fn main() -> ExitCode {
    let only = std::env::args().nth(1);
    let scenarios: Vec<_> =
        larger().into_iter().filter(|scenario| only.as_deref().is_none_or(|only| only == scenario.name)).collect();
    if scenarios.is_empty() {
        let names: Vec<_> = larger().iter().map(|scenario| format!("`{}`", scenario.name)).collect();
        eprintln!("there is no such scenario; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    let begin = Instant::now();
    let mut all = Explored::default();
    for scenario in scenarios {
        let name = scenario.name;
        match World::new(scenario).and_then(|world| explore(&world)) {
            Ok(explored) => {
                println!("{name}: {explored:?}");
                all.states += explored.states;
                all.steps += explored.steps;
                all.ends += explored.ends;
            }
            Err(story) => {
                eprintln!("{name}: {story}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("in all: {all:?} in {} s", begin.elapsed().as_secs());
    ExitCode::SUCCESS
}
