/* Counts what the library allocates: its calls come here before they come to the C library. A checking allocator
 * takes this place itself (valgrind: -DUNCOUNTED). */
#include "host.h"

#include <errno.h>

#if defined(__SANITIZE_ADDRESS__) || defined(UNCOUNTED) || !defined(__GLIBC__)
unsigned long allocations(void) { return 0; }
bool allocations_counted(void) { return false; }
#else
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static unsigned long count;

void *malloc(size_t size) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    return __libc_realloc(old, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

unsigned long allocations(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

bool allocations_counted(void) {
    unsigned long before = allocations();
    void *volatile some = malloc(1);
    free(some);
    return allocations() > before;
}
#endif
