// SPDX-License-Identifier: Apache-2.0
/* See member.h. */
#include "runtime/member.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch_tcb.h"
#include "context/annotate.h"
#include "os/futex.h"
#include "os/loaded.h"
#include "os/memory.h"
#include "os/thread.h"
#include "preempt/preempt.h"
#include "runtime/overflow.h"
#include "runtime/places.h"
#include "sched/exit.h"

/* --- memory ------------------------------------------------------------------------------------------- */

static size_t member_bytes(void) {
    return overflow_stack_bytes() + ((sizeof(struct member) + 4095) & ~(size_t)4095);
}

static char *memory_of(struct worker *worker) {
    return (char *)worker - overflow_stack_bytes();
}

bool member_new(uint32_t slot) {
    char *memory = memory_map(member_bytes(), 0);
    if (memory == NULL)
        return false;
    struct member *member = (struct member *)(void *)(memory + overflow_stack_bytes());
    if (worker_init(&member->worker, slot) != 0) {
        munmap(memory, member_bytes());
        return false;
    }
    runtime.workers[slot] = &member->worker;
    return true;
}

void member_delete(uint32_t slot) {
    struct worker *worker = runtime.workers[slot];
    worker_destroy(worker);
    munmap(memory_of(worker), member_bytes());
    runtime.workers[slot] = NULL;
}

/* --- kernel threads ----------------------------------------------------------------------------------- */

/* Of the C++ runtime, if the program has one. It leads to thread-locals of the caller. */
struct exception_globals *__cxa_get_globals(void) __attribute__((weak));

/* The same; r/o while there are workers, of which all have such, or none. */
static struct exception_globals *(*exceptions_here)(void);

struct exception_globals *(*member_exceptions(void))(void) {
    static const char *const names[] = {"libstdc++.so.6", "libc++abi.so.1"};
    if (exceptions_here == NULL)
        exceptions_here = __cxa_get_globals;
    for (unsigned i = 0; i < sizeof names / sizeof *names && exceptions_here == NULL; i++)
        *(void **)&exceptions_here = loaded_symbol(names[i], "__cxa_get_globals");
    return exceptions_here;
}

void member_thread_begin(struct worker *worker) {
    if (exceptions_here != NULL)
        worker->exceptions = exceptions_here();
    worker->tid = gettid();
    ARCH_TLS_STORE(thrum_worker, worker);
    exit_watch(true);
    annotate_thread_begin(&worker->annotate);
    overflow_thread_begin(memory_of(worker));
}

void member_thread_end(struct worker *worker) {
    overflow_thread_end(memory_of(worker));
    annotate_thread_end(&worker->annotate);
    exit_watch(false);
    ARCH_TLS_STORE(thrum_worker, NULL);
}

void member_end(struct worker *worker) {
    places_leave();
    member_thread_end(worker);
}

bool member_begin(struct worker *worker, struct thrum_unit *primary) {
    member_thread_begin(worker);
    places_enter(worker->id);
    if (preempt_worker_begin(worker, primary))
        return true;
    member_end(worker);
    return false;
}

static bool tell_begun(struct member *member, bool succeeded) {
    store_release(&member->begun, succeeded ? BEGUN : FAILED); /* pairs with start_thread */
    futex_wake(&member->begun, 1);
    return succeeded;
}

static void run_loop(struct worker *worker) {
    if (worker_relieves(worker))
        relief_loop(worker);
    else
        worker_loop(worker);
}

/* The worker, which was asked to leave, waits for nothing any more. Returns the unit that waits for it, or NULL. */
static struct thrum_unit *retire_member(struct member *member) {
    /* Pairs with the cas of wait_for_stop, and with is_free. */
    return exchange_acq_rel(&member->waiting, MEMBER_HAS_LEFT);
}

INSIDE static void wake_waiter(struct thrum_unit *waiting) {
    if (waiting != NULL)
        unit_wake(NULL, waiting);
}

/* From the wake-up on the slot may be another worker's. */
static void *worker_thread(void *arg) {
    struct member *member = arg;
    if (!tell_begun(member, member_begin(&member->worker, NULL)))
        return NULL;
    run_loop(&member->worker);
    bool leaves = worker_is_leaving(&member->worker) && !worker_relieves(&member->worker);
    enter();
    if (leaves)
        worker_hand_over(&member->worker);
    preempt_worker_end(&member->worker);
    member_end(&member->worker);
    if (leaves)
        wake_waiter(retire_member(member));
    leave();
    return NULL;
}

/* The same on carriers; its loop has a stack of its own there. */
static void *carried_loop(void *arg) {
    struct worker *worker = arg;
    run_loop(worker);
    enter();
    if (worker_is_leaving(worker))
        worker_hand_over(worker);
    preempt_worker_stop(worker);
}

void member_is_over(struct worker *worker) {
    struct member *member = (struct member *)(void *)worker;
    struct thrum_unit *waiting =
        worker_is_leaving(worker) && !worker_relieves(worker) ? retire_member(member) : NULL;
    wake_waiter(waiting); /* first: it reads other workers, which may be gone as soon as all are over */
    store_release(&member->over, 1); /* pairs with member_join; from here on this one may be gone */
    futex_wake(&member->over, 1);
}

bool member_make_loop(struct worker *worker, void *(*fn)(void *)) {
    worker->base.fn = fn;
    worker->base.arg = worker;
    worker->base.stack_class = STACK_CLASS_DEFAULT;
    worker->base.float_control = arch_float_control();
    store_relaxed(&worker->base.sp, UNIT_NEW);
    if (worker->base.stack_top == NULL)
        worker->base.stack_top =
            depot_get(&stack_depots[STACK_CLASS_DEFAULT], &worker->stacks[STACK_CLASS_DEFAULT]);
    if (worker->base.stack_top == NULL)
        return false; /* it must not be queued, as others are */
    return unit_make_frame(worker, &worker->base);
}

static int start_carried(struct member *member) {
    enter();
    bool made = member_make_loop(&member->worker, carried_loop);
    leave();
    if (!made)
        return ENOMEM;
    store_relaxed(&member->over, 0);
    preempt_worker_start(&member->worker);
    return 0;
}

/* By the creator: the process may end before the thread has run at all. A block is as far from its thread's handle as the
 * caller's is. */
static void *dtv_of(pthread_t handle) {
    return arch_tcb_dtv((uintptr_t)handle + (arch_tcb() - (uintptr_t)pthread_self()));
}

/* What it needs for ticks it can only get on its kernel thread. */
static int start_thread(struct member *member) {
    store_relaxed(&member->begun, NOT_YET);
    int error = thread_make_quiet(&member->handle, 0, worker_thread, member);
    if (error == 0)
        member->dtv = dtv_of(member->handle);
    /* This and the next pair with tell_begun. */
    while (error == 0 && ticks_are_possible && load_acquire(&member->begun) == NOT_YET)
        futex_wait(&member->begun, NOT_YET);
    if (error == 0 && load_acquire(&member->begun) == FAILED) {
        pthread_join(member->handle, NULL);
        error = EAGAIN;
    }
    return error;
}

int member_start(struct member *member) {
    int error = EAGAIN;
    store_relaxed(&member->waiting, NULL);
    if (preempt_worker_ready(&member->worker))
        error = carriers_are_used ? start_carried(member) : start_thread(member);
    if (error != 0)
        preempt_worker_unready(&member->worker);
    member->has_thread = error == 0;
    return error;
}

void member_join(struct member *member) {
    /* Pairs with member_is_over. */
    while (member->has_thread && carriers_are_used && load_acquire(&member->over) == 0)
        futex_wait(&member->over, 0);
    if (member->has_thread && !carriers_are_used)
        pthread_join(member->handle, NULL);
    member->has_thread = false;
}

void member_relieves(struct member *member) {
    store_release(&member->worker.stay, WORKER_RELIEVES);
}
