// SPDX-License-Identifier: Apache-2.0
/* Joining and detaching a logical thread; errors as libc gives them (glibc 2.36, pthread_join_common.c).
 * Row join. */
#include <errno.h>
#include <setjmp.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/counters.h"
#include "kthread/how_many.h"
#include "kthread/internal.h"
#include "kthread/libc.h"
#include "os/futex.h"

static void stop_awaiting(struct kthread *thread) {
    uint32_t life = LIFE_AWAITED;
    cas_acq_rel(&thread->life, &life, LIFE_RUNNING); /* pairs with publish */
}

/* Sleeps until the thread has ended or the deadline has passed. ASK_LIBC: it may end without saying so. */
enum { ASK_LIBC = -1 };

static int sleep_until_ended(struct kthread *thread, clockid_t clock, const struct timespec *deadline) {
    for (;;) {
        /* This and the next two pair with publish: the result is there. */
        uint32_t life = load_acquire(&thread->life);
        if (life >= LIFE_ENDED)
            return 0;
        if (life == LIFE_RUNNING && !cas_acq_rel(&thread->life, &life, LIFE_AWAITED))
            continue;
        if (kthread_may_be_killed()) {
            stop_awaiting(thread);
            return ASK_LIBC;
        }
        long answer = futex_wait_until(&thread->life, LIFE_AWAITED, clock, deadline);
        if (answer == -ETIMEDOUT || answer == -EINVAL) {
            stop_awaiting(thread);
            return load_acquire(&thread->life) >= LIFE_ENDED ? 0 : (int)-answer;
        }
    }
}

/* Keeping has stopped, so its kernel thread ends with it. The handle is gone from libc then. */
static int join_in_libc(struct kthread *thread, enum kthread_join_mode mode, clockid_t clock,
                        const struct timespec *deadline) {
    int error = mode == KTHREAD_JOIN_TRY ? libc.pthread_tryjoin(thread->handle, NULL)
                : deadline == NULL       ? libc.pthread_join(thread->handle, NULL)
                                         : libc.pthread_clockjoin(thread->handle, NULL, clock, deadline);
    thread->joined_in_libc = error == 0;
    return error;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wstringop-overflow" /* __sigsetjmp(.., 0) leaves the buffer's mask alone */
/* The same as a cancellation point. While the type is asynchronous a cancellation may come at any instruction,
 * so what it must undo is done from a landing, not from a cleanup handler tied to call sites; the thread is
 * joinable again afterwards, as POSIX wants. */
static int wait_cancellably(struct kthread *thread, clockid_t clock, const struct timespec *deadline) {
    __pthread_unwind_buf_t landing;
    int type;
    if (__sigsetjmp((struct __jmp_buf_tag *)(void *)landing.__cancel_jmp_buf, 0) != 0) {
        stop_awaiting(thread);
        store_release(&thread->joiner, 0); /* pairs with the cas of the next joiner */
        libc.unwind_next(&landing);
    }
    libc.register_cancel(&landing);
    pthread_testcancel();
    int error = 0;
    bool awake = place_wait(thread);
    if (!awake) {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
        error = sleep_until_ended(thread, clock, deadline);
        pthread_setcanceltype(type, &type);
        if (error == ASK_LIBC)
            error = join_in_libc(thread, KTHREAD_JOIN_WAIT, clock, deadline);
    }
    libc.unregister_cancel(&landing);
    if (error == 0)
        place_joined(thread, !awake);
    return error;
}
#pragma GCC diagnostic pop

/* The kernel thread is leaving or about to read that it must: until it has left, the descriptor stays. */
static void wait_for_stop(struct kthread *thread) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    libc.pthread_join(thread->handle, NULL);
    pthread_setcancelstate(state, &state);
    registry_free(thread);
}

/* The result is the caller's; the kernel thread goes back to the idle ones, or is seen off. */
static void reap(struct kthread *thread) {
    uint32_t life = LIFE_ENDED;
    fetch_sub_relaxed(&thrum_cache_counters.live, 1);
    how_many_not_unjoined(thread);
    if (thread->joined_in_libc) {
        registry_free(thread);
        return;
    }
    /* Pairs with publish; lost against expel or departures_unjoined. */
    if (cas_acq_rel(&thread->life, &life, LIFE_IDLE)) {
        kthread_release(thread);
        return;
    }
    wait_for_stop(thread);
}

/* Two that wait for each other would wait for ever, unless one has been cancelled. */
static bool deadlock(struct kthread *thread) {
    struct kthread *self = kthread_self_sigsafe();
    if (thread == self)
        return true;
    if (load_relaxed(&thread->life) >= LIFE_ENDED || load_relaxed(&thread->cancelled))
        return false;
    if (load_relaxed(&thread->joins) == pthread_self())
        return true;
    /* Pairs with its cas in kthread_join. */
    return self != NULL && load_acquire(&self->joiner) == thread->handle;
}

int kthread_join(struct kthread *thread, void **result, enum kthread_join_mode mode, clockid_t clock,
                 const struct timespec *deadline) {
    uint32_t life = load_acquire(&thread->life); /* pairs with publish */
    if (!skipped(ROW_JOIN)) {
        if (life == LIFE_IDLE)
            return ESRCH;
        if (mode == KTHREAD_JOIN_TRY && life < LIFE_ENDED && !kthread_may_be_killed())
            return EBUSY;
        if (life == LIFE_DETACHED)
            return EINVAL;
        if (deadlock(thread))
            return EDEADLK;
    }
    pthread_t none = 0;
    /* Pairs with a joiner's that gave up; this one's two stores of 0 pair with the next one's. */
    if (!cas_acq_rel(&thread->joiner, &none, pthread_self()) && !skipped(ROW_JOIN))
        return EINVAL;
    if (deadline != NULL && deadline->tv_sec < 0 && life < LIFE_ENDED) {
        store_release(&thread->joiner, 0); /* pairs with the cas of the next joiner */
        return ETIMEDOUT;                  /* the kernel would call it malformed */
    }
    place_join(thread);
    int error = 0;
    if (life < LIFE_ENDED)
        error = mode == KTHREAD_JOIN_TRY && kthread_may_be_killed()
                    ? join_in_libc(thread, mode, clock, NULL)
                    : wait_cancellably(thread, clock, deadline);
    if (error != 0) {
        store_release(&thread->joiner, 0); /* pairs with the cas of the next joiner */
        return error;
    }
    if (result != NULL) /* of one that was killed there is none, as in libc */
        *result = load_acquire(&thread->life) >= LIFE_ENDED ? thread->result : NULL; /* pairs with publish */
    reap(thread);
    return 0;
}

/* Stands in `joiner` after a detach: the thread cannot be joined any more. */
static const pthread_t detacher = (pthread_t)-1;

/* With a joiner already waiting libc says 0 and changes nothing. */
int kthread_detach(struct kthread *thread) {
    pthread_t none = 0;
    uint32_t life = load_acquire(&thread->life); /* pairs with publish */
    if (life == LIFE_IDLE)
        return skipped(ROW_JOIN) ? 0 : ESRCH;
    /* The cas pairs with the store of a joiner that gave up, the load with the cas below. */
    if (life == LIFE_DETACHED || !cas_acq_rel(&thread->joiner, &none, detacher))
        return load_acquire(&thread->life) == LIFE_DETACHED && !skipped(ROW_JOIN) ? EINVAL : 0;
    life = LIFE_RUNNING;
    place_detached();
    if (cas_acq_rel(&thread->life, &life, LIFE_DETACHED)) /* pairs with publish and the load above */
        return 0;
    reap(thread); /* it has ended: only the claim's owner continues from here */
    return 0;
}
