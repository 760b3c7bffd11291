// OpenCL as bad as its specification allows, for tests: stands before libOpenCL.so.1, and knows what this project calls.
//
// HOSTILE names what goes wrong. Who asks for platforms begins a round. In round r, buffer number r has no memory (memory);
// launch number r^3 / 4 + 1 has no resources (resources); the device is gone for good from call number r^3 / 4 + 1 on (gone).
// With `crash`, call number HOSTILE_AT ends the process. With `late`, writes return before their buffers have the data, and
// launches begin late: only events tell when.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int32_t err;
typedef uint32_t uint;
typedef void *obj;

enum { GONE = -2, NO_MEMORY = -4, NO_RESOURCES = -5, QUEUE_CONTEXT = 0x1090 };

static atomic_int rounds, seen;
static atomic_bool is_gone;

static int is(const char *what)
{
    const char *hostile = getenv("HOSTILE");
    return hostile != NULL && strcmp(hostile, what) == 0;
}

// Whether it is this call's turn.
static int turn(const char *what, int number)
{
    return is(what) && atomic_fetch_add(&seen, 1) + 1 == number;
}

static int far(void)
{
    return rounds * rounds * rounds / 4 + 1;
}

static err trouble(void)
{
    const char *at = getenv("HOSTILE_AT");
    if (at != NULL && turn("crash", atoi(at)))
        abort();
    if (turn("gone", far()))
        is_gone = 1;
    return is_gone ? GONE : 0;
}

static void *real(const char *name)
{
    static void *library;
    if (library == NULL)
        library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}

// Calls the real one, unless there is trouble.
#define PASS(name, parameters, ...) \
    err name parameters \
    { \
        err bad = trouble(); \
        return bad ? bad : ((err (*) parameters)real(#name))(__VA_ARGS__); \
    }
#define MAKE(name, reason, parameters, ...) \
    obj name parameters \
    { \
        err bad = trouble(); \
        if (!bad) \
            bad = reason; \
        if (bad) \
            return *code = bad, NULL; \
        return ((obj (*) parameters)real(#name))(__VA_ARGS__); \
    }

err clGetPlatformIDs(uint count, obj *platforms, uint *found)
{
    if (platforms == NULL) {
        rounds++;
        seen = 0;
        is_gone = 0;
    }
    return ((err (*)(uint, obj *, uint *))real("clGetPlatformIDs"))(count, platforms, found);
}

PASS(clGetPlatformInfo, (obj o, uint what, size_t size, void *to, size_t *used), o, what, size, to, used)
PASS(clGetDeviceIDs, (obj o, uint64_t kind, uint count, obj *to, uint *found), o, kind, count, to, found)
PASS(clGetDeviceInfo, (obj o, uint what, size_t size, void *to, size_t *used), o, what, size, to, used)
PASS(clGetEventInfo, (obj o, uint what, size_t size, void *to, size_t *used), o, what, size, to, used)
PASS(clGetProgramBuildInfo, (obj o, obj device, uint what, size_t size, void *to, size_t *used), o, device, what, size, to, used)
PASS(clBuildProgram, (obj o, uint count, const obj *devices, const char *options, void *f, void *x), o, count, devices, options, f, x)
PASS(clSetKernelArg, (obj o, uint number, size_t size, const void *value), o, number, size, value)
PASS(clFlush, (obj o), o)
PASS(clWaitForEvents, (uint count, const obj *events), count, events)
PASS(clReleaseContext, (obj o), o)
PASS(clReleaseCommandQueue, (obj o), o)
PASS(clReleaseProgram, (obj o), o)
PASS(clReleaseKernel, (obj o), o)
PASS(clReleaseMemObject, (obj o), o)
PASS(clReleaseEvent, (obj o), o)
MAKE(clCreateContext, 0, (const void *p, uint count, const obj *devices, void *f, void *x, err *code), p, count, devices, f, x, code)
MAKE(clCreateCommandQueue, 0, (obj o, obj device, uint64_t properties, err *code), o, device, properties, code)
MAKE(clCreateProgramWithSource, 0, (obj o, uint count, const char **text, const size_t *sizes, err *code), o, count, text, sizes, code)
MAKE(clCreateKernel, 0, (obj o, const char *name, err *code), o, name, code)
MAKE(clCreateBuffer, turn("memory", rounds) ? NO_MEMORY : 0, (obj o, uint64_t flags, size_t size, void *host, err *code), o, flags, size, host, code)
PASS(clEnqueueReadBuffer, (obj q, obj b, uint wait, size_t at, size_t size, void *to, uint n, const obj *list, obj *event), q, b, wait, at, size, to, n, list, event)

// What opens a gate a little later, and then throws away what waited behind it.
struct gate {
    obj opens, waits;
    void *data;
};

static void *keep(void *of)
{
    struct gate *gate = of;
    usleep(1000 + rand() % 2000);
    ((err (*)(obj, err))real("clSetUserEventStatus"))(gate->opens, 0);
    ((err (*)(uint, const obj *))real("clWaitForEvents"))(1, &gate->waits);
    ((err (*)(obj))real("clReleaseEvent"))(gate->opens);
    ((err (*)(obj))real("clReleaseEvent"))(gate->waits);
    free(gate->data);
    free(gate);
    return NULL;
}

// A gate for a queue's next command.
static struct gate *gate_of(obj queue)
{
    struct gate *gate = calloc(1, sizeof *gate);
    obj context;
    err bad;
    ((err (*)(obj, uint, size_t, void *, size_t *))real("clGetCommandQueueInfo"))(queue, QUEUE_CONTEXT, sizeof context, &context, NULL);
    gate->opens = ((obj (*)(obj, err *))real("clCreateUserEvent"))(context, &bad);
    return gate;
}

static err behind(struct gate *gate, err bad, const obj *event)
{
    pthread_t keeper;
    if (bad)
        return bad;
    gate->waits = *event;
    ((err (*)(obj))real("clRetainEvent"))(*event);
    pthread_create(&keeper, NULL, keep, gate);
    pthread_detach(keeper);
    return 0;
}

err clEnqueueWriteBuffer(obj q, obj b, uint wait, size_t at, size_t size, const void *from, uint n, const obj *list, obj *event)
{
    err (*write)(obj, obj, uint, size_t, size_t, const void *, uint, const obj *, obj *) = real("clEnqueueWriteBuffer");
    err bad = trouble();
    if (bad || !is("late"))
        return bad ? bad : write(q, b, wait, at, size, from, n, list, event);
    struct gate *gate = gate_of(q);
    gate->data = memcpy(malloc(size), from, size);
    return behind(gate, write(q, b, 0, at, size, gate->data, 1, &gate->opens, event), event);
}

err clEnqueueFillBuffer(obj q, obj b, const void *value, size_t width, size_t at, size_t size, uint n, const obj *list, obj *event)
{
    err (*fill)(obj, obj, const void *, size_t, size_t, size_t, uint, const obj *, obj *) = real("clEnqueueFillBuffer");
    err bad = trouble();
    if (bad || !is("late"))
        return bad ? bad : fill(q, b, value, width, at, size, n, list, event);
    struct gate *gate = gate_of(q);
    return behind(gate, fill(q, b, value, width, at, size, 1, &gate->opens, event), event);
}

err clEnqueueNDRangeKernel(obj q, obj k, uint axes, const size_t *begin, const size_t *items, const size_t *group, uint n, const obj *list, obj *event)
{
    err (*launch)(obj, obj, uint, const size_t *, const size_t *, const size_t *, uint, const obj *, obj *) = real("clEnqueueNDRangeKernel");
    err bad = trouble();
    if (bad || turn("resources", far()))
        return bad ? bad : NO_RESOURCES;
    if (!is("late"))
        return launch(q, k, axes, begin, items, group, n, list, event);
    struct gate *gate = gate_of(q);
    return behind(gate, launch(q, k, axes, begin, items, group, 1, &gate->opens, event), event);
}
