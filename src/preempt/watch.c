// SPDX-License-Identifier: Apache-2.0
/* See watch.h. */
#include "preempt/watch.h"

#include <string.h>

#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/signals.h"
#include "preempt/monitor.h"
#include "preempt/preempt.h"
#include "preempt/requests.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"

/* A look: at most so many kernel threads are asked about, which takes some 30 us each. */
enum { ASKED_AT_ONCE = 4, NS_BETWEEN = 10 * 1000 * 1000, PERIODS_BETWEEN = 2, TIMES_LONGER = 4 };

uint32_t watch_asleep;

static struct {
    bool looks;     /* the monitor's, as the next two */
    uint64_t next;  /* ns */
    uint32_t first; /* the worker to look at first, in turn */
    unsigned times; /* the time to the next look is so much longer: nothing stood still at the last ones */
} watch;

void watch_start(void) {
    watch.looks = false;
    watch.next = 0;
    watch.times = 1;
    store_relaxed(&watch_asleep, 0);
}

void watch_wake(void) {
    if (exchange_acq_rel(&watch_asleep, 0U) != 0) /* pairs with watch_look */
        monitor_look_again();
}

/* --- one worker --------------------------------------------------------------------------------------- */

/* The path of a file of that kernel thread. */
static const char *path_of(struct text *path, int32_t tid, const char *name) {
    path->length = 0;
    text_add(path, "/proc/self/task/");
    text_add_number(path, (uint64_t)tid);
    text_add(path, name);
    path->bytes[path->length] = '\0';
    return path->bytes;
}

enum held { HELD_NOT, HELD_RUNNING, HELD_WAITING };

/* Does that kernel thread run, or wait, with the signal blocked? If the kernel does not tell, it may wait. */
static enum held held_by_mask(int32_t tid) {
    static const char state[] = "\nState:\t", blocked[] = "\nSigBlk:\t";
    struct text path;
    char status[4096];
    if (file_read_status(path_of(&path, tid, "/status"), status, sizeof status) <= 0)
        return HELD_WAITING;
    const char *at = strstr(status, state), *mask = strstr(status, blocked);
    if (at == NULL || mask == NULL)
        return HELD_WAITING;
    char is = at[sizeof state - 1];
    if ((file_hexadecimal(mask + sizeof blocked - 1) & signals_bit(preempt.settings.signal)) == 0)
        return HELD_NOT;
    return is == 'R' ? HELD_RUNNING : is == 'S' || is == 'D' ? HELD_WAITING : HELD_NOT;
}

/* The first number of schedstat; 0: the kernel does not tell. */
static uint64_t cpu_time(int32_t tid) {
    struct text path;
    char text[128];
    uint64_t ns = 0;
    if (file_read(path_of(&path, tid, "/schedstat"), text, sizeof text) > 0)
        for (const char *at = text; *at >= '0' && *at <= '9'; at++)
            ns = ns * 10 + (uint64_t)(*at - '0');
    return ns;
}

/* Has a kernel thread that is runnable really run since it was first asked about, longer than any handler of the library's? The
 * tick's handler blocks the signal, too. Beside other processes the kernel often takes the CPU away in the midst of it, for
 * long. No relief gives that kernel thread a CPU; it would only run threads at the same time. */
static bool has_run(struct watched *watched, int32_t tid) {
    enum { RUN_NS = 1000 * 1000 };
    uint64_t ran = cpu_time(tid);
    if (ran == 0)
        return true;
    if (watched->ran == 0)
        watched->ran = ran;
    return ran - watched->ran >= RUN_NS;
}

/* Nothing has happened on it since that would have changed these. */
static bool stands_still(struct worker *worker, uint64_t now) {
    struct watched *watched = &worker->tick.monitor.watched;
    uint64_t switches = load_relaxed(&worker->counters.switches);
    uint32_t came = load_relaxed(&worker->tick.last.came);
    bool same = watched->since != 0 && watched->switches == switches && watched->came == came;
    if (load_relaxed(&worker->tick.state) != TICK_ON || load_relaxed(&worker->tick.is_sent) != 0)
        watched->since = 0;
    else if (!same)
        *watched = (struct watched){.since = now, .switches = switches, .came = came};
    return same && watched->since != 0;
}

/* It is looked at once more when as much time has passed. What the kernel says of its kernel thread is about this worker only
 * if the worker still stands still afterwards: else it may have gone on, and that kernel thread sleeps without it. */
static bool is_stuck(struct worker *worker, uint64_t now, uint64_t span, unsigned *asked) {
    if (!stands_still(worker, now) || now - worker->tick.monitor.watched.since < span ||
        *asked == ASKED_AT_ONCE)
        return false;
    ++*asked;
    worker->tick.monitor.watched.since = now;
    int32_t tid = load_relaxed(&worker->tid);
    enum held held = held_by_mask(tid);
    if (held == HELD_NOT || !stands_still(worker, now))
        return false;
    return held == HELD_WAITING || has_run(&worker->tick.monitor.watched, tid);
}

/* --- all of them -------------------------------------------------------------------------------------- */

static uint64_t span_now(void) {
    uint64_t span = PERIODS_BETWEEN * load_relaxed(&preempt.period);
    return span > NS_BETWEEN ? span : NS_BETWEEN;
}

static void look_at_all(uint64_t now) {
    uint32_t count = load_acquire(&runtime.count);
    uint64_t span = span_now();
    unsigned asked = 0;
    bool some_relieve = false, some_stand_still = false;
    watch.first++;
    for (uint32_t i = 0; i < count; i++) {
        struct worker *worker = runtime.workers[(watch.first + i) % count];
        if (is_stuck(worker, now, span, &asked))
            relief_ask_held(worker);
        some_stand_still |= relief_is_wanted(worker) || (load_relaxed(&worker->tick.state) == TICK_ON &&
                                                         worker->tick.monitor.watched.since < now);
        some_relieve |= worker_relieves(worker) && !relief_is_wanted(worker);
    }
    watch.times = some_stand_still ? 1 : watch.times < TIMES_LONGER ? 2 * watch.times : TIMES_LONGER;
    if (!some_relieve)
        provider_ask_for_relief();
}

static bool some_are_preempted(void) {
    /* Pairs with preempt_enter. */
    return load_seq_cst(&preempt.away) != 0 || load_seq_cst(&preempt.away_in_pools) != 0;
}

uint64_t watch_look(uint64_t now) {
    if (!preempt_relieves())
        return TIMER_NEVER;
    if (watch.looks && now < watch.next)
        return watch.next;
    if (watch.looks)
        look_at_all(now);
    store_seq_cst(&watch_asleep, 1); /* pairs with watch_tell: either sees the other */
    watch.looks = some_are_preempted();
    if (!watch.looks)
        return TIMER_NEVER;
    store_relaxed(&watch_asleep, 0);
    watch.next = now + watch.times * span_now();
    return watch.next;
}
