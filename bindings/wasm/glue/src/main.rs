//! `switchgear-wasm-glue MODULE.wasm FOLDER NAME`: the JavaScript glue of a module, and the module as the glue wants it.
//!
//! The same as the `wasm-bindgen` command, whose version must be that of the crate to the digit: here Cargo.lock says so.

use std::env;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [module, folder, name] = arguments.as_slice() else {
        eprintln!("usage: switchgear-wasm-glue MODULE.wasm FOLDER NAME");
        return ExitCode::from(2);
    };
    match make(module, folder, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("switchgear-wasm-glue: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(module: &str, folder: &str, name: &str) -> Result<(), String> {
    let mut bindgen = Bindgen::new();
    // Nothing is fetched: whoever instantiates it has the bytes.
    let target = bindgen.web(true).map_err(|error| error.to_string())?;
    target
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .typescript(true)
        .input_path(module)
        .out_name(name)
        .generate(folder)
        .map_err(|error| format!("{error:#}"))
}
