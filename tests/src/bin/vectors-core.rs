//! Runs vectors on the Rust core, once asking it for everything and once by its hints:
//! `vectors-core [file or folder]`, by default `tests/vectors`.

use std::path::PathBuf;
use std::process::ExitCode;

use switchgear_tests::core_runners::{Asked, Hinted};
use switchgear_tests::vectors;

fn main() -> ExitCode {
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("tests/vectors"), PathBuf::from);
    let vectors = match vectors::load(&path) {
        Ok(vectors) => vectors,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let asked = vectors::run("core", &vectors, |config| Ok(Asked::new(config))).print();
    let hinted = vectors::run("core-hints", &vectors, |config| Ok(Hinted::new(config))).print();
    if asked && hinted { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
