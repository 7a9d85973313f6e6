// SPDX-License-Identifier: Apache-2.0
/* See provider.h. */
#include "preempt/provider.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "base/atomic.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/thread.h"
#include "preempt/preempt.h"
#include "preempt/requests.h"
#include "preempt/spares.h"
#include "sched/worker.h"

enum { STACK = 256 * 1024, RETIRE_MS = 500 }; /* interval at which unneeded spares are looked for */

static struct {
    pthread_t thread;
    bool is_there;
    bool (*arm)(void); /* r/o, as the next */
    bool (*add_relief)(void);
} provider;

static void interrupt_starved(void) {
    enter();
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        struct worker *worker = runtime.workers[i];
        /* Pairs with preempt_for. */
        if (load_relaxed(&worker->tick.starved) != 0 && exchange_acquire(&worker->tick.starved, 0U) != 0)
            tick_interrupt(worker);
    }
    leave();
}

static void provide(void) {
    fence_seq_cst(); /* pairs with provider_ask's */
    bool is_ready = preempt_is_armed();
    if (!is_ready && exchange_acquire(&requests.wanted, 0U) != 0)
        is_ready = provider.arm();
    if (is_ready && exchange_acquire(&requests.relief, 0U) != 0)
        provider.add_relief(); /* or it is asked for again */
    if (is_ready && spares_make_enough())
        interrupt_starved();
    spares_collect(); /* may wait for the program's destructors of thread-locals, which may take long */
}

/* While some spares may be unneeded. False: a request came. */
static bool rests_until(uint64_t deadline) {
    struct timespec time = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
    while (load_relaxed(&requests.asked) == NOT_ASKED)
        if (futex_wait_until(&requests.asked, NOT_ASKED, CLOCK_MONOTONIC, &time) == -ETIMEDOUT)
            return true;
    return false;
}

/* If no more threads may be made, the next worker that lacks one asks again. */
static void *provider_main(void *unused) {
    uint64_t look = 0;
    for (;;) {
        uint32_t asked = exchange_acquire(&requests.asked, NOT_ASKED);
        if (asked == ASK_TO_END)
            return unused;
        if (asked != NOT_ASKED)
            provide();
        if (!spares_are_watched()) {
            look = 0;
            futex_wait(&requests.asked, NOT_ASKED);
            continue;
        }
        if (look == 0)
            look = clock_monotonic_ns() + RETIRE_MS * UINT64_C(1000000);
        if (clock_monotonic_ns() >= look || rests_until(look)) {
            spares_retire_surplus();
            look = 0;
        }
    }
}

int provider_start(bool (*arm)(void), bool (*add_relief)(void)) {
    provider.arm = arm;
    provider.add_relief = add_relief;
    requests.wanted = requests.relief = 0;
    store_relaxed(&requests.asked, NOT_ASKED);
    int error = thread_make_quiet(&provider.thread, STACK, provider_main, NULL);
    provider.is_there = error == 0;
    return error;
}

void provider_close(void) {
    if (!provider.is_there)
        return;
    store_release(&requests.asked, ASK_TO_END);
    futex_wake(&requests.asked, 1);
    pthread_join(provider.thread, NULL);
    provider.is_there = false;
}

void provider_fork_child(void) {
    provider.is_there = false;
}
