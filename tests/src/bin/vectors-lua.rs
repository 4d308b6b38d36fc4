//! Runs vectors on the Lua scripts in a real Redis, which it starts and stops:
//! `vectors-lua [file or folder]`, by default `tests/vectors`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use switchgear_tests::lua::LuaCircuit;
use switchgear_tests::servers::Server;
use switchgear_tests::vectors::{self, Report};

fn main() -> ExitCode {
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("tests/vectors"), PathBuf::from);
    match run(&path) {
        Ok(report) if report.print() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(path: &Path) -> Result<Report, String> {
    let loaded = vectors::load(path)?;
    let server = Server::start().map_err(|error| error.to_string())?;
    let mut circuits = 0;
    Ok(vectors::run("lua", &loaded, |config| {
        circuits += 1;
        let connection = server.connect().map_err(|error| error.to_string())?;
        Ok(LuaCircuit::new(&format!("vector {circuits}"), config, connection))
    }))
}
