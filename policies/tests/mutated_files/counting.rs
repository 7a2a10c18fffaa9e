//! An allocator that knows how much a thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Passes everything on to the system and counts.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// From here on, [`peak`] is the most that is held. Gives what is held now.
pub fn start() -> usize {
    PEAK.set(HELD.get());
    HELD.get()
}

/// The most that this thread has held since the start.
pub fn peak() -> usize {
    PEAK.get()
}

fn took(bytes: usize) {
    // A thread that ends frees what it holds after its counters are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(bytes));
        PEAK.with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn gave(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

// SAFETY: every call goes to the system's allocator with the arguments that it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        gave(layout.size());
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be there while one is copied to the other.
        took(size);
        let moved = unsafe { System.realloc(memory, layout, size) };
        gave(layout.size());
        moved
    }
}
