/* latency COMMUNICATORS THREADS CALLS [VERSION]: what a call costs that was decided before, per thread CALLS times,
 * beside an empty call that is measured in the same way. And what a call costs when it
 * is decided. One line of numbers. */
#include "host.h"

#include <pthread.h>
#include <time.h>

enum { KINDS = 64, BUCKETS = 1 << 16 };

typedef struct {
    comm_t *comms;
    long number, calls;
    unsigned call_ns[BUCKETS], empty_ns[BUCKETS];
} share_t;

/* Between these two, threads do nothing but call. */
static pthread_barrier_t begin, end;
static call_t kinds[KINDS];

static long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000L + at.tv_nsec;
}

/* What a plugin that does nothing would cost. Not static, so that it is called. */
__attribute__((noinline)) int empty_call(const comm_t *comm, call_t *call) {
    __asm__ volatile("" : : "r"(comm), "r"(call) : "memory");
    return SUCCESS;
}

static void add(unsigned *histogram, long ns) { histogram[ns < 0 ? 0 : ns < BUCKETS ? ns : BUCKETS - 1]++; }

static void calls_of(share_t *share, long calls) {
    uint64_t state = 1;
    for (long i = 0; i < calls; i++) {
        uint64_t drawn = draw(&state);
        comm_t *comm = &share->comms[drawn % (uint64_t)share->number];
        call_t call = kinds[drawn >> 32 & (KINDS - 1)], copy = call;
        long began = now();
        comm_call(comm, &call);
        long middle = now();
        empty_call(comm, &copy);
        long ended = now();
        add(share->call_ns, middle - began);
        add(share->empty_ns, ended - middle);
    }
}

static void *work(void *given) {
    share_t *share = given;
    calls_of(share, 1000);
    memset(share->call_ns, 0, sizeof share->call_ns);
    memset(share->empty_ns, 0, sizeof share->empty_ns);
    pthread_barrier_wait(&begin);
    calls_of(share, share->calls);
    pthread_barrier_wait(&end);
    return NULL;
}

static int quantile(const unsigned *histogram, double share) {
    double all = 0, below = 0;
    for (int b = 0; b < BUCKETS; b++) all += histogram[b];
    for (int b = 0; b < BUCKETS; b++)
        if ((below += histogram[b]) >= share * all) return b;
    return BUCKETS;
}

int run_latency(int count, char **arguments) {
    if (count != 3 && count != 4) return 2;
    long number = atol(arguments[0]), threads = atol(arguments[1]), calls = atol(arguments[2]);
    void *library = library_open();
    tuner_t tuner = tuner_of(library, count == 4 ? atoi(arguments[3]) : 5);
    comm_t *comms = calloc((size_t)number, sizeof *comms);
    for (long i = 0; i < number; i++)
        if (comm_begin(&comms[i], &tuner, 16, 2, NULL) != SUCCESS) return 1;
    uint64_t state = 3;
    for (int i = 0; i < KINDS; i++) kinds[i] = call_draw(&state);
    /* Every communicator meets every kind of call, and decides. */
    static unsigned first_ns[BUCKETS];
    for (long i = 0; i < number; i++)
        for (int k = 0; k < KINDS; k++) {
            call_t call = kinds[k];
            long began = now();
            comm_call(&comms[i], &call);
            add(first_ns, now() - began);
        }
    pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
    share_t *shares = calloc((size_t)threads, sizeof *shares);
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    for (long t = 0; t < threads; t++) {
        shares[t].comms = comms, shares[t].number = number, shares[t].calls = calls;
        pthread_create(&ids[t], NULL, work, &shares[t]);
    }
    pthread_barrier_wait(&begin);
    long resident = resident_kib();
    unsigned long before = allocations();
    pthread_barrier_wait(&end);
    unsigned long made = allocations() - before;
    long grown = resident_kib() - resident;
    for (long t = 0; t < threads; t++) {
        pthread_join(ids[t], NULL);
        for (int b = 0; t > 0 && b < BUCKETS; b++) {
            shares[0].call_ns[b] += shares[t].call_ns[b];
            shares[0].empty_ns[b] += shares[t].empty_ns[b];
        }
    }
    const unsigned *called = shares[0].call_ns, *empty = shares[0].empty_ns;
    printf("communicators %ld threads %ld calls %ld call_p50_ns %d call_p99_ns %d empty_p50_ns %d empty_p99_ns %d "
           "first_p50_ns %d rss_kib %ld grown_kib %ld allocations %lu\n",
           number, threads, calls * threads, quantile(called, 0.5), quantile(called, 0.99), quantile(empty, 0.5),
           quantile(empty, 0.99), quantile(first_ns, 0.5), resident, grown, made);
    for (long i = 0; i < number; i++) comm_end(&comms[i]);
    free(comms);
    free(shares);
    free(ids);
    return 0;
}
