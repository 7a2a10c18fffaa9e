/* How communicators begin, fail to fail, and end. */
#include "facts.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

void fact_4_calls_never_fail(void) {
    for (int version = 2; version <= 7; version++) {
        comm_t comm = begin(version, 16, 2), none = {&tuners[version], NULL};
        const size_t bytes[] = {0, 1, (size_t)-1, (size_t)1 << 62};
        const int numbers[] = {-1, 0, 5, 14, 1 << 30, (int)0x80000000};
        log_clear();
        for (int b = 0; b < 4; b++)
            for (int n = 0; n < 6; n++) {
                uint64_t state = 4;
                call_t odd = call_draw(&state);
                odd.bytes = bytes[b];
                odd.pipelined = numbers[n];
                call_t before = odd;
                EXPECT(comm_call(&comm, &odd) == SUCCESS && lawful(&before, &odd));
                odd = before;
                EXPECT(comm_call(&none, &odd) == SUCCESS && !memcmp(&before, &odd, sizeof odd));
                odd.collective = numbers[n] == 0 ? 5 : numbers[n];
                before = odd;
                EXPECT(comm_call(&comm, &odd) == SUCCESS && !memcmp(&before, &odd, sizeof odd));
            }
        EXPECT(log_count(LOG_WARN) == 1);
        if (version >= 4) {
            tuner_v4_t *table = tuners[version].table;
            float row[21] = {10, 20};
            int channels = 0;
            EXPECT(table->coll(comm.context, ALLREDUCE, 1 << 20, 1, NULL, 7, 3, 0, &channels) == SUCCESS);
            EXPECT(table->coll(comm.context, ALLREDUCE, 1 << 20, 1, (float **)row, 7, 3, 0, NULL) == SUCCESS);
            EXPECT(table->coll(comm.context, ALLREDUCE, 1 << 20, 1, (float **)row, -7, 3, 0, &channels) == SUCCESS);
            EXPECT(channels == 0);
        }
        EXPECT(comm_end(&comm) == SUCCESS && comm_end(&none) == SUCCESS);
        /* Nowhere to put a context. */
        if (version < 5) EXPECT(((tuner_v2_t *)tuners[version].table)->init(16, 2, log_line, NULL) == SUCCESS);
        else EXPECT(((tuner_v5_t *)tuners[version].table)->init(NULL, 1, 16, 2, NULL, NULL, NULL) == SUCCESS);
    }
}

static int threads_running(void) {
    int count = -2;
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks);
    while (readdir(tasks)) count++;
    closedir(tasks);
    return count;
}

static void *one_comm(void *given) {
    int version = *(int *)given;
    for (int i = 0; i < 20; i++) {
        comm_t comm;
        uint64_t state = (uint64_t)i;
        if (comm_begin(&comm, &tuners[version], 16, 2, NULL) != SUCCESS) exit(1);
        for (int c = 0; c < 50; c++) {
            call_t call = call_draw(&state), before = call;
            if (comm_call(&comm, &call) != SUCCESS || !lawful(&before, &call)) exit(1);
        }
        comm_end(&comm);
    }
    return NULL;
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    EXPECT(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* What the first communicator has read holds for all that live with it: hours later the file may be another, or gone. */
static void deployment_file_is_read_once(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s.%d.toml", policy, (int)getpid());
    setenv("DYNAMICCL_CONTEXT", path, 1);
    write_text(path, "[cluster]\ngpu = \"volta\"\n");
    uint64_t other = decisions(5, 1, 0, false);
    write_text(path, "[cluster]\ngpu = \"hopper\"\ninter = \"infiniband\"\n");
    comm_t first = begin(5, 16, 2);
    uint64_t told = decisions(5, 1, 0, false);
    EXPECT(told != other);
    write_text(path, "[cluster]\ngpu = \"volta\"\n");
    EXPECT(decisions(5, 1, 0, false) == told);
    write_text(path, "[clus");
    EXPECT(decisions(5, 1, 0, false) == told);
    EXPECT(unlink(path) == 0 && decisions(5, 1, 0, false) == told);
    EXPECT(comm_end(&first) == SUCCESS);
    /* The next begins anew. */
    comm_t gone;
    log_clear();
    EXPECT(comm_begin(&gone, &tuners[5], 16, 2, log_line) == INVALID_USAGE && log_has(path));
    unsetenv("DYNAMICCL_CONTEXT");
}

void fact_10_many_communicators_and_unloading(void) {
    enum { COMMS = 100, THREADS = 8 };
    int before = threads_running();
    comm_t comms[COMMS];
    for (int i = 0; i < COMMS; i++) comms[i] = begin(2 + i % 6, 8, 1);
    EXPECT(threads_running() == before);
    pthread_t ids[THREADS];
    int versions[THREADS] = {3, 4, 5, 6, 7, 3, 4, 5};
    for (int i = 0; i < THREADS; i++) pthread_create(&ids[i], NULL, one_comm, &versions[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < COMMS; i++) EXPECT(comm_end(&comms[i]) == SUCCESS);
    deployment_file_is_read_once();
    /* The last communicator has gone: NCCL closes the library, and opens it again for the next. */
    uint64_t expected = decisions(5, 1, 0, false);
    for (int round = 0; round < 5; round++) {
        EXPECT(dlclose(library) == 0);
        EXPECT(dlopen(library_path, RTLD_NOW | RTLD_NOLOAD) == NULL);
        library = library_open();
        for (int version = 2; version <= 7; version++) tuners[version] = tuner_of(library, version);
        EXPECT(decisions(5, 1, 0, false) == expected);
    }
}

void fact_14_every_version_gets_its_arguments(void) {
    for (int version = 2; version <= 7; version++) {
        char begins[64];
        snprintf(begins, sizeof begins, "tuner v%d, 24 ranks on 3 nodes", version);
        log_clear();
        comm_t comm = begin(version, 24, 3);
        EXPECT(log_count(LOG_WARN) == 0 && log_count(LOG_INFO) == 1 && log_has(begins));
        EXPECT(log_has("policy ") && log_has("context none") && log_has("mode act"));
        EXPECT(log_has("communicator 0x1234567890abcdef") == (version >= 5));
        EXPECT(log_has("3 NVLink domains of 4 to 8 ranks") == (version >= 5));
        EXPECT(!strcmp(*(const char **)tuners[version].table, "DynamICCL"));
        uint64_t state = 14;
        int changed = 0;
        for (int i = 0; i < 1000; i++) {
            call_t call = call_draw(&state), before = call;
            EXPECT(comm_call(&comm, &call) == SUCCESS && lawful(&before, &call));
            changed += memcmp(&call, &before, sizeof call) != 0;
        }
        /* Version 2 shows no table: it is only looked on. */
        EXPECT(version == 2 ? changed == 0 : changed > 50);
        EXPECT(comm_end(&comm) == SUCCESS);
    }
    /* A log is no place for formats: this one would crash. */
    setenv("DYNAMICCL_POLICY", "/nowhere/%n%s%s%n", 1);
    comm_t comm;
    log_clear();
    EXPECT(comm_begin(&comm, &tuners[5], 16, 2, log_line) == INVALID_USAGE && log_has("/nowhere/%n%s%s%n"));
    setenv("DYNAMICCL_POLICY", policy, 1);
    comm = (comm_t){0};
    EXPECT(comm_begin(&comm, &tuners[5], 16, 2, NULL) == SUCCESS && comm_end(&comm) == SUCCESS);
    /* What the user has fixed is said. */
    setenv("NCCL_PROTO", "^LL128", 1);
    log_clear();
    comm = begin(5, 16, 2);
    EXPECT(log_has("fixed by the user: NCCL_PROTO=^LL128") && comm_end(&comm) == SUCCESS);
    unsetenv("NCCL_PROTO");
}

void fact_15_constants_stay(void) {
    for (int version = 5; version <= 7; version++) {
        union {
            constants_v5_t v5;
            constants_v7_t v7;
            unsigned char bytes[sizeof(constants_v7_t) + 64];
        } constants, copy;
        for (size_t i = 0; i < sizeof constants; i++) constants.bytes[i] = (unsigned char)(i * 31);
        copy = constants;
        nvl_domains_t domains = {2, 8, 8};
        void *context;
        tuner_v5_t *table = tuners[version].table;
        EXPECT(table->init(&context, 1, 16, 2, log_line, &domains, &constants) == SUCCESS);
        EXPECT(table->finalize(context) == SUCCESS);
        EXPECT(!memcmp(&constants, &copy, sizeof copy));
    }
}

void calls_that_came_before_allocate_nothing(void) {
    enum { CALLS = 200 };
    comm_t comm = begin(5, 16, 2);
    call_t calls[CALLS];
    uint64_t state = 16;
    for (int i = 0; i < CALLS; i++) calls[i] = call_draw(&state);
    unsigned long made[2];
    for (int round = 0; round < 2; round++) {
        unsigned long before = allocations();
        for (int i = 0; i < CALLS; i++) {
            call_t call = calls[i];
            EXPECT(comm_call(&comm, &call) == SUCCESS);
        }
        made[round] = allocations() - before;
    }
    /* Logging the first decisions does, so this would notice. */
    if (allocations_counted()) EXPECT(made[0] > 0 && made[1] == 0);
    EXPECT(comm_end(&comm) == SUCCESS);
    /* Nor do those that no version of ours knows, once that was said. */
    for (int version = 2; version <= 7; version++) {
        comm = begin(version, 16, 2);
        unsigned long before = 0;
        for (int i = 0; i < CALLS; i++) {
            call_t call = calls[i];
            call.collective = 5;
            EXPECT(comm_call(&comm, &call) == SUCCESS);
            if (i == 0) before = allocations();
        }
        EXPECT(allocations() == before);
        EXPECT(comm_end(&comm) == SUCCESS);
    }
}
