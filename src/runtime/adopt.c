// SPDX-License-Identifier: Apache-2.0
/* See adopt.h. The number of workers can change while a runtime runs. The default size of stacks and all about preemption
 * cannot: stacks are in depots by size, and blocks, signals and ticks are made for one mode. */
#include "runtime/adopt.h"

#include <errno.h>

#include "base/text.h"
#include "sched/worker.h"
#include "thrum/time.h"
#include "thrum/worker.h"

/* A worker stops when what it runs waits; that may take long. It is asked, and this does not wait. */
static bool stop_one(void) {
    for (unsigned number = load_acquire(&runtime.count); number-- > 0;) {
        int error = thrum_worker_stop_until(number, thrum_now() + THRUM_MS);
        if (error == 0 || error == ETIMEDOUT)
            return true;
    }
    return false;
}

static bool adopt_workers(uint32_t wanted) {
    bool changed = true;
    while (changed && load_relaxed(&runtime.running) < wanted)
        changed = thrum_worker_add(NULL) == 0;
    while (changed && load_relaxed(&runtime.running) > wanted)
        changed = stop_one();
    return changed;
}

static void add_name(struct text *text, bool *some, bool differs, const char *name) {
    if (!differs)
        return;
    text_add(text,
             *some ? ", "
                   : "thrum_init: a library has started the runtime (thrum_acquire); what does not apply: ");
    text_add(text, name);
    *some = true;
}

void adopt_settings(const struct thrum_config *config, const struct settings *wanted,
                    const struct settings *running) {
    static const struct thrum_config none;
    const struct thrum_config *asks = config != NULL ? config : &none;
    const struct thrum_preempt_config *ticks = &asks->preempt;
    struct text text;
    bool some = false;
    text_start(&text);
    add_name(&text, &some, !adopt_workers(wanted->workers), "workers");
    add_name(&text, &some, asks->stack_size != 0 && wanted->stack_size != running->stack_size, "stack_size");
    add_name(&text, &some, ticks->mode != 0 && wanted->preempt.mode != running->preempt.mode, "preempt.mode");
    add_name(&text, &some, ticks->slice != 0 && wanted->preempt.slice != running->preempt.slice,
             "preempt.slice");
    add_name(&text, &some, ticks->source != 0 && wanted->preempt.source != running->preempt.source,
             "preempt.source");
    add_name(&text, &some, ticks->signal != 0 && wanted->preempt.signal != running->preempt.signal,
             "preempt.signal");
    if (!some)
        return;
    text_add(&text, "; set it by the environment (libthrum(7))");
    text_finish(&text);
}
