// SPDX-License-Identifier: Apache-2.0
/* See worker.h, waiting: a kernel thread that is no worker waits on a futex. So does one that runs a single unit, on its loop,
 * while the unit waits (runtime/solo.h). */
#include "sched/worker.h"

#include <errno.h>

#include "os/futex.h"
#include "os/ticks.h"
#include "sched/time/timer.h"

enum { EXTERNAL_LOOKS_US = 10 };

/* `wake` of an external kernel thread, or of a solo worker:
 *
 *   RUNS   -> SLEEPS  itself (cas), before it sleeps on the word
 *   RUNS   -> WOKEN   the waker (exchange): nothing sleeps there, and no system call is made
 *   SLEEPS -> WOKEN   the waker, which then wakes it
 *   any    -> RUNS    itself, before it announces itself the next time; on a solo worker before the unit resumes
 *
 * Either the cas comes first, and the exchange sees SLEEPS; or the exchange does, and the cas fails. Modelled in
 * tests/model/external.pml. */
enum { EXTERNAL_RUNS, EXTERNAL_WOKEN, EXTERNAL_SLEEPS };

static __thread struct thrum_unit external = {.kind = UNIT_EXTERNAL};

struct thrum_unit *unit_external(void) {
    store_relaxed(&external.wake, EXTERNAL_RUNS);
    return &external;
}

struct thrum_unit *unit_external_identity(void) {
    return &external;
}

/* For as long as to sleep and to be woken takes the kernel: so it takes at most twice the time that the better choice would.
 * With one CPU the waker could not run meanwhile. Where it was in vain (the wait is long, or others have the CPUs) the next waits
 * do without, twice as many each time. */
static void await_by_looking(const uint32_t *wake) {
    enum { MOST = 255 };
    static __thread struct { uint32_t without, next; } looks;
    if (!load_relaxed(&runtime.externals_look))
        return;
    if (looks.without > 0) {
        looks.without--;
        return;
    }
    for (uint64_t since = arch_ticks(); arch_ticks() - since < EXTERNAL_LOOKS_US * ticks_per_us();) {
        if (load_acquire(wake) != EXTERNAL_RUNS) { /* pairs with set_woken */
            looks.next = 0;
            return;
        }
        arch_relax();
    }
    looks.next = looks.next < MOST ? 2 * looks.next + 1 : MOST;
    looks.without = looks.next;
}

/* False: it has been woken already. (A wait whose deadline is over may come here again: then it is as it was.) */
static bool is_to_sleep(uint32_t *wake) {
    uint32_t runs = EXTERNAL_RUNS;
    /* Pairs with set_woken. */
    return cas_acq_rel(wake, &runs, EXTERNAL_SLEEPS) || runs == EXTERNAL_SLEEPS;
}

static void sleep_on(uint32_t *wake) {
    await_by_looking(wake);
    if (is_to_sleep(wake))
        while (load_acquire(wake) == EXTERNAL_SLEEPS) /* pairs with set_woken */
            futex_wait(wake, EXTERNAL_SLEEPS);
}

/* False: the deadline has come. */
static bool sleep_on_until(uint32_t *wake, uint64_t deadline) {
    struct timespec time = timer_spec(deadline);
    /* This and the next pair with set_woken. */
    if (is_to_sleep(wake))
        while (load_acquire(wake) == EXTERNAL_SLEEPS)
            if (futex_wait_until(wake, EXTERNAL_SLEEPS, CLOCK_MONOTONIC, &time) == -ETIMEDOUT)
                return load_acquire(wake) != EXTERNAL_SLEEPS;
    return true;
}

/* From the exchange on it may be gone, the word with it. A futex on memory that is not mapped any more is an error that is
 * ignored; one on memory that is used for something else now wakes a thread that looks again. */
static void set_woken(uint32_t *wake) {
    /* Pairs with the waiter's loads and cas. */
    if (exchange_acq_rel(wake, (uint32_t)EXTERNAL_WOKEN) == EXTERNAL_SLEEPS)
        futex_wake(wake, 1);
}

void unit_block_external(struct thrum_unit *self) {
    sleep_on(&self->wake);
    annotate_happens_after(self);
}

bool unit_block_external_until(struct thrum_unit *self, uint64_t deadline) {
    if (!sleep_on_until(&self->wake, deadline))
        return false;
    annotate_happens_after(self);
    return true;
}

void unit_wake_external(struct thrum_unit *unit) {
    set_woken(&unit->wake);
}

/* --- a solo worker ------------------------------------------------------------------------------------ */

void solo_wake(struct worker *solo) {
    set_woken(&solo->solo.wake);
}

/* A timer that goes off wakes the unit, unless another thread is about to. The exchange sees what the last waker has stored, and
 * not only the one that was seen before: the runtime's stop wakes, too, and must not be lost. */
void solo_wait(struct worker *self) {
    struct timer *timer = self->solo.timer;
    self->solo.timer = NULL;
    if (timer != NULL && !sleep_on_until(&self->solo.wake, timer->deadline))
        timer->fire(self, timer);
    sleep_on(&self->solo.wake);
    exchange_acq_rel(&self->solo.wake, (uint32_t)EXTERNAL_RUNS); /* pairs with set_woken */
}
