//! What JavaScript holds of this module: values behind pointers. Classes of wasm-bindgen would count references and borrows, which
//! costs every page several hundred bytes and every call some time, to find mistakes that `bindings/wasm/ts/local.ts` cannot make.

use alloc::boxed::Box;

/// Hands a value out.
pub fn hold<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Works on a value that was handed out.
pub fn with<T, R>(held: *mut T, work: impl FnOnce(&mut T) -> R) -> R {
    // SAFETY: the pointer came from `hold`; whoever has it keeps it private, and lets it go when nobody can use it any more.
    // WebAssembly has one thread here, and nothing that is called in between calls back, so this is the only reference.
    work(unsafe { &mut *held })
}

/// Takes a value back.
pub fn let_go<T>(held: *mut T) {
    // SAFETY: as above, and this is its last use.
    drop(unsafe { Box::from_raw(held) });
}
