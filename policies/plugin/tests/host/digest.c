/* digest CALLS THREADS TIMING: the fingerprint of the decisions of CALLS calls. All but TIMING, which only
 * decides when threads pause, is the same in every process; so must the fingerprint be. */
#include "host.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { COMMS = 6, KINDS = 600 };

typedef struct {
    comm_t *comms;
    long calls;
    uint64_t seed, timing, digest;
} share_t;

static void pause_sometimes(uint64_t *timing) {
    switch (draw(timing) % 4096) {
    case 0: usleep(50); break;
    case 1 ... 8: sched_yield(); break;
    }
}

/* Threads share communicators, and calls come again and again as in a job, among more kinds of calls than a
 * communicator keeps. */
static void *work(void *given) {
    share_t *share = given;
    uint64_t digest = 0xcbf29ce484222325ULL;
    for (long i = 0; i < share->calls; i++) {
        uint64_t state = share->seed + (uint64_t)i * 7919 % KINDS;
        comm_t *comm = &share->comms[i % COMMS];
        call_t call = call_draw(&state);
        call.registered = (int)(draw(&share->timing) % 2);
        if (comm_call(comm, &call) != SUCCESS) exit(1);
        call.registered = 0;
        digest = fnv(digest, call.table, sizeof call.table);
        digest = fnv(digest, &call.channels, sizeof call.channels);
        pause_sometimes(&share->timing);
    }
    share->digest = digest;
    return NULL;
}

int run_digest(int count, char **arguments) {
    if (count != 4) return 2;
    long calls = atol(arguments[0]), threads = atol(arguments[1]);
    uint64_t timing = strtoull(arguments[2], NULL, 10);
    void *library = library_open();
    tuner_t tuner = tuner_of(library, atoi(arguments[3]));
    comm_t comms[COMMS];
    for (int i = 0; i < COMMS; i++) {
        size_t nodes = (size_t)1 << i % 3;
        if (comm_begin(&comms[i], &tuner, 8 * nodes, nodes, NULL) != SUCCESS) return 1;
    }
    share_t *shares = calloc((size_t)threads, sizeof *shares);
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    for (long t = 0; t < threads; t++) {
        shares[t] = (share_t){comms, calls / threads, 1000 * (uint64_t)t, timing * 64 + (uint64_t)t, 0};
        pthread_create(&ids[t], NULL, work, &shares[t]);
    }
    uint64_t digest = 0xcbf29ce484222325ULL;
    for (long t = 0; t < threads; t++) {
        pthread_join(ids[t], NULL);
        digest = fnv(digest, &shares[t].digest, sizeof digest);
    }
    for (int i = 0; i < COMMS; i++) comm_end(&comms[i]);
    free(shares);
    free(ids);
    printf("%ld calls, digest %016lx\n", calls / threads * threads, (unsigned long)digest);
    return 0;
}
