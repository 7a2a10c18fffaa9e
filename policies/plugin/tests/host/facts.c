#include "facts.h"

#include <dlfcn.h>

int fact;
const char *policy;
void *library;
tuner_t tuners[8];

comm_t begin(int version, size_t ranks, size_t nodes) {
    comm_t comm;
    EXPECT(comm_begin(&comm, &tuners[version], ranks, nodes, log_line) == SUCCESS);
    EXPECT(comm.context != NULL);
    return comm;
}

static bool available(float us) { return us >= 0 && isfinite(us); }

bool lawful(const call_t *before, const call_t *after) {
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
