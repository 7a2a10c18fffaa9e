#include "host.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

const char *library_path;

void *library_open(void) {
    /* As NCCL does. */
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return library;
}

tuner_t tuner_of(void *library, int version) {
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", version);
    void *table = dlsym(library, symbol);
    if (!table) {
        fprintf(stderr, "%s: no %s\n", library_path, symbol);
        exit(1);
    }
    return (tuner_t){version, table};
}

int comm_begin(comm_t *comm, const tuner_t *tuner, size_t ranks, size_t nodes, logger_t logger) {
    /* Whatever is there, the library must not read it. */
    *comm = (comm_t){tuner, (void *)0x1};
    nvl_domains_t domains = {(int)nodes, 4, 8};
    constants_v7_t constants = {0};
    uint64_t id = 0x1234567890abcdefULL;
    if (tuner->version < 5) return ((tuner_v2_t *)tuner->table)->init(ranks, nodes, logger, &comm->context);
    return ((tuner_v5_t *)tuner->table)->init(&comm->context, id, ranks, nodes, logger, &domains, &constants);
}

int comm_end(comm_t *comm) {
    const tuner_t *tuner = comm->tuner;
    void *context = comm->context;
    comm->context = NULL;
    if (tuner->version < 5) return ((tuner_v2_t *)tuner->table)->destroy(context);
    return ((tuner_v5_t *)tuner->table)->finalize(context);
}

int comm_call(const comm_t *comm, call_t *c) {
    const tuner_t *tuner = comm->tuner;
    float **table = (float **)c->table;
    int algorithm = -1, protocol = -1;
    switch (tuner->version) {
    case 2:
        return ((tuner_v2_t *)tuner->table)
            ->coll(comm->context, c->collective, c->bytes, 0, 0, c->pipelined, &algorithm, &protocol, &c->channels);
    case 3:
        return ((tuner_v3_t *)tuner->table)
            ->coll(comm->context, c->collective, c->bytes, c->pipelined, table, ALGORITHMS, PROTOCOLS, &c->channels);
    default:
        return ((tuner_v4_t *)tuner->table)
            ->coll(comm->context, c->collective, c->bytes, c->pipelined, table, ALGORITHMS, PROTOCOLS, c->registered,
                   &c->channels);
    }
}

int comm_chunk(const comm_t *comm, int collective, size_t bytes, int algorithm, int protocol, int channels,
               size_t *chunk) {
    tuner_v6_t *table = comm->tuner->table;
    return table->chunk(comm->context, collective, bytes, algorithm, protocol, channels, chunk);
}

enum { LINES = 4096, WIDTH = 1024 };
static char lines[LINES][WIDTH];
static int levels[LINES], logged;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

void log_line(int level, unsigned long flags, const char *file, int line, const char *fmt, ...) {
    (void)flags, (void)file, (void)line;
    pthread_mutex_lock(&log_lock);
    if (logged < LINES) {
        va_list arguments;
        va_start(arguments, fmt);
        vsnprintf(lines[logged], WIDTH, fmt, arguments);
        va_end(arguments);
        levels[logged++] = level;
    }
    pthread_mutex_unlock(&log_lock);
}

void log_clear(void) { logged = 0; }

int log_count(int level) {
    int count = 0;
    for (int i = 0; i < logged; i++) count += levels[i] == level;
    return count;
}

bool log_has(const char *text) {
    for (int i = 0; i < logged; i++)
        if (strstr(lines[i], text)) return true;
    return false;
}

void log_print(void) {
    for (int i = 0; i < logged; i++) fprintf(stderr, "    log %d: %s\n", levels[i], lines[i]);
}

uint64_t draw(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

double uniform(uint64_t *state) { return (double)(draw(state) >> 11) / 9007199254740992.0; }

call_t call_draw(uint64_t *state) {
    call_t call = {.collective = (int)(draw(state) % 5), .pipelined = 1 + (int)(draw(state) % 3)};
    unsigned shift = (unsigned)(draw(state) % 35);
    call.bytes = ((size_t)1 << shift) + draw(state) % ((size_t)1 << shift);
    for (int a = 0; a < ALGORITHMS; a++)
        for (int p = 0; p < PROTOCOLS; p++) {
            bool there = draw(state) % 3 != 0 || (a == RING && p == SIMPLE);
            call.table[ENTRY(a, p)] = there ? (float)(8 + 120 * uniform(state)) : -1.0f;
        }
    return call;
}

int argmin(const float *table, int entries, bool down) {
    int best = -1;
    for (int i = 0; i < entries; i++) {
        int at = down ? entries - 1 - i : i;
        if (table[at] >= 0 && !isinf(table[at]) && (best < 0 || table[at] < table[best])) best = at;
    }
    return best;
}

uint64_t fnv(uint64_t hash, const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3ULL;
    return hash;
}

long resident_kib(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;
    if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2) exit(1);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}
