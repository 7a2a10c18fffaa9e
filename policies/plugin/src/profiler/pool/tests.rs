//! Slots of collectives under way, whatever the order in which NCCL's events come.

use super::*;
use crate::profiler::record::tests::example;

const SECOND: u64 = 1_000_000_000;
const OWNER: u64 = 7;

fn timed(clock: Clock) -> Record {
    Record { start_ns: 1000, duration_ns: 0, clock, ..example() }
}

#[test]
fn the_time_is_from_the_first_start_to_the_last_stop() {
    let pool: Pool<4> = Pool::new();
    let ticket = pool.open(OWNER, timed(Clock::Gpu), Until::Kernels(2)).unwrap();
    assert!(pool.kernel_started(ticket, 5, 900));
    assert!(pool.kernel_started(ticket, 9, 700));
    assert_eq!(pool.launched(ticket, 1500), None);
    pool.kernel_ended(ticket, 4000);
    assert_eq!(pool.kernel_stopped(ticket, 9, 2000), None);
    assert_eq!(pool.kernel_stopped(ticket, 9, 2000), None, "one channel stops once");
    pool.kernel_ended(ticket, 3900);
    let record = pool.kernel_stopped(ticket, 5, 2000).unwrap();
    assert_eq!(record, Record { duration_ns: 3300, ..timed(Clock::Gpu) });
    assert!(!pool.kernel_started(ticket, 1, 1), "the slot is used again, the ticket is not");
    assert_eq!((pool.launched(ticket, 1), pool.kernel_stopped(ticket, 1, 1)), (None, None));
}

#[test]
fn the_launch_may_come_last() {
    let pool: Pool<4> = Pool::new();
    let ticket = pool.open(OWNER, timed(Clock::Gpu), Until::Kernels(1)).unwrap();
    pool.kernel_started(ticket, 0, 10);
    pool.kernel_ended(ticket, 30);
    assert_eq!(pool.kernel_stopped(ticket, 0, 2000), None);
    assert_eq!(pool.launched(ticket, 2500).unwrap().duration_ns, 20);
}

#[test]
fn without_kernels_it_is_the_launch_and_says_so() {
    let pool: Pool<4> = Pool::new();
    let ticket = pool.open(OWNER, timed(Clock::Gpu), Until::Launched).unwrap();
    let record = pool.launched(ticket, 1700).unwrap();
    assert_eq!((record.duration_ns, record.clock), (700, Clock::Launch));
    // A clock that stands still or runs backwards is no time.
    for (first, last) in [(0, 50), (50, 50), (60, 50)] {
        let ticket = pool.open(OWNER, timed(Clock::Gpu), Until::Kernels(1)).unwrap();
        pool.kernel_started(ticket, 0, first);
        pool.kernel_ended(ticket, last);
        pool.kernel_stopped(ticket, 0, 1);
        assert_eq!(pool.launched(ticket, 1200).unwrap().clock, Clock::Launch);
    }
}

#[test]
fn an_unknown_number_of_kernels_is_waited_for_until_it_is_quiet() {
    let pool: Pool<4> = Pool::new();
    let ticket = pool.open(OWNER, timed(Clock::Host), Until::Quiet).unwrap();
    pool.launched(ticket, 1100);
    let swept = |now: u64| {
        let mut records = Vec::new();
        pool.sweep(now, |record| records.push(record));
        records
    };
    assert_eq!(swept(5 * SECOND), [], "no kernel yet");
    pool.kernel_started(ticket, 0, 2000);
    pool.kernel_started(ticket, 1, 2000);
    pool.kernel_ended(ticket, 9000);
    pool.kernel_stopped(ticket, 0, 9000);
    assert_eq!(swept(5 * SECOND), [], "one of two still runs");
    pool.kernel_stopped(ticket, 1, 9000);
    assert_eq!(swept(SECOND), [], "not yet quiet");
    let record = Record { duration_ns: 7000, channels: 2, ..timed(Clock::Host) };
    assert_eq!(swept(2 * SECOND), [record]);
    assert_eq!(swept(9 * SECOND), []);
}

#[test]
fn a_full_pool_refuses_until_what_is_stale_is_swept() {
    let pool: Pool<4> = Pool::new();
    let tickets: Vec<Ticket> =
        (0..4).map(|_| pool.open(OWNER, timed(Clock::Gpu), Until::Kernels(1)).unwrap()).collect();
    assert_eq!(pool.open(OWNER, timed(Clock::Gpu), Until::Launched), None);
    pool.launched(tickets[2], 1100);
    let mut swept = Vec::new();
    pool.sweep(5 * SECOND, |record| swept.push(record.clock));
    assert_eq!(swept, []);
    pool.sweep(20 * SECOND, |record| swept.push(record.clock));
    assert_eq!(swept, [Clock::Launch], "only what was launched");
    assert!(pool.open(OWNER, timed(Clock::Gpu), Until::Launched).is_some());
    let mut rest = 0;
    pool.close_all(|_| rest += 1);
    assert_eq!(rest, 4);
    pool.clear();
    assert!(pool.open(OWNER, timed(Clock::Gpu), Until::Launched).is_some());
}

#[test]
fn a_communicator_takes_what_it_has_under_way_along() {
    let pool: Pool<4> = Pool::new();
    let others = pool.open(OWNER + 1, timed(Clock::Gpu), Until::Kernels(1)).unwrap();
    let aborted = pool.open(OWNER, timed(Clock::Gpu), Until::Kernels(1)).unwrap();
    pool.open(OWNER, timed(Clock::Gpu), Until::Quiet).unwrap();
    pool.launched(aborted, 1100);
    let mut closed = Vec::new();
    pool.close_of(OWNER, |record| closed.push(record.clock));
    assert_eq!(closed, [Clock::Launch, Clock::Launch]);
    assert!(!pool.kernel_started(aborted, 0, 1) && pool.kernel_started(others, 0, 1));
    pool.close_of(OWNER, |_| panic!("twice"));
}

#[test]
fn slots_that_are_taken_in_a_row_are_passed_over() {
    let pool: Pool<64> = Pool::new();
    for _ in 0..40 {
        pool.open(OWNER, timed(Clock::Gpu), Until::Kernels(1)).unwrap();
    }
    for round in 0..1000 {
        let ticket = pool.open(OWNER, timed(Clock::Gpu), Until::Launched);
        let ticket = ticket.unwrap_or_else(|| panic!("given up in round {round}"));
        assert!(pool.launched(ticket, 1100).is_some());
    }
}

/// Whoever brings the last piece closes the slot, and nobody else does.
#[test]
fn every_record_is_closed_once_between_threads() {
    let pool: Pool<8> = Pool::new();
    for round in 0..2000 {
        let ticket = pool.open(OWNER, timed(Clock::Gpu), Until::Kernels(2)).unwrap();
        let closed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let (pool, closed) = (&pool, &closed);
            let count =
                move |record: Option<Record>| closed.fetch_add(record.is_some().into(), Ordering::Relaxed);
            scope.spawn(move || count(pool.kernel_stopped(ticket, 0, 1)));
            scope.spawn(move || count(pool.kernel_stopped(ticket, 1, 1)));
            count(pool.launched(ticket, 2));
        });
        assert_eq!(closed.into_inner(), 1, "round {round}");
    }
}
