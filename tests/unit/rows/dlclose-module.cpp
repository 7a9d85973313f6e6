// SPDX-License-Identifier: Apache-2.0
//
// A library with a thread_local object that has a destructor, for row "dlclose". Its opener learns through the
// counter that it passes in when objects are destroyed and when the library itself goes.

#include <pthread.h>

namespace {

struct Events {
    int constructed, destroyed, unloaded;
};
Events *events;

struct Object {
    int magic = 1234;
    Object() { __atomic_fetch_add(&events->constructed, 1, __ATOMIC_SEQ_CST); }
    ~Object() {
        if (magic == 1234)
            __atomic_fetch_add(&events->destroyed, 1, __ATOMIC_SEQ_CST);
        magic = 0;
    }
};
thread_local Object object;

struct AtUnload {
    ~AtUnload() {
        if (events)
            events->unloaded++;
    }
} at_unload;

} // namespace

extern "C" {

void module_events(void *counters);
int module_use();
void *module_thread(void *arg);
void *module_exiting_thread(void *arg);

void module_events(void *counters) {
    events = static_cast<Events *>(counters);
}

int module_use() {
    return object.magic;
}

// Start routines inside the library.
void *module_thread(void *arg) {
    return object.magic == 1234 ? arg : nullptr;
}

void *module_exiting_thread(void *arg) {
    if (object.magic == 1234)
        pthread_exit(arg);
    return nullptr;
}
}
