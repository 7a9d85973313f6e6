// SPDX-License-Identifier: Apache-2.0
/* See mode.h. */
#include "kthread/mode.h"

#include <string.h>

#include "kthread/stack_cache.h"
#include "kthread/standby.h"

struct mode_config mode_config = {.mode = MODE_REUSE, .standby = STANDBY_USUAL};

#define MODE_NAME(name, text) text,
static const char *const names[] = {KTHREAD_MODES(MODE_NAME)};
#undef MODE_NAME

bool mode_choose(const char *name) {
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            mode_config.mode = (enum kthread_mode)i;
            return true;
        }
    return false;
}

int mode_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
               pthread_t *handle) {
    if (mode_config.mode == MODE_STACKS)
        return stack_cache_start(kind, detached, fn, arg, handle);
    return standby_start(kind, detached, fn, arg, handle);
}

unsigned mode_cull(void) {
    if (mode_reuses())
        return 0;
    return mode_config.mode == MODE_STACKS ? stack_cache_cull() : standby_cull();
}

void mode_before_copy(void) {
    if (mode_config.mode == MODE_STANDBY || mode_config.mode == MODE_STANDBY_HELPING)
        standby_cull();
}

void mode_fork_child(void) {
    standby_fork_child();
    stack_cache_fork_child();
}
