//! What std would bring along: an allocator, and what happens at a panic. Small, for it is sent to every page.

use core::panic::PanicInfo;

use talc::wasm::{WasmDynamicTalc, new_wasm_dynamic_allocator};

#[global_allocator]
static ALLOCATOR: WasmDynamicTalc = new_wasm_dynamic_allocator();

/// The core does not panic; if it did after all, JavaScript would see a `RuntimeError`.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
