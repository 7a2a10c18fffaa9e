/* What stands in the table, and beside it. */
#include "facts.h"

void fact_1_table_in_one_row(void) {
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

void fact_2_what_is_marked_stays(void) {
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
        EXPECT(comm_end(&comm) == SUCCESS);
    }
    EXPECT(chosen > 1000);
    /* Sums in fp8 among more than 8: rings are priced out, by 1024. A policy would hardly choose one; the walk would. */
    setenv("DYNAMICCL_POLICY", "walk", 1);
    comm_t comm = begin(5, 16, 2);
    uint64_t state = 22;
    int rings = 0;
    for (int i = 0; i < 4000; i++) {
        call_t call = call_draw(&state);
        call.table[ENTRY(TREE, SIMPLE)] = 50;
        for (int p = 0; p < PROTOCOLS; p++) call.table[ENTRY(RING, p)] *= i % 2 ? 1024 : 1;
        call_t before = call;
        EXPECT(comm_call(&comm, &call) == SUCCESS && lawful(&before, &call));
        bool ring = argmin(call.table, ENTRIES, false) / PROTOCOLS == RING;
        EXPECT(!ring || i % 2 == 0);
        rings += ring;
    }
    EXPECT(rings > 100 && comm_end(&comm) == SUCCESS);
    setenv("DYNAMICCL_POLICY", policy, 1);
}

void fact_3_one_entry_always_wins(void) {
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

void fact_5_channels_are_legal_or_untouched(void) {
    setenv("DYNAMICCL_POLICY", "walk", 1);
    for (size_t round = 0; round < 4; round++) {
        size_t nodes = 1 + round % 2;
        bool gathers = round < 2;
        if (!gathers) setenv("NCCL_ALLGATHERV_ENABLE", "0", 1);
        comm_t comm = begin(6, 8 * nodes, nodes);
        uint64_t state = 5;
        int asked = 0, left = 0, allgathers = 0;
        for (int i = 0; i < 20000; i++) {
            call_t call = call_draw(&state), before = call;
            EXPECT(comm_call(&comm, &call) == SUCCESS && lawful(&before, &call));
            int algorithm = argmin(call.table, ENTRIES, false) / PROTOCOLS;
            bool unchecked = algorithm == COLLNET_DIRECT || algorithm == COLLNET_CHAIN || (algorithm == NVLS && nodes > 1);
            if (unchecked) EXPECT(call.channels == 0);
            allgathers += call.collective == ALLGATHER && call.channels > 0;
            asked += call.channels > 0;
            left += call.channels == 0;
        }
        EXPECT(asked > 1000 && left > 1000);
        /* NCCL asks about grouped broadcasts as about an allgather, and up to 2.30 believes whatever it is told. */
        EXPECT(gathers ? allgathers == 0 : allgathers > 100);
        EXPECT(comm_end(&comm) == SUCCESS);
    }
    unsetenv("NCCL_ALLGATHERV_ENABLE");
    setenv("DYNAMICCL_POLICY", policy, 1);
}

void fact_6_chunks_are_whole_grains(void) {
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

void fact_11_times_are_times(void) {
    comm_t comm = begin(6, 16, 2);
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

void fact_13_bytes_are_exact(void) {
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
