/* faults VARIABLE PATH ...: what the user named cannot be loaded. */
#include "host.h"

#define EXPECT(what)                                                                                           \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            fprintf(stderr, "FAIL v%d %s=%s: %s\n", version, variable, path, #what);                           \
            log_print();                                                                                       \
            return 1;                                                                                          \
        }                                                                                                      \
    } while (0)

static int one_fault(void *library, int version, const char *variable, const char *path) {
    tuner_t tuner = tuner_of(library, version);
    comm_t comm;
    setenv(variable, path, 1);
    /* The rank stops at once, and says why in one line. */
    log_clear();
    EXPECT(comm_begin(&comm, &tuner, 16, 2, log_line) == INVALID_USAGE);
    EXPECT(comm.context == NULL);
    EXPECT(log_count(LOG_WARN) == 1 && log_count(LOG_INFO) == 0);
    EXPECT(log_has(variable) && log_has(path));
    EXPECT(!log_has("\n"));
    /* NCCL has no log: it stops all the same. */
    fprintf(stderr, "expected here: ");
    EXPECT(comm_begin(&comm, &tuner, 16, 2, NULL) == INVALID_USAGE);
    /* Lenient: NCCL's default. */
    setenv("DYNAMICCL_STRICT", "0", 1);
    log_clear();
    EXPECT(comm_begin(&comm, &tuner, 16, 2, log_line) == SUCCESS);
    EXPECT(log_count(LOG_WARN) == 1 && log_has(variable) && log_has(path));
    uint64_t state = 1;
    for (int i = 0; i < 200; i++) {
        call_t call = call_draw(&state), before = call;
        EXPECT(comm_call(&comm, &call) == SUCCESS);
        EXPECT(!memcmp(&call, &before, sizeof call));
    }
    EXPECT(comm_end(&comm) == SUCCESS);
    EXPECT(log_count(LOG_WARN) == 1);
    unsetenv("DYNAMICCL_STRICT");
    /* Off: nothing is loaded, so nothing is missing. */
    setenv("DYNAMICCL_MODE", "off", 1);
    log_clear();
    EXPECT(comm_begin(&comm, &tuner, 16, 2, log_line) == SUCCESS);
    EXPECT(log_count(LOG_WARN) == 0 && log_count(LOG_INFO) == 1 && log_has("mode off"));
    EXPECT(comm_end(&comm) == SUCCESS);
    unsetenv("DYNAMICCL_MODE");
    unsetenv(variable);
    return 0;
}

int run_faults(int count, char **arguments) {
    void *library = library_open();
    for (int i = 0; i + 1 < count; i += 2)
        for (int version = 2; version <= 7; version++)
            if (one_fault(library, version, arguments[i], arguments[i + 1])) return 1;
    printf("%d faults in six versions: each stops its rank and says why\n", count / 2);
    return 0;
}
