/* The facts that a plugin must get right, by their numbers in the list that docs/plugin.md gives. Decisions come
 * from the policy that DYNAMICCL_POLICY names, which should be a wild one: what it decides does not matter here,
 * what NCCL gets does. */
#include "host.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>

static int fact;
static const char *policy;
static void *library;
static tuner_t tuners[8];

#define EXPECT(what)                                                                                           \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            fprintf(stderr, "FAIL fact %d (facts.c:%d): %s\n", fact, __LINE__, #what);                         \
            log_print();                                                                                       \
            exit(1);                                                                                           \
        }                                                                                                      \
    } while (0)

static comm_t begin(int version, size_t ranks, size_t nodes) {
    comm_t comm;
    EXPECT(comm_begin(&comm, &tuners[version], ranks, nodes, log_line) == SUCCESS);
    EXPECT(comm.context != NULL);
    return comm;
}

static bool available(float us) { return us >= 0 && isfinite(us); }

/* At most one entry has changed, it was available, it wins however NCCL scans, and channels are legal. */
static bool lawful(const call_t *before, const call_t *after) {
    const float *old = before->table, *new = after->table;
    int changed = -1;
    for (int i = 0; i < ENTRIES; i++) {
        if (!memcmp(&old[i], &new[i], sizeof old[i])) continue;
        if (changed >= 0) return false;
        changed = i;
    }
    int channels = after->channels;
    if (channels != before->channels && (channels < 1 || channels > 64)) return false;
    if (changed < 0) return true;
    if (!available(old[changed]) || !(new[changed] > 0) || !isfinite(new[changed])) return false;
    return argmin(new, ENTRIES, false) == changed && argmin(new, ENTRIES, true) == changed;
}

static void fact_1_table_in_one_row(void) {
    /* Numbers in a row behind a type that says otherwise, as many as the caller says. */
    int touched = 0;
    for (int version = 3; version <= 7; version++) {
        comm_t comm = begin(version, 16, 2);
        for (int algorithms = 0; algorithms <= 8; algorithms++)
            for (int protocols = 0; protocols <= 4; protocols++)
                for (int size = 10; size < 31; size++) {
                    float row[8 + 9 * 5 + 8], copy[8 + 9 * 5 + 8];
                    uint64_t state = (uint64_t)size;
                    int entries = algorithms * protocols, channels = 0, changed = 0;
                    for (size_t i = 0; i < sizeof row / sizeof *row; i++) row[i] = (float)(8 + 99 * uniform(&state));
                    memcpy(copy, row, sizeof row);
                    tuner_v4_t *table = tuners[version].table;
                    int result =
                        version == 3
                            ? ((tuner_v3_t *)table)->coll(comm.context, ALLREDUCE, 1UL << size, 1, (float **)(row + 8),
                                                          algorithms, protocols, &channels)
                            : table->coll(comm.context, ALLREDUCE, 1UL << size, 1, (float **)(row + 8), algorithms,
                                          protocols, 0, &channels);
                    EXPECT(result == SUCCESS);
                    for (int i = 0; i < (int)(sizeof row / sizeof *row); i++) {
                        if (row[i] == copy[i]) continue;
                        EXPECT(i >= 8 && i < 8 + entries);
                        EXPECT(argmin(row + 8, entries, false) == i - 8 && argmin(row + 8, entries, true) == i - 8);
                        changed++;
                    }
                    EXPECT(changed <= 1);
                    touched += changed;
                }
        EXPECT(comm_end(&comm) == SUCCESS);
    }
    EXPECT(touched > 300);
}

static void fact_2_what_is_marked_stays(void) {
    const float marks[] = {-1.0f, -1024.0f, NAN, INFINITY, -INFINITY, -0.5f};
    int chosen = 0;
    for (int version = 3; version <= 7; version++) {
        comm_t comm = begin(version, 16, 2);
        uint64_t state = 2;
        for (int i = 0; i < 3000; i++) {
            call_t call = call_draw(&state);
            for (int e = 0; e < ENTRIES; e++)
                if (draw(&state) % 2) call.table[e] = marks[draw(&state) % 6];
            call_t before = call;
            EXPECT(comm_call(&comm, &call) == SUCCESS);
            EXPECT(lawful(&before, &call));
            chosen += memcmp(&before, &call, sizeof call) != 0;
        }
        for (int m = 0; m < 6; m++) {
            call_t call = {.collective = ALLREDUCE, .bytes = 1 << 20, .pipelined = 1};
            for (int e = 0; e < ENTRIES; e++) call.table[e] = marks[m];
            call_t before = call;
            EXPECT(comm_call(&comm, &call) == SUCCESS && !memcmp(&before, &call, sizeof call));
        }
        /* Sums in fp8 among more than 8: rings are priced out, by 1024. */
        for (int i = 0; i < 1000; i++) {
            call_t call = call_draw(&state);
            call.table[ENTRY(TREE, SIMPLE)] = 50;
            for (int p = 0; p < PROTOCOLS; p++) call.table[ENTRY(RING, p)] *= 1024;
            call_t before = call;
            EXPECT(comm_call(&comm, &call) == SUCCESS && lawful(&before, &call));
            EXPECT(!memcmp(&call.table[ENTRY(RING, 0)], &before.table[ENTRY(RING, 0)], PROTOCOLS * sizeof(float)));
        }
        EXPECT(comm_end(&comm) == SUCCESS);
    }
    EXPECT(chosen > 1000);
}

static void fact_3_one_entry_always_wins(void) {
    setenv("DYNAMICCL_POLICY", "walk", 1);
    comm_t comm = begin(5, 16, 2);
    uint64_t state = 3;
    for (int i = 0; i < 20000; i++) {
        call_t call = call_draw(&state);
        /* All alike: a tie would be decided by the direction of the scan. */
        if (i % 2)
            for (int e = 0; e < ENTRIES; e++) call.table[e] = call.table[e] < 0 ? -1 : 20;
        call_t before = call;
        EXPECT(comm_call(&comm, &call) == SUCCESS && lawful(&before, &call));
        EXPECT(argmin(call.table, ENTRIES, false) >= 0);
    }
    EXPECT(comm_end(&comm) == SUCCESS);
    setenv("DYNAMICCL_POLICY", policy, 1);
}

static void fact_4_calls_never_fail(void) {
    for (int version = 2; version <= 7; version++) {
        comm_t comm = begin(version, 16, 2), none = {&tuners[version], NULL};
        const size_t bytes[] = {0, 1, (size_t)-1, (size_t)1 << 62};
        const int numbers[] = {-1, 0, 5, 14, 1 << 30, (int)0x80000000};
        log_clear();
        for (int b = 0; b < 4; b++)
            for (int n = 0; n < 6; n++) {
                uint64_t state = 4;
                call_t odd = call_draw(&state);
                odd.bytes = bytes[b];
                odd.pipelined = numbers[n];
                call_t before = odd;
                EXPECT(comm_call(&comm, &odd) == SUCCESS && lawful(&before, &odd));
                odd = before;
                EXPECT(comm_call(&none, &odd) == SUCCESS && !memcmp(&before, &odd, sizeof odd));
                odd.collective = numbers[n] == 0 ? 5 : numbers[n];
                before = odd;
                EXPECT(comm_call(&comm, &odd) == SUCCESS && !memcmp(&before, &odd, sizeof odd));
            }
        EXPECT(log_count(LOG_WARN) == 1);
        if (version >= 4) {
            tuner_v4_t *table = tuners[version].table;
            float row[21] = {10, 20};
            int channels = 0;
            EXPECT(table->coll(comm.context, ALLREDUCE, 1 << 20, 1, NULL, 7, 3, 0, &channels) == SUCCESS);
            EXPECT(table->coll(comm.context, ALLREDUCE, 1 << 20, 1, (float **)row, 7, 3, 0, NULL) == SUCCESS);
            EXPECT(table->coll(comm.context, ALLREDUCE, 1 << 20, 1, (float **)row, -7, 3, 0, &channels) == SUCCESS);
            EXPECT(channels == 0);
        }
        EXPECT(comm_end(&comm) == SUCCESS && comm_end(&none) == SUCCESS);
        /* Nowhere to put a context. */
        if (version < 5) EXPECT(((tuner_v2_t *)tuners[version].table)->init(16, 2, log_line, NULL) == SUCCESS);
        else EXPECT(((tuner_v5_t *)tuners[version].table)->init(NULL, 1, 16, 2, NULL, NULL, NULL) == SUCCESS);
    }
}

static void fact_5_channels_are_legal_or_untouched(void) {
    setenv("DYNAMICCL_POLICY", "walk", 1);
    for (size_t nodes = 1; nodes <= 2; nodes++) {
        comm_t comm = begin(6, 8 * nodes, nodes);
        uint64_t state = 5;
        int asked = 0, left = 0;
        for (int i = 0; i < 20000; i++) {
            call_t call = call_draw(&state), before = call;
            EXPECT(comm_call(&comm, &call) == SUCCESS && lawful(&before, &call));
            int algorithm = argmin(call.table, ENTRIES, false) / PROTOCOLS;
            bool unchecked = algorithm == COLLNET_DIRECT || algorithm == COLLNET_CHAIN || (algorithm == NVLS && nodes > 1);
            if (unchecked) EXPECT(call.channels == 0);
            asked += call.channels > 0;
            left += call.channels == 0;
        }
        EXPECT(asked > 1000 && left > 1000);
        EXPECT(comm_end(&comm) == SUCCESS);
    }
    setenv("DYNAMICCL_POLICY", policy, 1);
}

static void fact_6_chunks_are_whole_grains(void) {
    const size_t grains[] = {16, 1920, 512};
    setenv("DYNAMICCL_POLICY", "walk", 1);
    for (int version = 6; version <= 7; version++) {
        comm_t comm = begin(version, 16, 2), none = {&tuners[version], NULL};
        uint64_t state = 6;
        int scaled = 0;
        for (int i = 0; i < 20000; i++) {
            call_t call = call_draw(&state);
            EXPECT(comm_call(&comm, &call) == SUCCESS);
            int chosen = argmin(call.table, ENTRIES, false), a = chosen / PROTOCOLS, p = chosen % PROTOCOLS;
            size_t own = grains[p] * (1 + draw(&state) % 300) + draw(&state) % grains[p];
            size_t first = own, chunk;
            EXPECT(comm_chunk(&comm, call.collective, call.bytes, a, p, 8, &first) == SUCCESS);
            EXPECT(first >= grains[p] && first / grains[p] <= 4 * (own / grains[p] + 1));
            scaled += first != own;
            /* Asked again for another part of the same collective: bytes and channels are of that part. */
            for (int part = 0; part < 3; part++) {
                chunk = own;
                EXPECT(comm_chunk(&comm, call.collective, call.bytes / 7 + part, a, p, 1, &chunk) == SUCCESS);
                EXPECT(chunk == first);
            }
            /* What was not chosen, what there is not, and no context. */
            chunk = own;
            EXPECT(comm_chunk(&comm, call.collective, call.bytes, (a + 1) % 7, p, 1, &chunk) == SUCCESS && chunk == own);
            EXPECT(comm_chunk(&comm, 99, 1, a, p, 1, &chunk) == SUCCESS && chunk == own);
            EXPECT(comm_chunk(&comm, call.collective, 1, -1, 7, 1, &chunk) == SUCCESS && chunk == own);
            EXPECT(comm_chunk(&comm, call.collective, 1, a, p, 1, NULL) == SUCCESS);
            EXPECT(comm_chunk(&none, call.collective, 1, a, p, 1, &chunk) == SUCCESS && chunk == own);
        }
        EXPECT(scaled > 1000);
        EXPECT(comm_end(&comm) == SUCCESS);
    }
    setenv("DYNAMICCL_POLICY", policy, 1);
}

/* How the threads of this host round while they call. */
static int rounding = FE_TONEAREST;

static int call_rounding(const comm_t *comm, call_t *call) {
    fesetround(rounding);
    int result = comm_call(comm, call);
    EXPECT(fegetround() == rounding);
    fesetround(FE_TONEAREST);
    return result;
}

/* Decisions of the same calls on a communicator of this version, in this order, with other calls between. */
static uint64_t decisions(int version, int step, int registered, bool others) {
    comm_t comm = begin(version, 16, 2);
    uint64_t digests[400] = {0};
    for (int i = 0; i < 400; i++) {
        int which = i * step % 400;
        uint64_t state = 1000 + (uint64_t)which, other = 5000 + (uint64_t)i;
        call_t between = call_draw(&other), call = call_draw(&state);
        if (others) EXPECT(comm_call(&comm, &between) == SUCCESS);
        call.registered = registered;
        EXPECT(call_rounding(&comm, &call) == SUCCESS);
        digests[which] = fnv(fnv(7, call.table, sizeof call.table), &call.channels, sizeof call.channels);
    }
    EXPECT(comm_end(&comm) == SUCCESS);
    return fnv(7, digests, sizeof digests);
}

static void fact_7_ranks_decide_alike(void) {
    /* Whatever may differ between ranks: the version, the order in which threads come, what came before, and how
     * a thread rounds. */
    uint64_t expected = decisions(3, 1, 0, false);
    for (int version = 3; version <= 7; version++) {
        EXPECT(decisions(version, 1, 0, false) == expected);
        EXPECT(decisions(version, 7, 0, true) == expected);
    }
    const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int m = 0; m < 3; m++) {
        rounding = modes[m];
        EXPECT(decisions(5, 1, 0, false) == expected);
    }
    rounding = FE_TONEAREST;
    setenv("DYNAMICCL_POLICY", "walk", 1);
    EXPECT(decisions(3, 1, 0, false) != expected);
    setenv("DYNAMICCL_POLICY", policy, 1);
}

static void fact_8_a_call_is_not_a_collective(void) {
    /* Calls that run nothing (simulation, probing) change nothing; sums of a group are bytes like others. */
    EXPECT(decisions(6, 1, 0, true) == decisions(6, 1, 0, false));
}

static void fact_9_graph_capture_changes_nothing(void) {
    /* While a graph is captured NCCL says that buffers are registered. */
    EXPECT(decisions(5, 1, 1, false) == decisions(5, 1, 0, false));
}

static int threads_running(void) {
    int count = -2;
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks);
    while (readdir(tasks)) count++;
    closedir(tasks);
    return count;
}

static void *one_comm(void *given) {
    int version = *(int *)given;
    for (int i = 0; i < 20; i++) {
        comm_t comm;
        uint64_t state = (uint64_t)i;
        if (comm_begin(&comm, &tuners[version], 16, 2, NULL) != SUCCESS) exit(1);
        for (int c = 0; c < 50; c++) {
            call_t call = call_draw(&state), before = call;
            if (comm_call(&comm, &call) != SUCCESS || !lawful(&before, &call)) exit(1);
        }
        comm_end(&comm);
    }
    return NULL;
}

static void fact_10_many_communicators_and_unloading(void) {
    enum { COMMS = 100, THREADS = 8 };
    int before = threads_running();
    comm_t comms[COMMS];
    for (int i = 0; i < COMMS; i++) comms[i] = begin(2 + i % 6, 8, 1);
    EXPECT(threads_running() == before);
    pthread_t ids[THREADS];
    int versions[THREADS] = {3, 4, 5, 6, 7, 3, 4, 5};
    for (int i = 0; i < THREADS; i++) pthread_create(&ids[i], NULL, one_comm, &versions[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < COMMS; i++) EXPECT(comm_end(&comms[i]) == SUCCESS);
    /* The last communicator has gone: NCCL closes the library, and opens it again for the next. */
    uint64_t expected = decisions(5, 1, 0, false);
    for (int round = 0; round < 5; round++) {
        EXPECT(dlclose(library) == 0);
        EXPECT(dlopen(library_path, RTLD_NOW | RTLD_NOLOAD) == NULL);
        library = library_open();
        for (int version = 2; version <= 7; version++) tuners[version] = tuner_of(library, version);
        EXPECT(decisions(5, 1, 0, false) == expected);
    }
}

static void fact_11_times_are_times(void) {
    comm_t comm = begin(5, 16, 2);
    uint64_t state = 11;
    int written = 0;
    for (int i = 0; i < 2000; i++) {
        call_t call = call_draw(&state), before = call;
        EXPECT(comm_call(&comm, &call) == SUCCESS && lawful(&before, &call));
        int chosen = argmin(call.table, ENTRIES, false);
        if (call.table[chosen] == before.table[chosen]) continue;
        /* No time of this network is a thousandth of what NCCL predicts. */
        EXPECT(call.table[chosen] > before.table[chosen] / 1000);
        written++;
    }
    EXPECT(written > 500);
    EXPECT(comm_end(&comm) == SUCCESS);
}

static void fact_12_off_and_observe_change_nothing(void) {
    /* NCCL_CTA_POLICY_EFFICIENCY is off where any tuner is loaded; beyond that, these are NCCL's default. */
    const char *modes[] = {"off", "observe"};
    for (int m = 0; m < 2; m++) {
        setenv("DYNAMICCL_MODE", modes[m], 1);
        for (int version = 2; version <= 7; version++) {
            comm_t comm;
            log_clear();
            EXPECT(comm_begin(&comm, &tuners[version], 16, 2, log_line) == SUCCESS);
            EXPECT((comm.context == NULL) == (m == 0));
            uint64_t state = 12;
            for (int i = 0; i < 500; i++) {
                call_t call = call_draw(&state), before = call;
                size_t chunk = 65536;
                EXPECT(comm_call(&comm, &call) == SUCCESS && !memcmp(&call, &before, sizeof call));
                if (version >= 6) comm_chunk(&comm, call.collective, call.bytes, RING, SIMPLE, 1, &chunk);
                EXPECT(chunk == 65536);
            }
            EXPECT(log_has("would be ") == (m == 1 && version > 2));
            EXPECT(comm_end(&comm) == SUCCESS);
        }
    }
    unsetenv("DYNAMICCL_MODE");
}

static void fact_13_bytes_are_exact(void) {
    /* Sizes that differ beyond 32 bits, or by one byte, are different calls: each as on a communicator of its own. */
    comm_t shared = begin(5, 16, 2);
    for (int i = 0; i < 40; i++) {
        const size_t sizes[] = {4096, 4097, 4096 + ((size_t)1 << 32), 4096 + ((size_t)1 << 40)};
        uint64_t state = 13 + (uint64_t)i;
        call_t call = call_draw(&state);
        for (int s = 0; s < 4; s++) {
            comm_t own = begin(5, 16, 2);
            call_t a = call, b = call;
            a.bytes = b.bytes = sizes[s];
            EXPECT(comm_call(&shared, &a) == SUCCESS && comm_call(&own, &b) == SUCCESS);
            EXPECT(!memcmp(&a, &b, sizeof a));
            EXPECT(comm_end(&own) == SUCCESS);
        }
    }
    EXPECT(comm_end(&shared) == SUCCESS);
}

static void fact_14_every_version_gets_its_arguments(void) {
    for (int version = 2; version <= 7; version++) {
        char begins[64];
        snprintf(begins, sizeof begins, "tuner v%d, 24 ranks on 3 nodes", version);
        log_clear();
        comm_t comm = begin(version, 24, 3);
        EXPECT(log_count(LOG_WARN) == 0 && log_count(LOG_INFO) == 1 && log_has(begins));
        EXPECT(log_has("policy ") && log_has("context none") && log_has("mode act"));
        EXPECT(log_has("communicator 0x1234567890abcdef") == (version >= 5));
        EXPECT(log_has("3 NVLink domains of 4 to 8 ranks") == (version >= 5));
        EXPECT(!strcmp(*(const char **)tuners[version].table, "DynamICCL"));
        uint64_t state = 14;
        int changed = 0;
        for (int i = 0; i < 200; i++) {
            call_t call = call_draw(&state), before = call;
            EXPECT(comm_call(&comm, &call) == SUCCESS && lawful(&before, &call));
            changed += memcmp(&call, &before, sizeof call) != 0;
        }
        /* Version 2 shows no table: it is only looked on. */
        EXPECT(version == 2 ? changed == 0 : changed > 50);
        EXPECT(comm_end(&comm) == SUCCESS);
    }
    /* A log is no place for formats: this one would crash. */
    setenv("DYNAMICCL_POLICY", "/nowhere/%n%s%s%n", 1);
    comm_t comm;
    log_clear();
    EXPECT(comm_begin(&comm, &tuners[5], 16, 2, log_line) == INVALID_USAGE && log_has("/nowhere/%n%s%s%n"));
    setenv("DYNAMICCL_POLICY", policy, 1);
    comm = (comm_t){0};
    EXPECT(comm_begin(&comm, &tuners[5], 16, 2, NULL) == SUCCESS && comm_end(&comm) == SUCCESS);
    /* What the user has fixed is said. */
    setenv("NCCL_PROTO", "^LL128", 1);
    log_clear();
    comm = begin(5, 16, 2);
    EXPECT(log_has("fixed by the user: NCCL_PROTO=^LL128") && comm_end(&comm) == SUCCESS);
    unsetenv("NCCL_PROTO");
}

static void fact_15_constants_stay(void) {
    for (int version = 5; version <= 7; version++) {
        union {
            constants_v5_t v5;
            constants_v7_t v7;
            unsigned char bytes[sizeof(constants_v7_t) + 64];
        } constants, copy;
        for (size_t i = 0; i < sizeof constants; i++) constants.bytes[i] = (unsigned char)(i * 31);
        copy = constants;
        nvl_domains_t domains = {2, 8, 8};
        void *context;
        tuner_v5_t *table = tuners[version].table;
        EXPECT(table->init(&context, 1, 16, 2, log_line, &domains, &constants) == SUCCESS);
        EXPECT(table->finalize(context) == SUCCESS);
        EXPECT(!memcmp(&constants, &copy, sizeof copy));
    }
}

static void calls_that_came_before_allocate_nothing(void) {
    enum { CALLS = 200 };
    comm_t comm = begin(5, 16, 2);
    call_t calls[CALLS];
    uint64_t state = 16;
    for (int i = 0; i < CALLS; i++) calls[i] = call_draw(&state);
    unsigned long made[2];
    for (int round = 0; round < 2; round++) {
        unsigned long before = allocations();
        for (int i = 0; i < CALLS; i++) {
            call_t call = calls[i];
            EXPECT(comm_call(&comm, &call) == SUCCESS);
        }
        made[round] = allocations() - before;
    }
    /* Logging the first decisions does, so this would notice. */
    if (allocations_counted()) EXPECT(made[0] > 0 && made[1] == 0);
    EXPECT(comm_end(&comm) == SUCCESS);
}

int run_facts(void) {
    void (*facts[])(void) = {
        fact_1_table_in_one_row,
        fact_2_what_is_marked_stays,
        fact_3_one_entry_always_wins,
        fact_4_calls_never_fail,
        fact_5_channels_are_legal_or_untouched,
        fact_6_chunks_are_whole_grains,
        fact_7_ranks_decide_alike,
        fact_8_a_call_is_not_a_collective,
        fact_9_graph_capture_changes_nothing,
        fact_10_many_communicators_and_unloading,
        fact_11_times_are_times,
        fact_12_off_and_observe_change_nothing,
        fact_13_bytes_are_exact,
        fact_14_every_version_gets_its_arguments,
        fact_15_constants_stay,
        calls_that_came_before_allocate_nothing,
    };
    policy = getenv("DYNAMICCL_POLICY");
    if (!policy) return 2;
    policy = strdup(policy);
    library = library_open();
    for (int version = 2; version <= 7; version++) tuners[version] = tuner_of(library, version);
    int count = (int)(sizeof facts / sizeof *facts);
    for (fact = 1; fact <= count; fact++) {
        log_clear();
        facts[fact - 1]();
        if (fact <= 15) printf("PASS fact %d\n", fact);
        else printf("PASS calls that came before allocate nothing\n");
    }
    free((void *)policy);
    dlclose(library);
    return 0;
}
