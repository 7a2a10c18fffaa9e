/* host LIBRARY facts | faults ... | digest ... | latency ... | show ... */
#include "host.h"

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "host LIBRARY facts|faults|digest|latency|show ...\n");
        return 2;
    }
    library_path = arguments[1];
    const char *what = arguments[2];
    if (!strcmp(what, "facts")) return run_facts();
    if (!strcmp(what, "faults")) return run_faults(count - 3, arguments + 3);
    if (!strcmp(what, "digest")) return run_digest(count - 3, arguments + 3);
    if (!strcmp(what, "latency")) return run_latency(count - 3, arguments + 3);
    if (!strcmp(what, "show")) return run_show(count - 3, arguments + 3);
    fprintf(stderr, "host: unknown \"%s\"\n", what);
    return 2;
}
