// SPDX-License-Identifier: Apache-2.0
/* See may_wait.h. */
#include "sched/may_wait.h"

#include <stdlib.h>

#include "base/text.h"
#include "sched/worker.h"

bool unit_here_may_wait(void) {
    const struct worker *worker = enter();
    bool may = worker == NULL || unit_may_wait(worker->current);
    leave();
    return may;
}

static const char *function_of(enum awaits kind) {
#define FUNCTION_OF_KIND(name, words, function) function,
    static const char *const functions[AWAITS_KINDS] = {AWAITS_LIST(FUNCTION_OF_KIND)};
#undef FUNCTION_OF_KIND
    return functions[kind < AWAITS_KINDS ? kind : AWAITS_NOTHING];
}

_Noreturn void unit_cannot_wait(enum awaits kind) {
    text_line("misuse: a tasklet or a scheduler must not wait, but would have to in ", function_of(kind),
              NULL);
    abort();
}

_Noreturn void unit_waits_in_region(enum awaits kind) {
    text_line("misuse: a thread must not wait between thrum_nopreempt_begin() and thrum_nopreempt_end(), but "
              "would have to in ",
              function_of(kind), NULL);
    abort();
}

_Noreturn void unit_ends_in_region(void) {
    text_line("misuse: a thread must not end between thrum_nopreempt_begin() and thrum_nopreempt_end()", NULL,
              NULL);
    abort();
}
