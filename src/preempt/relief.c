// SPDX-License-Identifier: Apache-2.0
/* Relief for workers that are stuck.
 *
 * A preempted thread may hold a lock of libc's, or of the program's that kernel threads share. A thread that wants
 * that lock waits for it in the kernel. It is preempted there at the next tick, and the lock holder gets its turn.
 * But what is not preempted holds its worker up: a tasklet, the function of a scheduler, a thread of mode NONE, a
 * region. If the lock holder can only resume where that worker looks, it never does.
 *
 * So there is one more, hidden worker: it sleeps, no thread is bound to it, and it searches for nothing. The second
 * tick in a row that finds such a wait (by the instruction at which it came) asks it. Then it runs one of the
 * preempted units, from where the stuck worker would have found it, until that waits, yields, ends or is preempted.
 * This repeats at each tick, as long as the wait lasts and there are such units; when there are again the worker has
 * ticks again (sched/tick.h). It runs no others: only these can hold such a lock, and a tasklet or a new thread of
 * mode NONE might get stuck as well. (A joiner of a unit that ends there resumes there, of whatever mode.) It does
 * not relieve a worker that only computes: programs may rely on an unpreempted thread being alone on its worker;
 * shortly after a wait it may not be.
 *
 * In pools that have an order of their own it may be asked for although the waiting thread can be preempted: a thread
 * that precedes the lock holder is chosen by its scheduler again and again. Each tick that preempts a pool's thread
 * in such a wait asks; and it makes the worker itself run one of the preempted units (scheduler.c), which may be in a
 * pool of the program's own kind.
 *
 * A thread that blocks the ticks' signal is not preempted either, and no tick asks. The monitor does (watch.h), and
 * the relief worker then runs one thread after another, until the other worker takes a tick or switches. What it runs
 * may block the signal itself, and get stuck there: so there is one more relief worker whenever all are.
 *
 * Preempted units of a front end stand in pools of its own. One of those runs, too, by its function (front_relieve).
 *
 * Invariants. No unit is passed over for ever (sched/preempted.h). What it has left of its own goes to all before it
 * sleeps. It does not look at pools of the program's kinds: their functions might wait for the same lock, inside.
 *
 * Modelled in tests/model/relief.pml; with the monitor in blocked.pml; with ticks that end meanwhile in
 * relief_rest.pml. */
#include "os/futex.h"
#include "os/own_wait.h"
#include "preempt/preempt.h"
#include "sched/front.h"
#include "sched/pool/scheduler.h"
#include "sched/preempted.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

#define ANYWAY UINT64_MAX /* in `stuck`: whatever unit runs there now */

/* Futex, of all that relieve. Set by an exchange: a store would hide what an earlier one has asked for. */
static uint32_t asked;
static uint32_t over; /* no worker is relieved any more */

bool preempt_relieves(void) {
    return preempt.on && preempt_has_spares();
}

void relief_start(void) {
    store_relaxed(&asked, 0);
    store_relaxed(&over, 0);
}

/* A region of its own: a unit preempted in between would leave the note behind, on a worker that waits for nothing.
 * Unchecked: `begins` says whether it enters or leaves. */
INSIDE_UNCHECKED void own_wait(bool begins) {
    struct worker *worker = begins ? enter() : worker_here();
    if (worker != NULL)
        worker->tick.own_wait = begins;
    if (!begins)
        leave();
}

void relief_wake(void) {
    exchange_release(&asked, 1U); /* pairs with wait_until_asked */
    futex_wake(&asked, 1);
}

void relief_ask(struct worker *stuck) {
    store_release(&stuck->tick.asked.stuck, load_relaxed(&stuck->counters.switches) + 1);
    relief_wake();
}

void relief_ask_anyway(struct worker *worker) {
    store_release(&worker->tick.asked.stuck, ANYWAY);
    relief_wake();
}

void relief_ask_held(struct worker *held) {
    store_release(&held->tick.monitor.held, load_relaxed(&held->counters.switches) + 1);
    relief_wake();
}

/* No tick has come to it since, and it runs still what it ran then. */
static bool is_held(const struct worker *worker) {
    /* Pairs with relief_ask_held and relief_close. */
    return load_acquire(&worker->tick.monitor.held) == load_relaxed(&worker->counters.switches) + 1 &&
           !load_seq_cst(&over);
}

/* Is what it was asked for still so? */
static bool is_valid(const struct worker *worker, uint64_t then) {
    /* Pairs with relief_close. */
    return (then == ANYWAY || then == load_relaxed(&worker->counters.switches) + 1) && !load_seq_cst(&over);
}

bool relief_is_wanted(const struct worker *stuck) {
    uint64_t then = load_relaxed(&stuck->tick.asked.stuck);
    return (then != 0 && is_valid(stuck, then)) || is_held(stuck);
}

/* Once for each request. A worker that has switched meanwhile is not stuck any more. */
static bool is_stuck(struct worker *worker) {
    if (load_relaxed(&worker->tick.asked.stuck) == 0)
        return false;
    uint64_t then = exchange_acquire(&worker->tick.asked.stuck, UINT64_C(0)); /* pairs with relief_ask */
    return is_valid(worker, then);
}

/* It may be just taken once more. */
void relief_close(struct worker *home) {
    store_seq_cst(&over, 1); /* pairs with is_held and is_valid */
    while (worker_here() != home)
        thrum_yield();
}

/* True: there is more to do at once. No further tick reports what is held. */
INSIDE static bool relieve(struct worker *worker) {
    bool again = false;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        struct worker *stuck = runtime.workers[i];
        bool is_to_run = stuck != worker && (is_stuck(stuck) || is_held(stuck));
        struct thrum_unit *unit = is_to_run ? preempted_take(worker, stuck, NULL) : NULL;
        bool has_run = unit != NULL;
        if (has_run)
            worker_run(worker, unit);
        if (is_to_run && front_relieve != NULL)
            has_run |= front_relieve(worker, stuck);
        again |= has_run && is_held(stuck);
    }
    worker_hand_over(worker);
    return again;
}

static void wait_until_asked(void) {
    /* The exchange pairs with relief_wake: what was asked is there. */
    while (!load_acquire(&runtime.stopping) && exchange_acquire(&asked, 0U) == 0)
        futex_wait(&asked, 0);
}

/* A tick that comes while it waits is its last. A leaving worker wakes the next: the word may have been reset in
 * between. */
void relief_loop(struct worker *worker) {
    while (wait_until_asked(), !load_acquire(&runtime.stopping)) {
        enter();
        worker->has_scheduler = true; /* a unit that waits or yields switches to the loop */
        worker->until_slow = 1;
        while (relieve(worker) && !load_acquire(&runtime.stopping)) {
        }
        leave();
    }
    relief_wake();
}
