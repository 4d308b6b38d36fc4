//! Links the N-API symbols the way each platform wants them.
fn main() {
    napi_build::setup();
}
