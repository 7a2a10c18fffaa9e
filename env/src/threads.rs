//! Work that several threads take from the same heap, with results as if one had done it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Lets every thread take work until there is no more, this one among them: those that the system refuses are not missed.
/// What they bring is numbered; it is returned in the order of the numbers. A panic of one is a panic of all.
pub fn together<R: Send>(threads: usize, take: impl Fn() -> Vec<(usize, R)> + Sync) -> Vec<R> {
    let mut done = thread::scope(|scope| {
        let other = |_| thread::Builder::new().spawn_scoped(scope, &take).ok();
        let others: Vec<_> = (1..threads.max(1)).map_while(other).collect();
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
    let threads = threads.min(things.len());
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

/// Does every piece of work; the results are in the order of the pieces. The first error, in that order, ends
/// the work of all threads.
pub fn try_each<T: Sync, R: Send, E: Send>(
    threads: usize,
    pieces: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take = || {
        let mut done = Vec::new();
        while !stopped.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(at) else { break };
            let result = work(piece);
            stopped.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((at, result));
        }
        done
    };
    together(threads.min(pieces.len()), take).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_threads() {
        let pieces: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7] {
            let squares = try_each(threads, &pieces, |x| Ok::<_, ()>(x * x)).unwrap();
            assert_eq!(squares, pieces.iter().map(|x| x * x).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let done = AtomicUsize::new(0);
        let stop = |x: &u64| {
            done.fetch_add(1, Ordering::Relaxed);
            if *x == 3 { Err("stop") } else { Ok(()) }
        };
        assert_eq!(try_each(1, &(0..100).collect::<Vec<_>>(), stop), Err("stop"));
        assert_eq!(done.into_inner(), 4);
    }
}
