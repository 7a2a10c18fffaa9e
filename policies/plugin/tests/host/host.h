/* A host that does to the library what NCCL does, without NCCL. */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_abi.h"

/* The library, as some version of the interface. */
typedef struct {
    int version;
    void *table;
} tuner_t;

/* One communicator's context, and what it was made with. */
typedef struct {
    const tuner_t *tuner;
    void *context;
} comm_t;

/* A call, before and after. */
typedef struct {
    int collective, pipelined, registered, channels;
    size_t bytes;
    float table[ENTRIES]; /* in NCCL's order */
} call_t;

extern const char *library_path;

void *library_open(void);
tuner_t tuner_of(void *library, int version);

int comm_begin(comm_t *comm, const tuner_t *tuner, size_t ranks, size_t nodes, logger_t logger);
int comm_end(comm_t *comm);
int comm_call(const comm_t *comm, call_t *call);
int comm_chunk(const comm_t *comm, int collective, size_t bytes, int algorithm, int protocol, int channels,
               size_t *chunk);

/* What was logged since log_clear. Threads may log at the same time. */
void log_line(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);
void log_clear(void);
int log_count(int level);
bool log_has(const char *text);
void log_print(void);

/* SplitMix64: the calls of a seed are the same in every process. */
uint64_t draw(uint64_t *state);
double uniform(uint64_t *state);

/* A call of this kind that some NCCL could make, from a seed. */
call_t call_draw(uint64_t *state);
/* The entry that NCCL takes, scanning up or down; -1 for none. */
int argmin(const float *table, int entries, bool down);
uint64_t fnv(uint64_t hash, const void *data, size_t bytes);

/* Allocations of this process so far; 0 where they are not counted. */
unsigned long allocations(void);
bool allocations_counted(void);
long resident_kib(void);

int run_facts(void);
int run_faults(int count, char **arguments);
int run_digest(int count, char **arguments);
int run_latency(int count, char **arguments);
int run_show(int count, char **arguments);

#endif
