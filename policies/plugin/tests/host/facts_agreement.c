/* What ranks must agree on, whatever differs between them. */
#include "facts.h"

#include <fenv.h>

/* How the threads of this host round while they call. */
static int rounding = FE_TONEAREST;

/* Whether chunk sizes are asked for, too: they depend on what was answered last. */
static bool with_chunks = false;
static int scaled = 0;

static int call_rounding(const comm_t *comm, call_t *call) {
    fesetround(rounding);
    int result = comm_call(comm, call);
    EXPECT(fegetround() == rounding);
    fesetround(FE_TONEAREST);
    return result;
}

uint64_t decisions(int version, int step, int registered, bool others) {
    comm_t comm = begin(version, 16, 2);
    uint64_t digests[400] = {0};
    for (int i = 0; i < 400; i++) {
        int which = i * step % 400;
        uint64_t state = 1000 + (uint64_t)which, other = 5000 + (uint64_t)i;
        call_t between = call_draw(&other), call = call_draw(&state);
        if (others) EXPECT(comm_call(&comm, &between) == SUCCESS);
        call.registered = registered;
        EXPECT(call_rounding(&comm, &call) == SUCCESS);
        if (with_chunks) {
            int chosen = argmin(call.table, ENTRIES, false);
            size_t chunk = 65536;
            EXPECT(comm_chunk(&comm, call.collective, call.bytes, chosen / PROTOCOLS, chosen % PROTOCOLS, 8, &chunk) == SUCCESS);
            scaled += chunk != 65536;
            digests[which] = chunk;
        }
        digests[which] = digests[which] ^ fnv(fnv(7, call.table, sizeof call.table), &call.channels, sizeof call.channels);
    }
    EXPECT(comm_end(&comm) == SUCCESS);
    return fnv(7, digests, sizeof digests);
}

void fact_7_ranks_decide_alike(void) {
    /* Whatever may differ between ranks: the version, as long as all ask for chunk sizes or none does, the order in
     * which threads come, what came before, and how a thread rounds. */
    uint64_t expected = decisions(3, 1, 0, false), chunked = decisions(6, 1, 0, false);
    EXPECT(expected != chunked);
    for (int version = 3; version <= 7; version++) {
        EXPECT(decisions(version, 1, 0, false) == (version < 6 ? expected : chunked));
        EXPECT(decisions(version, 7, 0, true) == (version < 6 ? expected : chunked));
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

void fact_8_a_call_is_not_a_collective(void) {
    /* Calls that run nothing (simulation, probing) change nothing; sums of a group are bytes like others. */
    with_chunks = true;
    EXPECT(decisions(6, 1, 0, true) == decisions(6, 1, 0, false));
    EXPECT(scaled > 0);
    with_chunks = false;
}

void fact_9_graph_capture_changes_nothing(void) {
    /* While a graph is captured NCCL says that buffers are registered. */
    EXPECT(decisions(5, 1, 1, false) == decisions(5, 1, 0, false));
}

void fact_12_off_and_observe_change_nothing(void) {
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
