//! A tuner allocates when it is made and never again.

// Counting needs an allocator of our own, which Rust lets nobody write without `unsafe`; this one only
// counts and hands on.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dynamiccl_policies::policy::PolicyTuner;
use dynamiccl_policies::probe::{Call, policy};
use dynamiccl_policies::random::Random;
use dynamiccl_spec::Tuner;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The only test in here: another one beside it would be counted.
#[test]
fn decisions_refreshes_and_new_jobs_allocate_nothing() {
    let policy = Arc::new(policy(3));
    let mut random = Random::new(1);
    // More communicators and calls than a tuner keeps.
    let calls: Vec<Call> = (0..2000).map(|_| Call::draw(&mut random)).collect();
    for refresh in [None, NonZeroUsize::new(7)] {
        let before_made = ALLOCATIONS.load(Ordering::Relaxed);
        let mut tuner = PolicyTuner::new(Arc::clone(&policy), refresh);
        let made = ALLOCATIONS.load(Ordering::Relaxed);
        assert!(made > before_made, "the allocator does not count");
        for call in calls.iter().chain(&calls[..100]).chain(&calls[..100]) {
            std::hint::black_box(tuner.answer(&call.query()));
        }
        tuner.begin();
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - made, 0);
    }
}
