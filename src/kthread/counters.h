// SPDX-License-Identifier: Apache-2.0
/* What happened so far: the object that include/thrum/cache.h describes. Relaxed adds; `idle` is also the
 * number that the limits are held against, so it is changed by cas before a thread is listed. */
#ifndef THRUM_KTHREAD_COUNTERS_H
#define THRUM_KTHREAD_COUNTERS_H

#include "base/atomic.h"
#include "thrum/cache.h"

#define COUNTERS_ENUM_(name, text) PASS_##name,
enum counters_pass { PASS_NOT, THRUM_CACHE_PASS_REASONS(COUNTERS_ENUM_) };
#undef COUNTERS_ENUM_

static inline void counters_count(uint64_t *counter) {
    fetch_add_relaxed(counter, 1);
}

/* `reason` is an enum kthread_retire above RETIRE_NOT, or an enum counters_pass above PASS_NOT. */
static inline void counters_retired(unsigned reason) {
    counters_count(&thrum_cache_counters.retired);
    counters_count(&thrum_cache_counters.retired_by[reason - 1]);
}

static inline void counters_passed(unsigned reason) {
    counters_count(&thrum_cache_counters.passed);
    counters_count(&thrum_cache_counters.passed_by[reason - 1]);
}

/* One more idle thread, unless there are `limit` already. */
bool counters_idle_add(uint64_t limit);
void counters_idle_remove(void);

/* In a fork's child: nothing of the parent's is idle or lives here. */
void counters_fork_child(uint64_t live);

#endif
