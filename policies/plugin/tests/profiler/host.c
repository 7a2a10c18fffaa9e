/* A host that loads the library as NCCL does and drives its profiler and env interfaces.
 *
 *   host LIBRARY SCENARIO [VERSION]
 *
 * Whatever the library returns must be success; a line on stdout says what else a scenario saw. */
#define _GNU_SOURCE
#include "nccl.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(that) do { if (!(that)) { printf("FAILED %s:%d: %s\n", __FILE__, __LINE__, #that); exit(1); } } while (0)
#define OK(call) CHECK((call) == 0)

static const char *library;
static int version;
static void *loaded;
static struct profiler *profiler;
static int warnings;

static void logger(int level, unsigned long flags, const char *file, int line, const char *fmt, ...) {
  char text[1024];
  va_list args;
  (void)flags; (void)file; (void)line;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (level == 2) { __atomic_fetch_add(&warnings, 1, __ATOMIC_RELAXED); printf("WARN %s\n", text); }
}

static void load(void) {
  char symbol[32];
  CHECK(loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL));
  snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
  CHECK(profiler = dlsym(loaded, symbol));
  CHECK(!strcmp(profiler->name, "DynamICCL"));
}

static void *begin(uint64_t comm, int nodes, int ranks, int rank, int *mask) {
  void *context = (void *)1;
  *mask = -1;
  if (version <= 3) OK(profiler->init.v1(&context, mask));
  else if (version == 4) OK(profiler->init.v4(&context, mask, "tp", comm, nodes, ranks, rank, logger));
  else OK(profiler->init.v5(&context, comm, mask, "tp", nodes, ranks, rank, logger));
  return context;
}

static void *start(void *context, union descr *descr) {
  void *handle = (void *)1;
  OK(profiler->start(context, &handle, descr));
  return handle;
}

static void *start_type(void *context, int type) {
  union descr d;
  memset(&d, 0, sizeof d);
  if (version >= 5) d.v5.type = (uint64_t)type; else d.v1.type = (uint8_t)type;
  return start(context, &d);
}

struct call { uint64_t comm, seq; int rank; int func; size_t count; uint8_t channels; };

static const char *funcs[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "AlltoAll"};

/* Rings of Simple with 16 warps; single-precision numbers; four ranks. */
#define FILL(d) do { d.type = COLL; d.rank = c.rank; d.coll.seq = c.seq; d.coll.count = c.count; \
    d.coll.channels = c.channels; d.coll.warps = 16; } while (0)
#define NAME(d) do { d.coll.func = funcs[c.func]; d.coll.datatype = "ncclFloat32"; d.coll.algo = "RING"; \
    d.coll.proto = "SIMPLE"; } while (0)

static void *start_coll(void *context, struct call c) {
  union descr d;
  size_t traffic = 4 * c.count * (c.func == 4 ? 2 : c.func == 2 || c.func == 3 ? 4 : 1);
  memset(&d, 0, sizeof d);
  switch (version) {
  case 1: FILL(d.v1); d.v1.coll.comm = c.comm; d.v1.coll.func = (uint8_t)c.func; d.v1.coll.datatype = 7;
          d.v1.coll.traffic = traffic; d.v1.coll.algo = 1; d.v1.coll.proto = 2; break;
  case 2: FILL(d.v2); NAME(d.v2); d.v2.coll.comm = c.comm; d.v2.coll.traffic = traffic; break;
  case 3: FILL(d.v3); NAME(d.v3); d.v3.coll.comm = c.comm; break;
  case 4: FILL(d.v4); NAME(d.v4); break;
  default: FILL(d.v5); NAME(d.v5); break;
  }
  return start(context, &d);
}

static void *start_kernel(void *context, void *parent, int channel, uint64_t timer) {
  union descr d;
  memset(&d, 0, sizeof d);
  if (version == 3) { d.v3.type = KERNEL_CH; d.v3.parent = parent; d.v3.kernel.channel = (uint8_t)channel; }
  else if (version == 4) {
    d.v4.type = KERNEL_CH; d.v4.parent = parent; d.v4.kernel.channel = (uint8_t)channel; d.v4.kernel.timer = timer;
  } else {
    d.v5.type = KERNEL_CH; d.v5.parent = parent; d.v5.kernel.channel = (uint8_t)channel; d.v5.kernel.timer = timer;
  }
  return start(context, &d);
}

static void stop_kernel(void *handle, uint64_t timer) {
  union state s;
  memset(&s, 0, sizeof s);
  s.kernel.timer = timer;
  if (version >= 4) OK(profiler->state(handle, KERNEL_CH_STOP, &s));
  OK(profiler->stop(handle));
}

/* A collective as NCCL runs one: launched by one thread, its kernels told of by another. */
static void run(void *context, struct call c, uint64_t took) {
  void *coll = start_coll(context, c), *kernels[64];
  CHECK(coll);
  OK(profiler->stop(coll));
  if (version < 3) return;
  for (int ch = 0; ch < c.channels; ch++) CHECK(kernels[ch] = start_kernel(context, coll, ch, 1000000 + 10 * (uint64_t)ch));
  for (int ch = 0; ch < c.channels; ch++) stop_kernel(kernels[ch], 1000000 + took - (uint64_t)ch);
}

/* Launches alone, which is a record each where kernels are not timed. */
static void launch(void *context, uint64_t comm, uint64_t from, uint64_t count) {
  for (uint64_t seq = from; seq < from + count; seq++) {
    void *coll = start_coll(context, (struct call){comm, seq, 0, 4, 1024, 1});
    if (coll) OK(profiler->stop(coll));
  }
}

static void scenario_records(void) {
  int mask;
  load();
  void *context = begin(0xfeedf00dcafe, 2, 4, 3, &mask);
  CHECK(context);
  CHECK(start_type(context, GROUP));
  CHECK(!start_type(context, P2P) && !start_type(context, PROXY_OP));
  if (version >= 5) CHECK(!start_type(context, GROUP_API) && !start_type(context, COLL_API) && !start_type(context, CE_COLL));
  struct call c = {0xfeedf00dcafe, 7, 3, 4, 262144, 2};
  run(context, c, 61974);
  c.func = 2; c.seq = 0; c.count = 1024; c.channels = 1;
  run(context, c, 5000);
  c.func = 0; c.seq = 1; c.count = 1;
  run(context, c, 4000);
  c.func = 5;
  CHECK(!start_coll(context, c));
  c.func = 6;
  if (version >= 2) CHECK(!start_coll(context, c));
  if (version == 3) usleep(2500000);
  OK(profiler->finalize(context));
  printf("mask %d warnings %d\n", mask, warnings);
}

/* More than fit: those that are never stopped, and those that come faster than they are written. */
static void scenario_overflow(void) {
  int mask;
  load();
  void *context = begin(1, 1, 4, 0, &mask);
  for (uint64_t seq = 0; seq < 5000; seq++) start_coll(context, (struct call){1, seq, 0, 4, 8, 1});
  launch(context, 1, 5000, 95000);
  OK(profiler->finalize(context));
  printf("mask %d warnings %d\n", mask, warnings);
}

/* A thousand collectives of a communicator that is aborted: launched, and their kernels never speak. Another goes on. */
static void scenario_abort(void) {
  int mask;
  load();
  void *context = begin(1, 1, 4, 0, &mask), *aborted = begin(2, 1, 4, 0, &mask);
  for (uint64_t seq = 0; seq < 1000; seq++) OK(profiler->stop(start_coll(aborted, (struct call){2, seq, 0, 4, 8, 1})));
  OK(profiler->finalize(aborted));
  for (uint64_t seq = 0; seq < 5000; seq++) {
    run(context, (struct call){1, seq, 0, 4, 8, 1}, 5000);
    if (seq % 1000 == 0) usleep(60000);
  }
  OK(profiler->finalize(context));
  printf("mask %d warnings %d\n", mask, warnings);
}

static void pace(void *context, uint64_t count) {
  for (uint64_t from = 0; from < count; from += 2000) { launch(context, 1, from, 2000); usleep(60000); }
}

static void scenario_rotate(void) {
  int mask;
  load();
  void *context = begin(1, 1, 4, 0, &mask);
  pace(context, 30000);
  OK(profiler->finalize(context));
  printf("mask %d warnings %d\n", mask, warnings);
}

/* A disk that takes no more than 100,000 bytes of a file, until somebody makes room. */
static void scenario_full(void) {
  struct rlimit limit = {100000, RLIM_INFINITY};
  int mask;
  signal(SIGXFSZ, SIG_IGN);
  OK(setrlimit(RLIMIT_FSIZE, &limit));
  load();
  void *context = begin(1, 1, 4, 0, &mask);
  pace(context, 10000);
  if (getenv("MAKE_ROOM")) {
    usleep(1000000); /* twenty rounds of the writer, so that it has met the full disk with all of these even on a busy machine */
    limit.rlim_cur = RLIM_INFINITY;
    OK(setrlimit(RLIMIT_FSIZE, &limit));
    launch(context, 1, 10000, 100);
  }
  OK(profiler->finalize(context));
  printf("mask %d warnings %d\n", mask, warnings);
}

static void scenario_fork(void) {
  int mask, status;
  load();
  void *context = begin(1, 1, 4, 0, &mask);
  launch(context, 1, 0, 100);
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (!child) {
    launch(context, 1, 100, 50);           /* the parent's communicator: nobody writes these */
    OK(profiler->finalize(context));
    void *own = begin(2, 1, 4, 0, &mask);
    CHECK(own && own != context);
    launch(own, 2, 0, 10);
    OK(profiler->finalize(own));
    dlclose(loaded);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  launch(context, 1, 100, 100);
  OK(profiler->finalize(context));
  printf("child %d warnings %d\n", child, warnings);
}

static long status_of(const char *key) {
  char line[256];
  long value = -1;
  FILE *file = fopen("/proc/self/status", "r");
  CHECK(file);
  while (fgets(line, sizeof line, file)) if (!strncmp(line, key, strlen(key))) value = strtol(line + strlen(key), NULL, 10);
  fclose(file);
  return value;
}

/* Threads of this process. One that was joined is still counted until the kernel has put it away. */
static long threads_left(void) {
  for (int wait = 0; wait < 1000 && status_of("Threads:") != 1; wait++) nanosleep(&(struct timespec){0, 1000000}, NULL);
  return status_of("Threads:");
}

static void scenario_reload(void) {
  int mask;
  long before = 0;
  for (int round = 0; round < 40; round++) {
    load();
    void *context = begin(1, 1, 4, 0, &mask), *second = begin(1, 1, 4, 1, &mask);
    CHECK(status_of("Threads:") == 2);
    launch(context, 1, 10 * (uint64_t)round, 10);
    OK(profiler->finalize(second));
    CHECK(status_of("Threads:") == 2);
    OK(profiler->finalize(context));
    CHECK(threads_left() == 1);
    OK(dlclose(loaded));
    CHECK(!dlopen(library, RTLD_NOW | RTLD_NOLOAD));
    if (round == 9) before = status_of("VmRSS:");
  }
  int status;
  pid_t child = fork();
  if (!child) _exit(0);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  printf("grew %ld KiB\n", status_of("VmRSS:") - before);
}

/* Unloaded under way, which NCCL does not do: the thread that writes must not lose the ground. */
static void scenario_abandon(void) {
  int mask;
  load();
  CHECK(begin(1, 1, 4, 0, &mask));
  OK(dlclose(loaded));
  usleep(300000);
  CHECK(status_of("Threads:") == 2);
  printf("alive\n");
}

static void scenario_nulls(void) {
  int mask = -1;
  void *context = (void *)1, *handle = (void *)1;
  union descr d;
  union state s;
  memset(&d, 0, sizeof d);
  memset(&s, 0, sizeof s);
  load();
  if (version <= 3) { OK(profiler->init.v1(NULL, NULL)); OK(profiler->init.v1(&context, NULL)); OK(profiler->init.v1(NULL, &mask)); }
  else if (version == 4) {
    OK(profiler->init.v4(NULL, NULL, NULL, 0, 0, 0, 0, NULL));
    OK(profiler->init.v4(NULL, &mask, NULL, 0, 0, 0, 0, NULL));
    OK(profiler->init.v4(&context, NULL, NULL, 0, -1, -1, -1, NULL));
  } else {
    OK(profiler->init.v5(NULL, 0, NULL, NULL, 0, 0, 0, NULL));
    OK(profiler->init.v5(NULL, 0, &mask, NULL, 0, 0, 0, NULL));
    OK(profiler->init.v5(&context, 0, NULL, NULL, -1, -1, -1, NULL));
  }
  /* The mask is the whole process's: who cannot be recorded leaves it to the others. */
  CHECK(mask == -1 && context);
  OK(profiler->start(NULL, NULL, NULL));
  OK(profiler->start(context, NULL, &d));
  OK(profiler->start(context, &handle, NULL));
  CHECK(!handle);
  void *odd[] = {NULL, context, (void *)1, (void *)-1, &d, (void *)0x8000000000000000, (void *)0xffffff0000000000};
  for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
    /* All zeros is a broadcast to v1, whose names are numbers. */
    for (int type = 0; type < 16; type++) CHECK(!start_type(odd[k], 1 << type) || type == 0 || (type == 1 && version == 1));
    if (version >= 3) CHECK(!start_kernel(odd[k], odd[k], 255, 5));
    for (int st = -1; st < 40; st++) { OK(profiler->state(odd[k], st, NULL)); OK(profiler->state(odd[k], st, &s)); }
    OK(profiler->stop(odd[k]));
    if (odd[k] != context) OK(profiler->finalize(odd[k]));
  }
  void *coll = start_coll(context, (struct call){1, UINT64_MAX, -1, 4, SIZE_MAX, 255});
  CHECK(coll);
  if (version >= 3) CHECK(!start_kernel(context, coll, 64, UINT64_MAX));
  OK(profiler->stop(coll)); OK(profiler->stop(coll));
  OK(profiler->finalize(context)); OK(profiler->finalize(context));
  OK(profiler->stop(coll));
  CHECK(!start_coll(context, (struct call){1, 1, 0, 4, 8, 1}));
  CHECK(threads_left() == 1);
  printf("warnings %d\n", warnings);
}

static void scenario_off(void) {
  int mask;
  load();
  CHECK(!begin(1, 1, 4, 0, &mask) && mask == 0);
  CHECK(!start_coll(NULL, (struct call){1, 1, 0, 4, 8, 1}));
  CHECK(status_of("Threads:") == 1);
  printf("warnings %d\n", warnings);
}

enum { THREADS = 8, EACH = 2000 };

static void *work(void *of) {
  int mask, me = (int)(intptr_t)of;
  for (int life = 0; life < 4; life++) {
    void *context = begin(100 + (uint64_t)me, 1, 4, 0, &mask);
    CHECK(context && mask == (COLL | KERNEL_CH));
    for (int k = 0; k < EACH / 4; k++) {
      run(context, (struct call){100 + (uint64_t)me, (uint64_t)(life * EACH / 4 + k), 0, 4, 8, 4}, 5000);
      if (k % 50 == 0) usleep(2000);
    }
    OK(profiler->finalize(context));
  }
  return NULL;
}

static void scenario_threads(void) {
  pthread_t threads[THREADS];
  load();
  for (intptr_t k = 0; k < THREADS; k++) OK(pthread_create(&threads[k], NULL, work, (void *)k));
  for (int k = 0; k < THREADS; k++) OK(pthread_join(threads[k], NULL));
  CHECK(status_of("Threads:") == 1);
  OK(dlclose(loaded));
  printf("calls %d warnings %d\n", THREADS * EACH, warnings);
}

/* Answers of the env plugin: its variables with and without the user's, and one that is nobody's. */
static void scenario_env(void) {
  static const char *names[] = {"NCCL_NTHREADS", "NCCL_BUFFSIZE", "NCCL_ALGO", "HOME", "NO_SUCH_VARIABLE", ""};
  struct env_v1 *v1;
  struct env_v2 *v2;
  CHECK(loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL));
  CHECK(v1 = dlsym(loaded, "ncclEnvPlugin_v1"));
  CHECK(v2 = dlsym(loaded, "ncclEnvPlugin_v2"));
  const char *(*get)(const char *) = version == 1 ? v1->get : v2->get;
  CHECK(!get(NULL));
  int result = version == 1 ? v1->init(2, 28, 9, "") : v2->init(2, 30, 7, NULL, version == 2 ? logger : NULL);
  printf("init %d warnings %d\n", result, warnings);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const char *set = getenv(names[k]), *first = get(names[k]);
    if (set) CHECK(first == set);
    for (int again = 0; again < 1000; again++) CHECK(get(names[k]) == first);
    if (strcmp(names[k], "HOME")) printf("%s=%s\n", names[k], first ? first : "(null)");
  }
  OK(version == 1 ? v1->finalize() : v2->finalize());
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) CHECK(get(names[k]) == getenv(names[k]));
  OK(dlclose(loaded));
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static int empty(void *handle) { __asm__ volatile("" ::"r"(handle) : "memory"); return 0; }
static int (*volatile empty_call)(void *) = empty;

static int by_value(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }

static void print(const char *what, double *of, int count) {
  qsort(of, (size_t)count, sizeof *of, by_value);
  printf("%-32s p50 %7.0f ns   p99 %7.0f ns\n", what, of[count / 2], of[count / 100 * 99]);
}

/* Time of every call, in rounds that the writer keeps up with; the clock's own time is in all of them alike. */
static void scenario_bench(void) {
  enum { ROUNDS = 100, PER = 1000 };
  static double clocks[ROUNDS * PER], calls[ROUNDS * PER], starts[ROUNDS * PER], stops[ROUNDS * PER], kstarts[ROUNDS * PER],
    kstates[ROUNDS * PER], kstops[ROUNDS * PER];
  int mask;
  load();
  void *context = begin(1, 1, 4, 0, &mask);
  CHECK(context);
  union state s;
  s.kernel.timer = 2000000;
  for (int k = 0; k < ROUNDS * PER; k++) {
    if (k % PER == 0) usleep(20000);
    struct call c = {1, (uint64_t)k, 0, 4, 1024, 1};
    double t = now();
    clocks[k] = now() - t;
    t = now(); empty_call(context); calls[k] = now() - t;
    t = now(); void *coll = start_coll(context, c); starts[k] = now() - t;
    t = now(); profiler->stop(coll); stops[k] = now() - t;
    t = now(); void *kernel = start_kernel(context, coll, 0, 1000000); kstarts[k] = now() - t;
    t = now(); profiler->state(kernel, KERNEL_CH_STOP, &s); kstates[k] = now() - t;
    t = now(); profiler->stop(kernel); kstops[k] = now() - t;
  }
  OK(profiler->finalize(context));
  print("clock alone", clocks, ROUNDS * PER);
  print("empty C call", calls, ROUNDS * PER);
  print("start of a collective", starts, ROUNDS * PER);
  print("stop of a collective", stops, ROUNDS * PER);
  print("start of a kernel", kstarts, ROUNDS * PER);
  print("state of a kernel", kstates, ROUNDS * PER);
  print("stop of a kernel, record done", kstops, ROUNDS * PER);
}

int main(int argc, char **argv) {
  static const struct { const char *name; void (*run)(void); } scenarios[] = {
    {"records", scenario_records}, {"overflow", scenario_overflow}, {"abort", scenario_abort}, {"rotate", scenario_rotate}, {"full", scenario_full},
    {"fork", scenario_fork}, {"reload", scenario_reload}, {"abandon", scenario_abandon}, {"nulls", scenario_nulls}, {"off", scenario_off},
    {"threads", scenario_threads}, {"env", scenario_env}, {"bench", scenario_bench},
  };
  if (argc < 3) { fprintf(stderr, "usage: %s LIBRARY SCENARIO [VERSION]\n", argv[0]); return 2; }
  alarm(60); /* a hang is a failure */
  library = argv[1];
  version = argc > 3 ? atoi(argv[3]) : 6;
  for (size_t k = 0; k < sizeof scenarios / sizeof *scenarios; k++)
    if (!strcmp(argv[2], scenarios[k].name)) { scenarios[k].run(); return 0; }
  fprintf(stderr, "unknown scenario %s\n", argv[2]);
  return 2;
}
