//! `switchgear-component-encoder MODULE.wasm COMPONENT.wasm`: the component of a module that wit-bindgen has written its world into.
//!
//! The same as `wasm-tools component new`, whose version must fit that of wit-bindgen: here Cargo.lock says so.

use std::env;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

use wit_component::ComponentEncoder;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [module, component] = arguments.as_slice() else {
        eprintln!("usage: switchgear-component-encoder MODULE.wasm COMPONENT.wasm");
        return ExitCode::from(2);
    };
    match make(module, component) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("switchgear-component-encoder: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(module: &str, component: &str) -> Result<(), Box<dyn Error>> {
    let module = fs::read(module)?;
    let made = ComponentEncoder::default().module(&module)?.validate(true).encode()?;
    fs::write(component, made)?;
    Ok(())
}
