//! Work that several threads take from the same heap, with results as if one had done it.

use std::thread;

/// Lets every thread take work until there is no more, this one among them. What they bring is numbered; it
/// is returned in the order of the numbers. A panic of one is a panic of all.
pub(crate) fn together<R: Send>(threads: usize, take: impl Fn() -> Vec<(usize, R)> + Sync) -> Vec<R> {
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
