// SPDX-License-Identifier: Apache-2.0
/* Relief for workers that are stuck.
 *
 * A preempted thread may have a lock of libc's, or of the program's that kernel threads share. Who comes to that lock waits
 * for it in the kernel. A thread is preempted there at the next tick, and the holder gets its turn. But what is not
 * preempted holds its worker up: a tasklet, the function of a scheduler, a thread of mode NONE, a region; and if the holder
 * can only go on where that worker looks, it never does.
 *
 * So there is one worker more, which nobody sees: it sleeps, nothing is bound to it, and it looks for nothing. The second tick in
 * a row that finds such a wait (by the instruction at which it came) asks it: then it runs one of those who were preempted, from
 * where the stuck worker would have found it, until that waits, yields, ends or is preempted; and so on at each tick, as
 * long as the wait lasts, and there are such; when there are again the worker has ticks again (sched/tick.h). It looks for
 * nobody else: only these can have such a lock, and a tasklet or a newcomer of mode NONE might get stuck as well. (Who waits for the end of one that ends there goes on there, of whatever mode.) It does not
 * jump in for who only computes: programs may count on what is not preempted being alone on its worker; a moment after a
 * wait it may not be.
 *
 * In pools that have an order of their own it may be asked for although who waits can be preempted: by a thread that comes
 * before the one that has the lock, so that its scheduler chooses it time and again. Each tick that preempts one of a pool in
 * such a wait asks; and it has the worker itself run one of those who were preempted (scheduler.c), which may be in a
 * pool of the program's own kind.
 *
 * A thread that blocks the signal of the ticks is not preempted either, and no tick asks. The monitor does (watch.h), and the
 * worker that relieves runs one thread after another then, until the other takes a tick or switches. What it runs may block the
 * signal itself, and get stuck there: so there is one worker more of this kind whenever all are.
 *
 * Invariants. Nobody is passed over for ever (sched/preempted.h). What it has left of its own goes to all before it sleeps. It
 * does not look at pools of the program's kinds: their functions might wait for the same lock, inside.
 *
 * Modelled in tests/model/relief.pml; with the monitor in blocked.pml; with ticks that end meanwhile in relief_rest.pml. */
#include "os/futex.h"
#include "os/own_wait.h"
#include "preempt/preempt.h"
#include "sched/preempted.h"
#include "sched/scheduler.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

#define ANYWAY UINT64_MAX /* in `stuck`: whoever runs there now */

static uint32_t asked; /* futex, of all that relieve */
static uint32_t over;  /* nobody is relieved any more */

bool preempt_relieves(void) {
    return preempt.on && preempt_has_spares();
}

void relief_start(void) {
    store_relaxed(&asked, 0);
    store_relaxed(&over, 0);
}

/* A region of its own: who is preempted in between would leave the note behind, on a worker that waits for nothing. */
void own_wait(bool begins) {
    struct worker *worker = begins ? enter() : worker_here();
    if (worker != NULL)
        worker->tick.own_wait = begins;
    if (!begins)
        leave();
}

void relief_wake(void) {
    store_release(&asked, 1);
    futex_wake(&asked, 1);
}

void relief_ask(struct worker *stuck) {
    store_release(&stuck->tick.stuck, load_relaxed(&stuck->counters.switches) + 1);
    relief_wake();
}

void relief_ask_anyway(struct worker *worker) {
    store_release(&worker->tick.stuck, ANYWAY);
    relief_wake();
}

void relief_ask_held(struct worker *held) {
    store_release(&held->tick.held, load_relaxed(&held->counters.switches) + 1);
    relief_wake();
}

/* No tick has come to it since, and it runs still what it ran then. */
static bool is_held(const struct worker *worker) {
    return load_acquire(&worker->tick.held) == load_relaxed(&worker->counters.switches) + 1 &&
           !load_seq_cst(&over);
}

/* Is what it was asked for still so? */
static bool is_valid(const struct worker *worker, uint64_t then) {
    return (then == ANYWAY || then == load_relaxed(&worker->counters.switches) + 1) && !load_seq_cst(&over);
}

bool relief_is_wanted(const struct worker *stuck) {
    uint64_t then = load_relaxed(&stuck->tick.stuck);
    return (then != 0 && is_valid(stuck, then)) || is_held(stuck);
}

/* Once for each time that it was asked for. A worker that has switched meanwhile is not stuck any more. */
static bool is_stuck(struct worker *worker) {
    if (load_relaxed(&worker->tick.stuck) == 0)
        return false;
    uint64_t then = exchange_acquire(&worker->tick.stuck, UINT64_C(0));
    return is_valid(worker, then);
}

/* It may be just taken once more. */
void relief_close(struct worker *home) {
    store_seq_cst(&over, 1);
    while (worker_here() != home)
        thrum_yield();
}

/* True: there is more to do at once. What is held no tick says so of again. */
static bool relieve(struct worker *worker) {
    bool again = false;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        struct worker *stuck = runtime.workers[i];
        bool is_to_run = stuck != worker && (is_stuck(stuck) || is_held(stuck));
        struct thrum_unit *unit = is_to_run ? preempted_take(worker, stuck, NULL) : NULL;
        if (unit != NULL) {
            worker_run(worker, unit);
            again |= is_held(stuck);
        }
    }
    worker_hand_over(worker);
    return again;
}

static void wait_until_asked(void) {
    while (!load_acquire(&runtime.stopping) && exchange_acquire(&asked, 0U) == 0)
        futex_wait(&asked, 0);
}

/* A tick that comes while it waits is its last. One that leaves wakes the next: the word may have been reset in between. */
void relief_loop(struct worker *worker) {
    while (wait_until_asked(), !load_acquire(&runtime.stopping)) {
        enter();
        worker->has_scheduler = true; /* who waits or yields leaves it to its loop */
        worker->until_slow = 1;
        while (relieve(worker) && !load_acquire(&runtime.stopping)) {
        }
        leave();
    }
    relief_wake();
}
