/* NCCL without a network: the functions of libnccl.so.2 that `live` uses, over memory that the ranks' processes share.
 * It asks the tuner as NCCL does (2.28: interface 5; FAKE_TUNER=6 for 6), takes the smallest entry of its table, moves
 * the data, and says that the call cost what `cost` says: ring/simple with 4 channels is the best of all, and what
 * NCCL would choose by itself takes twice as long. FAKE_CALL_US makes every call take that long in earnest,
 * FAKE_WRONG makes one number of every allreduce wrong, FAKE_EARLY lets the root of a broadcast be done in half the
 * time, FAKE_NOISE is the share by which times vary, FAKE_SLOW=FROM,TO makes these calls take twice as long, and
 * FAKE_HANG=RANK,CALL lets a rank hang after this call, or in ncclCommDestroy (CALL 0). Half of NCCL's chunk size takes 0.9 times as long, 128 threads (NCCL_NTHREADS) 0.8 times, and every channel takes 1 µs of each call away from
 * compute (NCCL's own: 2). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tuner_abi.h"

enum { SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, MOST_RANKS = 16 };
static const size_t SLOT = (size_t)64 << 20;

typedef struct { char path[128]; } id_t_;
struct stream;
void fake_cuda_work(struct stream *stream, double us);
void fake_cuda_steal(double us);
static const size_t CHUNK = 131072;

struct meeting { atomic_uint waiting, round, gone; };
struct comm {
    int ranks, rank, interface;
    unsigned calls;
    struct meeting *meeting;
    char *slots;
    char path[128];
    void *library, *context;
    tuner_v6_t tuner;
};

static char last_error[256];

static void say(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
    va_list arguments;
    (void)flags, (void)file, (void)line;
    if (level != LOG_WARN) return;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    fprintf(stderr, "fake NCCL WARN %s\n", last_error);
}

int ncclGetVersion(int *version) { *version = 22803; return SUCCESS; }
const char *ncclGetErrorString(int code) {
    return code == INVALID_USAGE ? "invalid usage" : code == SYSTEM_ERROR ? "unhandled system error" : "fake error";
}
const char *ncclGetLastError(void *comm) { (void)comm; return last_error; }

int ncclGetUniqueId(id_t_ *id) {
    memset(id, 0, sizeof *id);
    snprintf(id->path, sizeof id->path, "/dev/shm/fake-nccl-%d", getpid());
    int file = open(id->path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct meeting) + MOST_RANKS * SLOT)) return SYSTEM_ERROR;
    close(file);
    return SUCCESS;
}

static void meet(struct comm *comm) {
    struct meeting *meeting = comm->meeting;
    unsigned round = atomic_load(&meeting->round);
    if (atomic_fetch_add(&meeting->waiting, 1) + 1 == (unsigned)comm->ranks) {
        atomic_store(&meeting->waiting, 0);
        atomic_fetch_add(&meeting->round, 1);
    } else {
        while (atomic_load(&meeting->round) == round) sched_yield();
    }
}

static int load_tuner(struct comm *comm) {
    static constants_v5_t constants;
    nvl_domains_t domains = {comm->ranks, 1, 1};
    const char *name = getenv("NCCL_TUNER_PLUGIN"), *interface = getenv("FAKE_TUNER");
    comm->interface = interface ? atoi(interface) : 5;
    if (!name || !(comm->library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) return SUCCESS;
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", comm->interface);
    void *table = dlsym(comm->library, symbol);
    if (!table) return SUCCESS;
    memcpy(&comm->tuner, table, comm->interface >= 6 ? sizeof(tuner_v6_t) : sizeof(tuner_v5_t));
    return comm->tuner.init(&comm->context, 7, comm->ranks, comm->ranks, say, &domains, &constants);
}

int ncclCommInitRank(struct comm **to, int ranks, id_t_ id, int rank) {
    struct comm *comm = calloc(1, sizeof *comm);
    comm->ranks = ranks, comm->rank = rank;
    memcpy(comm->path, id.path, sizeof comm->path);
    int file = open(id.path, O_RDWR);
    if (file < 0 || ranks > MOST_RANKS) return SYSTEM_ERROR;
    char *shared = mmap(NULL, sizeof(struct meeting) + MOST_RANKS * SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    comm->meeting = (struct meeting *)shared;
    comm->slots = shared + sizeof(struct meeting);
    int result = load_tuner(comm);
    if (result) return result;
    meet(comm);
    if (rank == 0) unlink(id.path);
    *to = comm;
    return SUCCESS;
}

static void hang(const struct comm *comm, unsigned call) {
    const char *said = getenv("FAKE_HANG");
    int rank;
    unsigned at;
    if (said && sscanf(said, "%d,%u", &rank, &at) == 2 && rank == comm->rank && at == call)
        for (;;) pause();
}

int ncclCommDestroy(struct comm *comm) {
    hang(comm, 0);
    if (comm->tuner.finalize) comm->tuner.finalize(comm->context);
    if (comm->library) dlclose(comm->library);
    free(comm);
    return SUCCESS;
}
int ncclCommGetAsyncError(struct comm *comm, int *code) { (void)comm; *code = 0; return SUCCESS; }

/* What NCCL believes. LL128 is never available, as between hosts of old NICs. */
static void believe(float *table, int collective, size_t bytes) {
    for (int at = 0; at < ENTRIES; at++) table[at] = -1.0f;
    table[ENTRY(RING, LL)] = 20.0f + bytes / 500.0f;
    table[ENTRY(RING, SIMPLE)] = 30.0f + bytes / 1000.0f;
    if (collective == ALLREDUCE) {
        table[ENTRY(TREE, LL)] = 18.0f + bytes / 400.0f;
        table[ENTRY(TREE, SIMPLE)] = 29.0f + bytes / 900.0f;
    }
}

/* What the machine does to a call, the same on all ranks. */
static double disturb(unsigned call) {
    const char *share = getenv("FAKE_NOISE"), *slow = getenv("FAKE_SLOW");
    unsigned from = 1, to = 0;
    if (slow) sscanf(slow, "%u,%u", &from, &to);
    /* Calls of one timing are disturbed alike, else they would average out. */
    double noise = (share ? atof(share) : 0.01) * ((call / 9 * 2654435761u >> 16) % 100) / 100.0;
    return (1.0 + noise) * (from <= call && call <= to ? 2.0 : 1.0);
}

/* What it really costs. */
static double cost(const struct comm *comm, size_t bytes, int algorithm, int protocol, int channels) {
    int best = algorithm == RING && protocol == SIMPLE && channels == 4;
    double away = channels ? fabs(log2(channels) - 2.0) : 2.0;
    double noise = disturb(comm->calls);
    return (best ? 0.5 : 0.8 + 0.1 * away) * (20.0 + bytes / 1000.0) * noise;
}

static int call(struct comm *comm, int collective, size_t bytes, struct stream *stream) {
    float table[ENTRIES];
    int channels = 0, best = -1;
    comm->calls++;
    believe(table, collective, bytes);
    if (comm->tuner.coll) {
        int result = comm->tuner.coll(comm->context, collective, bytes, 1, (float **)table, ALGORITHMS, PROTOCOLS, 0,
                                      &channels);
        if (result) return result;
    }
    for (int at = 0; at < ENTRIES; at++)
        if (table[at] >= 0 && (best < 0 || table[at] < table[best])) best = at;
    const char *slow = getenv("FAKE_CALL_US");
    if (slow) usleep(atoi(slow));
    size_t chunk = CHUNK;
    if (comm->interface >= 6 && comm->tuner.chunk)
        comm->tuner.chunk(comm->context, collective, bytes, best / PROTOCOLS, best % PROTOCOLS, channels, &chunk);
    const char *threads = getenv("NCCL_NTHREADS");
    double knobs = (chunk == CHUNK / 2 ? 0.9 : 1.0) * (threads && atoi(threads) == 128 ? 0.8 : 1.0);
    fake_cuda_steal(channels ? channels : 2);
    double share = knobs * (getenv("FAKE_EARLY") && collective == BROADCAST && comm->rank == 0 ? 0.5 : 1.0);
    fake_cuda_work(stream, share * cost(comm, bytes, best / PROTOCOLS, best % PROTOCOLS, channels));
    return SUCCESS;
}

static float *slot(struct comm *comm, int rank) { return (float *)(comm->slots + rank * SLOT); }

/* Everybody puts down what it has, and takes what it needs. */
static void share(struct comm *comm, const void *mine, size_t floats) {
    memcpy(slot(comm, comm->rank), mine, floats * sizeof(float));
    meet(comm);
}
static void add_up(struct comm *comm, float *to, size_t from, size_t floats) {
    for (size_t at = 0; at < floats; at++) {
        to[at] = 0;
        for (int rank = 0; rank < comm->ranks; rank++) to[at] += slot(comm, rank)[from + at];
    }
}

/* All have taken what they need. A rank that is to hang does so now, while others go on to their next call. */
static int part(struct comm *comm, int result) {
    meet(comm);
    hang(comm, comm->calls);
    return result;
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, struct comm *comm, struct stream *stream) {
    (void)type, (void)op;
    int result = call(comm, ALLREDUCE, n * 4, stream);
    share(comm, from, n);
    add_up(comm, to, 0, n);
    if (getenv("FAKE_WRONG")) ((float *)to)[n / 2] += 1;
    return part(comm, result);
}
int ncclReduce(const void *from, void *to, size_t n, int type, int op, int root, struct comm *comm,
               struct stream *stream) {
    (void)type, (void)op;
    int result = call(comm, REDUCE, n * 4, stream);
    share(comm, from, n);
    if (comm->rank == root) add_up(comm, to, 0, n);
    return part(comm, result);
}
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, struct comm *comm, struct stream *stream) {
    (void)type;
    int result = call(comm, BROADCAST, n * 4, stream);
    share(comm, from, n);
    memcpy(to, slot(comm, root), n * 4);
    return part(comm, result);
}
int ncclAllGather(const void *from, void *to, size_t n, int type, struct comm *comm, struct stream *stream) {
    (void)type;
    int result = call(comm, ALLGATHER, n * 4 * comm->ranks, stream);
    share(comm, from, n);
    for (int rank = 0; rank < comm->ranks; rank++) memcpy((float *)to + rank * n, slot(comm, rank), n * 4);
    return part(comm, result);
}
int ncclReduceScatter(const void *from, void *to, size_t n, int type, int op, struct comm *comm,
                      struct stream *stream) {
    (void)type, (void)op;
    int result = call(comm, REDUCESCATTER, n * 4 * comm->ranks, stream);
    share(comm, from, n * comm->ranks);
    add_up(comm, to, comm->rank * n, n);
    return part(comm, result);
}
