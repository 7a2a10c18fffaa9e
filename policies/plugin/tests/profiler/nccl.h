/* What NCCL declares of its profiler and env interfaces, as far as this host fills it: layouts of
 * src/include/plugin/profiler/profiler_v1.h … profiler_v6.h at NCCL 2.26.2 (v1 to v3), 2.27.3, 2.28.3 and 2.29.2,
 * and of src/include/plugin/env/env_v1.h and env_v2.h at NCCL 2.30.7. */
#include <stdint.h>
#include <stddef.h>

enum { GROUP = 1, COLL = 2, P2P = 4, PROXY_OP = 8, KERNEL_CH = 64, GROUP_API = 256, COLL_API = 512, CE_COLL = 4096 };
enum { KERNEL_CH_STOP = 22 };

typedef void (*logger_t)(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

struct coll_v1 {
  const char *name; uint64_t comm, seq; uint8_t func; const void *send; void *recv; size_t count; int root;
  uint8_t datatype; uint32_t op; size_t traffic; uint8_t channels, warps, algo, proto; int collnet, nvls;
};
struct coll_v2 {
  const char *name; uint64_t comm, seq; const char *func; const void *send; void *recv; size_t count; int root;
  const char *datatype; size_t traffic; uint8_t channels, warps; const char *algo, *proto;
};
struct coll_v3 {
  const char *name; uint64_t comm, seq; const char *func; const void *send; void *recv; size_t count; int root;
  const char *datatype; uint8_t channels, warps; const char *algo, *proto;
};
struct coll_v4 {
  uint64_t seq; const char *func; const void *send; void *recv; size_t count; int root;
  const char *datatype; uint8_t channels, warps; const char *algo, *proto;
};
struct coll_v5 {
  uint64_t seq; const char *func; const void *send; void *recv; size_t count; int root;
  const char *datatype; uint8_t channels, warps; const char *algo, *proto; void *group;
};
struct kernel_v3 { uint8_t channel; };
struct kernel_v4 { uint8_t channel; uint64_t timer; };

struct descr_v1 { uint8_t type; void *parent; int rank; union { struct coll_v1 coll; }; };
struct descr_v2 { uint8_t type; void *parent; int rank; union { struct coll_v2 coll; }; };
struct descr_v3 { uint8_t type; void *parent; int rank; union { struct coll_v3 coll; struct kernel_v3 kernel; }; };
struct descr_v4 { uint8_t type; void *parent; int rank; union { struct coll_v4 coll; struct kernel_v4 kernel; }; };
struct descr_v5 { uint64_t type; void *parent; int rank; union { struct coll_v5 coll; struct kernel_v4 kernel; }; };

union descr { struct descr_v1 v1; struct descr_v2 v2; struct descr_v3 v3; struct descr_v4 v4; struct descr_v5 v5; };
union state { struct { size_t size; int steps; } v1; struct { uint64_t timer; } kernel; };

/* init has three forms; the table is otherwise the same in all versions. */
struct profiler {
  const char *name;
  union {
    int (*v1)(void **context, int *mask);
    int (*v4)(void **context, int *mask, const char *name, uint64_t comm, int nodes, int ranks, int rank, logger_t);
    int (*v5)(void **context, uint64_t comm, int *mask, const char *name, int nodes, int ranks, int rank, logger_t);
  } init;
  int (*start)(void *context, void **handle, union descr *);
  int (*stop)(void *handle);
  int (*state)(void *handle, int state, union state *);
  int (*finalize)(void *context);
};

struct env_v1 {
  const char *name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
  int (*finalize)(void);
  const char *(*get)(const char *name);
};
struct env_v2 {
  const char *name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, logger_t);
  int (*finalize)(void);
  const char *(*get)(const char *name);
};
