// SPDX-License-Identifier: Apache-2.0
/* How a caller waits, whatever it is: a thread of the layer, whose state and pool say so; a tasklet or a main scheduler, whose
 * host waits; or an external kernel thread.
 *
 * A waiter stands in one list, under the lock of the object. The thread that takes it out, under that lock, wakes it: a waker, or the timer
 * of its deadline. */
#include "base/container_of.h"
#include "direct.h"

void abt_wait_not(struct abt_waiter *waiter) {
    if (waiter->thread != NULL) {
        abt_pool_add_blocked(waiter->thread->pool, -1);
        store_relaxed(&waiter->thread->state, ABT_THREAD_STATE_RUNNING);
    }
    front_wait_not(waiter->unit);
}

void abt_wake(struct abt_waiter *waiter) {
    abt_wake_here(enter(), waiter);
    leave();
}

void abt_wake_all(struct abt_waiter *first) {
    for (struct abt_waiter *next; first != NULL; first = next) {
        next = first->next;
        abt_wake(first);
    }
}

bool abt_waitlist_remove(struct abt_waitlist *list, struct abt_waiter *waiter) {
    struct abt_waiter *before = NULL;
    for (struct abt_waiter *at = list->first; at != NULL; before = at, at = at->next) {
        if (at != waiter)
            continue;
        if (before == NULL)
            list->first = at->next;
        else
            before->next = at->next;
        if (list->last == at)
            list->last = before;
        return true;
    }
    return false;
}

/* The object's lock, which the timer takes too. */
struct timed {
    struct abt_waiter *waiter;
    struct abt_spin *lock;
    struct timed_wait timed_wait;
};

static bool give_up(struct timed_wait *timed_wait) {
    struct timed *timed = container_of(timed_wait, struct timed, timed_wait);
    abt_spin_acquire(timed->lock);
    bool is_mine = abt_waitlist_remove(timed->waiter->list, timed->waiter);
    if (is_mine)
        timed->waiter->timed_out = true;
    abt_spin_release(timed->lock);
    return is_mine;
}

void abt_has_waited(struct abt_thread *thread) {
    enter(); /* if it is preempted that, too, makes it ready */
    if (load_relaxed(&thread->state) == ABT_THREAD_STATE_BLOCKED) {
        abt_pool_add_blocked(thread->pool, -1);
        store_relaxed(&thread->state, ABT_THREAD_STATE_RUNNING);
    }
    leave();
}

/* Those that wait with a deadline count as ready in the size of their pool: a program that polls while something is ready, and
 * else sleeps in the kernel, is not to sleep past it. */
bool abt_wait_until(struct abt_waiter *waiter, struct abt_waitlist *list, struct abt_spin *lock,
                    uint64_t deadline) {
    if (deadline == TIMER_NEVER) {
        abt_wait(waiter);
        return true;
    }
    struct timed timed = {
        .waiter = waiter, .lock = lock, .timed_wait = {.unit = waiter->unit, .give_up = give_up}};
    struct abt_thread *thread = waiter->thread;
    struct abt_pool *pool = thread != NULL ? thread->pool : NULL;
    waiter->list = list;
    timed.timed_wait.timer.deadline = deadline;
    if (pool != NULL)
        fetch_add_relaxed(&pool->timed, 1);
    front_wait_timed(waiter->worker, &timed.timed_wait);
    if (pool != NULL) {
        fetch_sub_relaxed(&pool->timed, 1);
        abt_has_waited(thread);
    }
    return !waiter->timed_out;
}

bool abt_wait_in_until(struct abt_waitlist *list, struct abt_spin *lock, uint64_t deadline) {
    struct abt_waiter waiter;
    abt_wait_begin_here(worker_here(), &waiter);
    abt_waitlist_add(list, &waiter);
    abt_spin_release(lock);
    return abt_wait_until(&waiter, list, lock, deadline);
}

/* --- moments ------------------------------------------------------------------------------------------- */

static uint64_t after(int64_t ns) {
    uint64_t now = timer_now();
    return ns <= 0 ? now : (uint64_t)ns > TIMER_NEVER - 2 - now ? TIMER_NEVER - 2 : now + (uint64_t)ns;
}

uint64_t abt_deadline_real(const struct timespec *time) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t seconds = (int64_t)time->tv_sec - now.tv_sec;
    if (seconds > INT64_C(9000000000))
        return TIMER_NEVER - 2;
    if (seconds < -1)
        return after(0);
    return after(seconds * 1000000000 + (time->tv_nsec - now.tv_nsec));
}

uint64_t abt_deadline_in_seconds(double seconds) {
    return after(seconds > 9e9 ? INT64_MAX : seconds > 0 ? (int64_t)(seconds * 1e9) : 0);
}

uint64_t abt_deadline_real_seconds(double seconds) {
    return abt_deadline_in_seconds(seconds - ABT_get_wtime());
}
