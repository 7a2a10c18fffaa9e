/* The facts that a plugin must get right, by their numbers in docs/plugin.md. Decisions come
 * from the policy that DYNAMICCL_POLICY names, which should be a wild one: what it decides does not matter here, what
 * NCCL gets does. */
#ifndef FACTS_H
#define FACTS_H

#include "host.h"

#include <math.h>

extern int fact;
extern const char *policy;
extern void *library;
extern tuner_t tuners[8];

#define EXPECT(what)                                                                                           \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            fprintf(stderr, "FAIL fact %d (%s:%d): %s\n", fact, __FILE__, __LINE__, #what);                    \
            log_print();                                                                                       \
            exit(1);                                                                                           \
        }                                                                                                      \
    } while (0)

/* A communicator that logs. */
comm_t begin(int version, size_t ranks, size_t nodes);
/* At most one entry has changed, it was available, it wins however NCCL scans, and channels are legal. */
bool lawful(const call_t *before, const call_t *after);
/* Decisions of the same calls on a communicator of this version, in this order, with other calls between. */
uint64_t decisions(int version, int step, int registered, bool others);

void fact_1_table_in_one_row(void);
void fact_2_what_is_marked_stays(void);
void fact_3_one_entry_always_wins(void);
void fact_4_calls_never_fail(void);
void fact_5_channels_are_legal_or_untouched(void);
void fact_6_chunks_are_whole_grains(void);
void fact_7_ranks_decide_alike(void);
void fact_8_a_call_is_not_a_collective(void);
void fact_9_graph_capture_changes_nothing(void);
void fact_10_many_communicators_and_unloading(void);
void fact_11_times_are_times(void);
void fact_12_off_and_observe_change_nothing(void);
void fact_13_bytes_are_exact(void);
void fact_14_every_version_gets_its_arguments(void);
void fact_15_constants_stay(void);
void calls_that_came_before_allocate_nothing(void);

#endif
