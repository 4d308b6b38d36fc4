//! Proof that `switchgear-core` and `switchgear-lua` link no std: this static library brings a panic handler and an
//! allocator of its own, and rustc refuses both beside those of std. Building it is the whole test (`scripts/no-std.sh`).
//!
//! Only panic = "abort" can do without std's unwinder, so the proof is in the cargo profile `no-std`; in every other
//! build this crate is empty.

#![cfg_attr(panic = "abort", no_std)]

#[cfg(panic = "abort")]
mod probe {
    #[cfg(feature = "link-std")]
    extern crate std;

    use core::alloc::{GlobalAlloc, Layout};
    use core::panic::PanicInfo;

    use switchgear_core as _;
    use switchgear_lua as _;

    struct NoMemory;

    // SAFETY: never hands out memory; a null pointer is how an allocator says so.
    unsafe impl GlobalAlloc for NoMemory {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            core::ptr::null_mut()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[global_allocator]
    static ALLOCATOR: NoMemory = NoMemory;

    #[panic_handler]
    fn panic(_: &PanicInfo<'_>) -> ! {
        loop {}
    }
}
