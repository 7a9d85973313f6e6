// SPDX-License-Identifier: Apache-2.0
/* A program that never calls thrum_init, for leak checkers: its workers are there when it ends, and nothing is lost. */
#include <thrum/sync.h>
#include <thrum/thrum.h>

static void set(void *event) {
    thrum_event_set(event);
}

static void *nothing(void *arg) {
    return arg;
}

int main(void) {
    thrum_t thread;
    thrum_event_t go = THRUM_EVENT_INITIALIZER, has_begun = THRUM_EVENT_INITIALIZER;
    thrum_wait_t wait = {.what = THRUM_WAIT_EVENT, .object = &go};
    thrum_when_t when = {.waits = &wait, .count = 1, .deadline = UINT64_MAX, .fn = set, .arg = &has_begun};
    if (thrum_spawn_when(NULL, &when) != 0) /* the first call of the library */
        return 1;
    thrum_event_set(&go);
    thrum_event_wait(&has_begun);
    return thrum_spawn(&thread, NULL, nothing, NULL) != 0 || thrum_join(thread, NULL) != 0;
}
