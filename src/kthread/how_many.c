// SPDX-License-Identifier: Apache-2.0
/* See how_many.h. The counts are relaxed: threads that end at the same time may exceed a limit by as many. */
#include "kthread/how_many.h"

#include "base/atomic.h"
#include "kthread/counters.h"
#include "os/file.h"

static uint64_t unjoined; /* kernel threads after their first job that have ended and are not joined */

/* vm.max_map_count bounds the mappings of a process, of which each thread's stack takes two. Read when the first
 * hundreds of threads are kept, by a thread that still counts as running; see signal_pending. */
static uint64_t mappings_share(void) {
    enum { USUAL = 65530, SHARE = 16 };
    static uint64_t share;
    uint64_t most = load_relaxed(&share);
    char text[32];
    if (most != 0)
        return most;
    if (file_read("/proc/sys/vm/max_map_count", text, sizeof text) > 0)
        for (const char *at = text; *at >= '0' && *at <= '9'; at++)
            most = most * 10 + (uint64_t)(*at - '0');
    most = (most != 0 ? most : USUAL) / SHARE;
    store_relaxed(&share, most);
    return most;
}

bool how_many_mappings(void) {
    enum { FEW = 64 };
    const uint64_t live = load_relaxed(&thrum_cache_counters.live);
    return live >= FEW && live >= mappings_share();
}

/* So many may be kept, however many are of use. */
static uint64_t system_share(uint64_t idle) {
    enum { FEW = 64 };
    uint64_t tasks = load_relaxed(&kthread_config.most_tasks);
    uint64_t mappings = idle < FEW ? UINT64_MAX : mappings_share();
    return tasks != 0 && tasks < mappings ? tasks : mappings;
}

static uint64_t most_new(uint64_t idle) {
    uint64_t most = SPARE_NEW + load_relaxed(&thrum_cache_counters.reused), share = system_share(idle);
    if (kthread_config.max_idle != KTHREAD_MAX_IDLE_UNSET && kthread_config.max_idle > most)
        most = kthread_config.max_idle;
    return most < share ? most : share;
}

enum kthread_retire how_many_refuses(struct kthread *thread) {
    if (thread->has_worked)
        return RETIRE_NOT;
    uint64_t idle = load_relaxed(&thrum_cache_counters.idle), most = most_new(idle);
    if (idle >= most)
        return RETIRE_LIMIT;
    if (load_relaxed(&unjoined) + idle >= most)
        return RETIRE_MANY_UNJOINED;
    if (load_relaxed(&thread->life) == LIFE_RUNNING) {
        fetch_add_relaxed(&unjoined, 1);
        store_relaxed(&thread->is_unjoined, 1);
    }
    return RETIRE_NOT;
}

/* A joiner may come while its kernel thread leaves: both say it, and it counts once. */
void how_many_not_unjoined(struct kthread *thread) {
    if (load_relaxed(&thread->is_unjoined) && exchange_relaxed(&thread->is_unjoined, 0u))
        fetch_sub_relaxed(&unjoined, 1);
}

enum kthread_retire how_many_full(void) {
    return load_relaxed(&kthread_config.memory_limited) ? RETIRE_MEMORY : RETIRE_LIMIT;
}

bool how_many_evicts(void) {
    return load_relaxed(&thrum_cache_counters.idle) >
           load_relaxed(&thrum_cache_counters.live) + SPARE_OTHER_KINDS;
}

void how_many_fork_child(void) {
    unjoined = 0;
}
