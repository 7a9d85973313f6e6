// SPDX-License-Identifier: Apache-2.0
/* See worker.h, waiting: a kernel thread that is no worker waits on a futex. */
#include "sched/worker.h"

#include <errno.h>

#include "os/futex.h"
#include "os/ticks.h"
#include "sched/time/timer.h"

enum { EXTERNAL_LOOKS_US = 10 };

/* `wake` of an external kernel thread:
 *
 *   RUNS   -> SLEEPS  itself (cas), before it sleeps on the word
 *   RUNS   -> WOKEN   the waker (exchange): nothing sleeps there, and no system call is made
 *   SLEEPS -> WOKEN   the waker, which then wakes it
 *   any    -> RUNS    itself, before it announces itself the next time
 *
 * Either the cas comes first, and the exchange sees SLEEPS; or the exchange does, and the cas fails. Modelled in
 * tests/model/external.pml. */
enum { EXTERNAL_RUNS, EXTERNAL_WOKEN, EXTERNAL_SLEEPS };

struct thrum_unit *unit_external(void) {
    static __thread struct thrum_unit external = {.kind = UNIT_EXTERNAL};
    store_relaxed(&external.wake, EXTERNAL_RUNS);
    return &external;
}

/* For as long as to sleep and to be woken takes the kernel: so it takes at most twice the time that the better choice would.
 * With one CPU the waker could not run meanwhile. Where it was in vain (the wait is long, or others have the CPUs) the next waits
 * do without, twice as many each time. */
static void await_by_looking(const struct thrum_unit *self) {
    enum { MOST = 255 };
    static __thread struct { uint32_t without, next; } looks;
    if (!load_relaxed(&runtime.externals_look))
        return;
    if (looks.without > 0) {
        looks.without--;
        return;
    }
    for (uint64_t since = arch_ticks(); arch_ticks() - since < EXTERNAL_LOOKS_US * ticks_per_us();) {
        if (load_acquire(&self->wake) != EXTERNAL_RUNS) { /* pairs with unit_wake_external */
            looks.next = 0;
            return;
        }
        arch_relax();
    }
    looks.next = looks.next < MOST ? 2 * looks.next + 1 : MOST;
    looks.without = looks.next;
}

/* False: it has been woken already. (A wait whose deadline is over may come here again: then it is as it was.) */
static bool is_to_sleep(struct thrum_unit *self) {
    uint32_t runs = EXTERNAL_RUNS;
    /* Pairs with unit_wake_external. */
    return cas_acq_rel(&self->wake, &runs, EXTERNAL_SLEEPS) || runs == EXTERNAL_SLEEPS;
}

void unit_block_external(struct thrum_unit *self) {
    await_by_looking(self);
    if (is_to_sleep(self))
        while (load_acquire(&self->wake) == EXTERNAL_SLEEPS) /* pairs with unit_wake_external */
            futex_wait(&self->wake, EXTERNAL_SLEEPS);
    annotate_happens_after(self);
}

bool unit_block_external_until(struct thrum_unit *self, uint64_t deadline) {
    struct timespec time = timer_spec(deadline);
    /* This and the next pair with unit_wake_external. */
    if (is_to_sleep(self))
        while (load_acquire(&self->wake) == EXTERNAL_SLEEPS)
            if (futex_wait_until(&self->wake, EXTERNAL_SLEEPS, CLOCK_MONOTONIC, &time) == -ETIMEDOUT)
                return load_acquire(&self->wake) != EXTERNAL_SLEEPS;
    annotate_happens_after(self);
    return true;
}

/* From the exchange on it may be gone, the word with it. A futex on memory that is not mapped any more is an error that is
 * ignored; one on memory that is used for something else now wakes a thread that looks again. */
void unit_wake_external(struct thrum_unit *unit) {
    /* Pairs with the waiter's loads and cas. */
    if (exchange_acq_rel(&unit->wake, (uint32_t)EXTERNAL_WOKEN) == EXTERNAL_SLEEPS)
        futex_wake(&unit->wake, 1);
}
