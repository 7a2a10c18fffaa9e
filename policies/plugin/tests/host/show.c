/* show VERSION RANKS NODES: what is logged when a communicator begins and makes a few calls. */
#include "host.h"

int run_show(int count, char **arguments) {
    if (count != 3) return 2;
    void *library = library_open();
    tuner_t tuner = tuner_of(library, atoi(arguments[0]));
    comm_t comm;
    int result = comm_begin(&comm, &tuner, (size_t)atol(arguments[1]), (size_t)atol(arguments[2]), log_line);
    uint64_t state = 1;
    for (int i = 0; result == SUCCESS && i < 300; i++) {
        call_t call = call_draw(&state);
        if (comm_call(&comm, &call) != SUCCESS) return 1;
    }
    if (result == SUCCESS) comm_end(&comm);
    log_print();
    return result;
}
