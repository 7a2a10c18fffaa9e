/* NCCL's tuner interface, versions 2 to 7, written down once more: the host must not share a mistake with the
 * library. After src/include/plugin/tuner/tuner_v2.h ... tuner_v7.h of NVIDIA/nccl. */
#ifndef TUNER_ABI_H
#define TUNER_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER, ALLREDUCE };
enum { TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT, ALGORITHMS };
enum { LL, LL128, SIMPLE, PROTOCOLS };
enum { ENTRIES = ALGORITHMS * PROTOCOLS };
#define ENTRY(algorithm, protocol) ((algorithm) * PROTOCOLS + (protocol))
enum { SUCCESS = 0, INVALID_USAGE = 5 };
enum { LOG_WARN = 2, LOG_INFO = 3 };

typedef void (*logger_t)(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

typedef struct { int domains, fewest, most; } nvl_domains_t;

#define CONSTANTS(generations)                                                                                 \
    struct {                                                                                                   \
        double base[7][3], hardware[3][7][3];                                                                  \
        double ll[generations][3], ring128[generations][3], tree128[generations][3];                           \
        double tree[generations][3], nvls_tree[generations][3];                                                \
    }
typedef CONSTANTS(4) constants_v5_t;
typedef CONSTANTS(5) constants_v7_t;

typedef int (*late_init_t)(size_t ranks, size_t nodes, logger_t logger, void **context);
typedef int (*early_init_t)(void **context, uint64_t id, size_t ranks, size_t nodes, logger_t logger,
                            nvl_domains_t *domains, void *constants);
typedef int (*cleanup_t)(void *context);
typedef int (*coll_v2_t)(void *context, int collective, size_t bytes, int collnet, int nvls, int pipelined,
                         int *algorithm, int *protocol, int *channels);
typedef int (*coll_v3_t)(void *context, int collective, size_t bytes, int pipelined, float **table, int algorithms,
                         int protocols, int *channels);
typedef int (*coll_v4_t)(void *context, int collective, size_t bytes, int pipelined, float **table, int algorithms,
                         int protocols, int registered, int *channels);
typedef int (*chunk_t)(void *context, int collective, size_t bytes, int algorithm, int protocol, int channels,
                       size_t *chunk);

typedef struct { const char *name; late_init_t init; coll_v2_t coll; cleanup_t destroy; } tuner_v2_t;
typedef struct { const char *name; late_init_t init; coll_v3_t coll; cleanup_t destroy; } tuner_v3_t;
typedef struct { const char *name; late_init_t init; coll_v4_t coll; cleanup_t destroy; } tuner_v4_t;
typedef struct { const char *name; early_init_t init; coll_v4_t coll; cleanup_t finalize; } tuner_v5_t;
typedef struct {
    const char *name;
    early_init_t init;
    coll_v4_t coll;
    cleanup_t finalize;
    chunk_t chunk;
} tuner_v6_t;

#endif
