// SPDX-License-Identifier: Apache-2.0
/* See mode.h. */
#include "mode.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "behind.h"
#include "kthread/alternative.h"
#include "stack_cache.h"
#include "standby.h"

struct mode_config mode_config = {.mode = MODE_STANDBY, .standby = STANDBY_USUAL};

#define MODE_NAME(name, text) text,
static const char *const names[] = {MODES(MODE_NAME)};
#undef MODE_NAME

bool mode_choose(const char *name) {
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            mode_config.mode = (enum mode)i;
            return true;
        }
    return false;
}

/* --- the table ------------------------------------------------------------------------------------------ */

bool mode_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
                pthread_t *handle) {
    if (kind->user.low != NULL)
        return false; /* the program's own stack */
    if (mode_config.mode == MODE_STACKS)
        return stack_cache_start(kind, detached, fn, arg, handle);
    return standby_start(kind, detached, fn, arg, handle);
}

unsigned mode_cull(void) {
    unsigned threads = standby_cull();
    return threads + stack_cache_cull();
}

void mode_before_copy(void) {
    standby_cull();
}

void mode_fork_child(void) {
    standby_fork_child();
    stack_cache_fork_child();
}

static const struct alternative modes = {
    .start = mode_start,
    .cull = mode_cull,
    .before_copy = mode_before_copy,
    .fork_child = mode_fork_child,
    .behind = behind,
};

const struct alternative *const kthread_alternative = &modes;

/* --- environment ---------------------------------------------------------------------------------------- */

static bool read_number(const char *text, uint64_t most, uint64_t *number) {
    uint64_t value = 0;
    const char *at = text;
    while (*at >= '0' && *at <= '9' && value <= most)
        value = value * 10 + (uint64_t)(*at++ - '0');
    if (at == text || *at != '\0' || value > most)
        return false;
    *number = value;
    return true;
}

__attribute__((constructor)) static void read_environment(void) {
    const char *name = getenv("THRUM_ALTERNATIVE"), *number = getenv("THRUM_ALTERNATIVE_STANDBY");
    if (name != NULL && !mode_choose(name))
        text_line("THRUM_ALTERNATIVE=", name, ": expected standby, standby-helping or stacks; using standby");
    if (number != NULL && !read_number(number, STANDBY_MOST, &mode_config.standby))
        text_line("THRUM_ALTERNATIVE_STANDBY=", number,
                  ": expected a number of threads from 0 to 1000; using 16");
}
