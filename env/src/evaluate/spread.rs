//! Spreading work over threads so that the result is the same for any number of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::threads::together;

/// Does every piece of work; the results are in the order of the pieces. The first error, in that order, ends
/// the work of all threads.
pub fn spread<T: Sync, R: Send, E: Send>(
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
    together(threads, take).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_threads() {
        let pieces: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7] {
            let squares = spread(threads, &pieces, |x| Ok::<_, ()>(x * x)).unwrap();
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
        assert_eq!(spread(1, &(0..100).collect::<Vec<_>>(), stop), Err("stop"));
        assert_eq!(done.into_inner(), 4);
    }
}
