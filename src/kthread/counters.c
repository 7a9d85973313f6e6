// SPDX-License-Identifier: Apache-2.0
/* See counters.h. */
#include "kthread/counters.h"

#include <stddef.h>

__attribute__((visibility("default"))) struct thrum_cache_counters thrum_cache_counters = {
    .version = THRUM_CACHE_COUNTERS_VERSION,
    .size = sizeof(struct thrum_cache_counters),
};

#define REASON_TEXT(name, text) text,
static const char *const retire_reasons[] = {THRUM_CACHE_RETIRE_REASONS(REASON_TEXT)};
static const char *const pass_reasons[] = {THRUM_CACHE_PASS_REASONS(REASON_TEXT)};
enum {
    RETIRE_REASONS = sizeof retire_reasons / sizeof *retire_reasons,
    PASS_REASONS = sizeof pass_reasons / sizeof *pass_reasons
};
_Static_assert(RETIRE_REASONS <= THRUM_CACHE_REASONS_MAX && PASS_REASONS <= THRUM_CACHE_REASONS_MAX,
               "the counters' arrays hold every reason");

__attribute__((visibility("default"))) const char *thrum_cache_retire_reason(unsigned i) {
    return i < RETIRE_REASONS ? retire_reasons[i] : NULL;
}

__attribute__((visibility("default"))) const char *thrum_cache_pass_reason(unsigned i) {
    return i < PASS_REASONS ? pass_reasons[i] : NULL;
}

bool counters_idle_add(uint64_t limit) {
    uint64_t idle = load_relaxed(&thrum_cache_counters.idle);
    do {
        if (idle >= limit)
            return false;
    } while (!cas_relaxed(&thrum_cache_counters.idle, &idle, idle + 1));
    uint64_t peak = load_relaxed(&thrum_cache_counters.idle_peak);
    while (idle + 1 > peak && !cas_relaxed(&thrum_cache_counters.idle_peak, &peak, idle + 1)) {
    }
    return true;
}

void counters_idle_remove(void) {
    fetch_sub_relaxed(&thrum_cache_counters.idle, 1);
}

void counters_fork_child(uint64_t live) {
    thrum_cache_counters = (struct thrum_cache_counters){
        .version = THRUM_CACHE_COUNTERS_VERSION,
        .size = sizeof(struct thrum_cache_counters),
        .live = live,
    };
}
