/* A driver without a GPU: the functions of libcuda.so.1 that `live` uses. Memory is the host's, work is done when it
 * is asked for, and every stream has a clock that is only set forward by what the work would have cost.
 * FAKE_GPUS is the number of devices (1). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NOT_FOUND = 500 };

struct stream { double now_us; int busy; };
struct event { double at_us; struct stream *stream; };

/* What the fake NCCL says its kernels cost. */
void fake_cuda_work(struct stream *stream, double us) { stream->now_us += us; }

/* What they take away from the load, which runs at the same time. */
static struct stream *loaded;
static double stolen_us;
void fake_cuda_steal(double us) { stolen_us += us; }

static int gpus(void) {
    const char *said = getenv("FAKE_GPUS");
    return said ? atoi(said) : 1;
}

int cuInit(unsigned flags) { return flags ? INVALID_VALUE : gpus() ? SUCCESS : 100; }
int cuGetErrorName(int code, const char **name) {
    *name = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == 100         ? "CUDA_ERROR_NO_DEVICE"
                                  : "CUDA_ERROR_INVALID_VALUE";
    return SUCCESS;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "out of memory"
            : code == 100         ? "no CUDA-capable device is detected"
                                  : "invalid argument";
    return SUCCESS;
}
int cuDriverGetVersion(int *version) { *version = 12080; return SUCCESS; }
int cuDeviceGetCount(int *count) { *count = gpus(); return SUCCESS; }
int cuDeviceGet(int *device, int index) { *device = index; return index < gpus() ? SUCCESS : INVALID_DEVICE; }
int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "Fake GPU %d", device);
    return SUCCESS;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 16 ? 132 : attribute == 75 ? 9 : 0;
    return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    *context = (void *)1;
    return SUCCESS;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return SUCCESS; }
int cuCtxSetCurrent(void *context) { return context ? SUCCESS : INVALID_VALUE; }

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    *address = (uint64_t)(uintptr_t)malloc(bytes);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return SUCCESS; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    memcpy((void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return SUCCESS;
}
int cuMemsetD32Async(uint64_t address, unsigned value, size_t words, struct stream *stream) {
    uint32_t *to = (uint32_t *)(uintptr_t)address;
    (void)stream;
    for (size_t at = 0; at < words; at++) to[at] = value;
    return SUCCESS;
}

int cuStreamCreate(struct stream **stream, unsigned flags) {
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    return SUCCESS;
}
int cuStreamDestroy_v2(struct stream *stream) { free(stream); return SUCCESS; }
int cuStreamSynchronize(struct stream *stream) { (void)stream; return SUCCESS; }
int cuEventCreate(struct event **event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof **event);
    return SUCCESS;
}
int cuEventDestroy_v2(struct event *event) { free(event); return SUCCESS; }
int cuEventRecord(struct event *event, struct stream *stream) {
    event->at_us = stream->now_us;
    event->stream = stream;
    return SUCCESS;
}
int cuEventElapsedTime(float *ms, struct event *from, struct event *to) {
    double stolen = loaded && from->stream == loaded ? stolen_us : 0.0;
    *ms = (float)((to->at_us - from->at_us + stolen) / 1000.0);
    return SUCCESS;
}

int cuModuleLoadData(void **module, const void *text) {
    *module = (void *)text;
    return strstr(text, ".visible .entry load(") ? SUCCESS : INVALID_VALUE;
}
int cuModuleUnload(void *module) { (void)module; return SUCCESS; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    *function = (void *)1;
    return strcmp(name, "load") ? NOT_FOUND : SUCCESS;
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, struct stream *stream, void **arguments, void **extra) {
    (void)function, (void)y, (void)z, (void)ty, (void)tz, (void)shared, (void)extra;
    float *out = (float *)(uintptr_t)*(uint64_t *)arguments[0];
    unsigned rounds = *(unsigned *)arguments[1];
    out[x * threads - 1] = 1.0f;
    stream->now_us += rounds * 0.05;
    loaded = stream;
    stolen_us = 0.0;
    return SUCCESS;
}
