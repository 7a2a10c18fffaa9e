//! Work that several threads take from the same heap, with results as if one had done it.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Lets every thread take work until there is no more, this one among them. What they bring is numbered; it
/// is returned in the order of the numbers. A panic of one is a panic of all.
pub fn together<R: Send>(threads: usize, take: impl Fn() -> Vec<(usize, R)> + Sync) -> Vec<R> {
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(&take)).collect();
        let mut done = take();
        for other in others {
            match other.join() {
                Ok(theirs) => done.extend(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Works on each of many things, whichever thread is free taking the next. What the work returns is in the
/// order of the things.
pub fn each<T: Send, R: Send>(
    threads: usize,
    things: &mut [T],
    work: impl Fn(usize, &mut T) -> R + Sync,
) -> Vec<R> {
    let left = Mutex::new(things.iter_mut().enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take = || {
        let mut done = Vec::new();
        while let Some((at, thing)) = next() {
            done.push((at, work(at, thing)));
        }
        done
    };
    together(threads, take)
}
