// SPDX-License-Identifier: Apache-2.0
/* A kernel thread of ours, from its first job to its real end: run, end, park, run again, leave.
 *
 * How a job ends (the death of a logical thread, in order):
 *   1. Its start routine returns, or pthread_exit or a cancellation unwinds to the landing in run_job_here. libc does
 *      not know of the end: its "exiting" flag stays clear unless it was a cancellation.
 *   2. C++ thread_local destructors run, then key destructors, as in libc. Then, unlike in libc, destructors run of
 *      thread_local objects that a key's destructor made first. Then libc's own thread-locals are emptied. The landing
 *      stays registered: a destructor that calls pthread_exit lands again, and the rest continues, as in libc. An
 *      exception that leaves a destructor finds no handler: std::terminate ends the process, as in libc.
 *   3. All signals are blocked but libc's own. From here no code of the program runs.
 *   4. The gate is closed: no thread reaches this one by its handle any more, and what was sent has arrived.
 *   5. retire_reason looks for anything that cannot be undone.
 *   6a. Kept: what can be put back at once is put back, and the end is published (life.h). From that moment
 *      the descriptor may be another's: nothing of it is touched but `post`.
 *   6b. Retired: the end is published as such and the thread returns to libc, which does everything again and
 *      finds nothing to do. The thread that takes the result joins or detaches its handle in libc.
 *   7. Parked, the thread waits for `post`.
 * The next job begins with what must match its creator (begin_job), its signal mask last (open_up). A new
 * kernel thread begins like an idle one: signals blocked, parked until its creator has posted the job.
 */
#include "kthread/kthread.h"

#include <setjmp.h>
#include <unistd.h>

#include "arch_call_on.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/counters.h"
#include "kthread/gate.h"
#include "kthread/how_many.h"
#include "kthread/idle.h"
#include "kthread/internal.h"
#include "kthread/libc.h"
#include "kthread/retain.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/ticks.h"

/* A reuse that both sides spin for takes its time for the lines that the creator writes: two, beside `post`. */
_Static_assert(offsetof(struct kthread, creator.affinity.few) + sizeof(unsigned long) <=
                   offsetof(struct kthread, start) + 2 * 64,
               "a job and what its creator hands on are in two cache lines");

/* `self` is what the thread sees of itself, and is cleared before it leaves. `marked` is what others find by
 * its handle: a thread-local has the same distance from every thread's handle. */
static __thread struct kthread *self;
static __thread struct kthread *marked;
static ptrdiff_t mark_distance; /* r/o after kthread_init */

bool kthread_init(void) {
    store_relaxed(&mark_distance, (char *)&marked - (char *)pthread_self());
    creator_init();
    registry_init();
    place_init();
    keys_init();
    tls_module_seen = site_module_seen;
    return tls_init();
}

struct kthread *kthread_self_sigsafe(void) {
    return self;
}

static struct kthread **mark_of(pthread_t handle) {
    return (struct kthread **)((char *)handle + mark_distance);
}

struct kthread *kthread_of_sigsafe(pthread_t handle) {
    if (load_relaxed(&mark_distance) == 0)
        return NULL; /* no thread of ours yet */
    return load_relaxed(mark_of(handle));
}

void kthread_mark(pthread_t handle, struct kthread *thread) {
    store_relaxed(mark_of(handle), thread);
}

bool kthread_visit(struct kthread *thread, struct gate_visit *visit) {
    if (skipped(ROW_STALE)) {
        visit->gate = &thread->gate;
        visit->mask = signals_mask_set(SIGBITS_ALL);
        fetch_add_relaxed(visit->gate, 1);
        return true;
    }
    return gate_visit_begin(visit, &thread->gate);
}

void kthread_tie_of_by(struct kthread *thread, enum kthread_retire why, because call) {
    if (skipped(ROW_KERNEL_TIES))
        return;
    store_relaxed(&thread->call, call);
    store_relaxed(&thread->tied, why);
}

void kthread_tie_sigsafe_by(enum kthread_retire why, because call) {
    if (self != NULL)
        kthread_tie_of_by(self, why, call);
}

void kthread_tie_tid_by(pid_t tid, because call) {
    struct kthread *thread;
    struct gate_visit visit;
    if (!kthread_keeping())
        return;
    if (tid == 0 || (self != NULL && tid == self->tid)) {
        kthread_tie_sigsafe_by(RETIRE_TIES, call);
        return;
    }
    if (kthread_visit_tid(tid, &visit, &thread) != KTHREAD_TID_VISITED)
        return;
    kthread_tie_of_by(thread, RETIRE_TIES, call);
    gate_visit_end(&visit);
}

/* --- a job ------------------------------------------------------------------------------------------- */

static void *leave(struct kthread *thread, enum kthread_retire why);

/* Only with the landing in place: what is let in may be a signal whose handler calls pthread_exit, or a
 * cancellation. */
static void open_up(struct kthread *thread) {
    gate_open(&thread->gate);
    if (!skipped(ROW_SIGMASK))
        signals_mask_set(thread->creator.mask);
}

static void end_of_user_code(struct kthread *thread) {
    if (!skipped(ROW_REGISTERS))
        arch_registers_calm();
    if (!skipped(ROW_TLS_DTORS))
        libc.call_tls_dtors();
    thread->fresh.has_tls_dtors = false;
    keys_run_destructors(KEYS_NONE_SPARED);
    if (!skipped(ROW_TLS_DTORS))
        libc.call_tls_dtors(); /* of objects that a key's destructor made: else they would run at the next job's end */
    libc_state_end();
    keys_clear(KEYS_NONE_SPARED);
    store_relaxed(&thread->joins, 0); /* a handler may have left by pthread_exit in the middle of a join */
    sigbits mask = signals_mask_set(skipped(ROW_SIGMASK) ? signals_mask_get() : SIGBITS_ALL & ~SIGBITS_LIBC);
    rseq_forget();           /* no handler of the program runs any more */
    if (!thread->mask_saved) /* not when a cancellation comes just now and lands once more */
        thread->creator.mask = mask;
    thread->mask_saved = true;
    gate_close(&thread->gate);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wstringop-overflow" /* __sigsetjmp(.., 0) leaves the buffer's mask alone */
static void run_job_here(struct kthread *thread) {
    __pthread_unwind_buf_t landing;
    thread->landing = (struct __jmp_buf_tag *)(void *)landing.__cancel_jmp_buf;
    if (__sigsetjmp(thread->landing, 0) == 0) {
        libc.register_cancel(&landing);
        open_up(thread);
        thread->result = thread->start(thread->argument);
    } else if (!thread->exit_called) {
        thread->result = PTHREAD_CANCELED;
        /* Even if it was libc's pthread_exit, called behind the front end's back. Atomic, as every store to it: a
         * canceller may be inside the gate and setting it, too. */
        store_relaxed(&thread->cancelled, 1);
    }
    end_of_user_code(thread);
    /* An asynchronous cancellation may be on its way: its sender has left the gate, so the signal is queued,
     * and any system call takes delivery of it, here, where it can still land. One that libc makes, too, for a filter's
     * sake. */
    if (load_relaxed(&thread->cancelled))
        signals_mask_get();
    libc.unregister_cancel(&landing);
}
#pragma GCC diagnostic pop

static void run_job_there(void *thread) {
    run_job_here(thread);
}

/* On the program's stack if it gave one. The landing is there too, so that nothing is unwound beyond it; and it is left
 * before the job's end is published, when the program may do away with it. */
static void run_job(struct kthread *thread) {
    const struct kthread_own_stack *user = &thread->user;
    if (user->low == NULL)
        run_job_here(thread);
    else
        arch_call_on((void *)((uintptr_t)(user->low + user->size) & ~(uintptr_t)15), run_job_there, thread);
}

void kthread_exit(void *result) {
    thrum_assert(self != NULL);
    self->result = result;
    self->exit_called = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &(int){0}); /* as libc: no cancellation in mid-exit */
    if (skipped(ROW_END))
        longjmp(self->landing, 1);
    __pthread_unwind_buf_t here;
    libc.register_cancel(&here);
    libc.unwind_next(&here); /* to the one registered before: the landing, or a cleanup handler in between */
    __builtin_unreachable();
}

/* The kernel thread dies at once, without a result; libc's join notices that. What a real exit would have run
 * is left out there too. */
void kthread_exits_raw(void) {
    struct kthread *thread = self;
    signals_mask_set(SIGBITS_ALL);
    gate_close(&thread->gate);
    thread->result = NULL;
    leave(thread, RETIRE_TIES);
    signals_mask_set(SIGBITS_ALL);
}

/* A signal that is pending for the thread dies with it: then it must. Whether one is pending for the thread or for the
 * process is told by a file only; if that cannot be read, it may be the thread's. Looked at while the thread still
 * counts as running: a file opened later could get a number that the program expects for its own.
 *
 * The kernel is not asked about a thread that ran with nothing blocked: what was sent to it has been delivered. A signal
 * can only have come since end_of_user_code blocked them, when the program's code was over. A thread that really ends has
 * them blocked from there on too, and such a signal dies unseen; here the next job's beginning drops it, like one that was
 * sent to an idle thread (begin_job). */
static bool signal_pending(struct kthread *thread) {
    if (skipped(ROW_SIGPENDING))
        return false;
    thread->pending_seen = 0;
    if ((thread->creator.mask & ~SIGBITS_LIBC) == 0)
        return false;
    thread->pending_seen = signals_pending();
    return thread->pending_seen != 0 && signals_pending_thread() != 0;
}

static enum kthread_retire retire_reason(struct kthread *thread) {
    /* First: a program that is sandboxed by now may not allow what the others ask. */
    if (!may_be_kept(thread))
        return keeping_retire();
    if (load_relaxed(&thread->cancelled) && !skipped(ROW_CANCEL))
        return RETIRE_CANCELLED;
    if (load_relaxed(&thread->lineage) != thread->kind.lineage)
        return RETIRE_LINEAGE;
    if (load_relaxed(&thread->tied) != RETIRE_NOT)
        return load_relaxed(&thread->tied);
    if (thread->tid_moved && !skipped(ROW_KERNEL_TIES))
        return RETIRE_TIES;
    if (robust_held(&thread->fresh))
        return RETIRE_ROBUST;
    if (uring_used())
        return RETIRE_TIES;
    if (scheduling_changed(&thread->fresh))
        return RETIRE_LINEAGE;
    if (signal_pending(thread))
        return RETIRE_PENDING;
    return how_many_refuses(thread);
}

/* Only without a cancellation in flight: libc acts on one as soon as it is enabled. */
static void reset_cancellation(void) {
    if (skipped(ROW_CANCEL))
        return;
    int old;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
}

static void drop_alternate_stack(void) {
    stack_t stack;
    if (skipped(ROW_INHERIT) || sys(SYS_sigaltstack, NULL, &stack) != 0 || (stack.ss_flags & SS_DISABLE))
        return;
    stack = (stack_t){.ss_flags = SS_DISABLE};
    sys(SYS_sigaltstack, &stack, NULL);
}

/* What a job leaves behind in memory and in the kernel's accounts is seen to once for a series of short ones. */
static bool end_of_series(struct kthread *thread) {
    uint64_t now = arch_ticks();
    if (thread->notes.short_job && !cpu_time_wanted() &&
        now - thread->notes.series_began < CPU_TIME_UNASKED_US * ticks_per_us())
        return false;
    thread->notes.series_began = now;
    return true;
}

/* After the end has been published: neither the joiner nor the next creator need wait for it. The next job may be
 * there already. */
static void clean_up(struct kthread *thread) {
    reset_cancellation();
    drop_alternate_stack();
    if (!end_of_series(thread))
        return;
    stack_give_back(&thread->fresh, thread->kind.stack_size);
    cpu_time_ask(&thread->fresh);
}

/* --- publishing the end ------------------------------------------------------------------------------- */

/* life := to, unless it is DETACHED. Wakes a joiner. False if DETACHED. */
static bool publish(struct kthread *thread, enum life to) {
    /* This and the next pair with the joiner's, kthread_detach's and the creator's post. */
    uint32_t life = load_acquire(&thread->life);
    do {
        if (life == LIFE_DETACHED)
            return false;
    } while (!cas_acq_rel(&thread->life, &life, to));
    if (life == LIFE_AWAITED)
        futex_wake(&thread->life, 1);
    return true;
}

/* The kernel thread is about to return to libc, which may find that it is the last one and call exit(): from
 * here on it is a thread like any other, with the program's mask. No other thread knows it. */
static void *leave_detached(struct kthread *thread, enum kthread_retire why) {
    sigbits mask = thread->creator.mask;
    counters_retired(why);
    self = NULL;
    kthread_mark(pthread_self(), NULL);
    libc.pthread_detach(pthread_self());
    registry_free(thread);
    signals_mask_set(mask);
    return NULL;
}

/* It was idle, and ends because no thread has needed it. Its last job is long over: it lets no signal in. The next
 * thread that departs joins it, so few wait for that at a time. */
static void *depart(struct kthread *thread, sigbits mask) {
    counters_count(&thrum_cache_counters.culled);
    self = NULL;
    kthread_mark(thread->handle, NULL);
    signals_mask_set(mask);
    departures_reap();
    departures_end(thread);
    return NULL;
}

/* The joiner has the result, and the descriptor too. libc has it as well, for a joiner that calls libc past the front
 * end. */
static void *leave_published(sigbits mask, enum kthread_retire why, void *result) {
    counters_retired(why);
    self = NULL;
    signals_mask_set(mask);
    return result;
}

static void *leave(struct kthread *thread, enum kthread_retire why) {
    sigbits mask = thread->creator.mask;
    void *result = thread->result;
    store_relaxed(&thread->tid, 0); /* the kernel may soon give it to another thread */
    how_many_not_unjoined(thread);  /* one that was told to leave */
    self = NULL;                    /* before it is published: then the descriptor belongs to the joiner */
    if (publish(thread, LIFE_RETIRED))
        return leave_published(mask, why, result);
    fetch_sub_relaxed(&thrum_cache_counters.live, 1);
    return leave_detached(thread, why);
}

/* A thread that is already published as kept finds that keeping has stopped (kthread_stop_keeping): it takes itself
 * back if no other thread has it. */
static bool take_back(struct kthread *thread, bool detached) {
    if (may_be_kept(thread))
        return false;
    if (detached)
        return idle_remove(thread);
    uint32_t life = LIFE_ENDED;
    return cas_acq_rel(&thread->life, &life, LIFE_RETIRED); /* pairs with the joiner's reap */
}

/* The result for a thread that was fit to be kept. After KEPT and LEFT_TO_JOINER the descriptor may be another's, or
 * gone. */
enum outcome { KEPT, LEFT_TO_JOINER, NOT_KEPT, FULL };

static enum outcome keep(struct kthread *thread) {
    if (publish(thread, LIFE_ENDED))
        return take_back(thread, false) ? LEFT_TO_JOINER : KEPT;
    fetch_sub_relaxed(&thrum_cache_counters.live, 1);
    how_many_not_unjoined(thread);
    store_relaxed(&thread->life, LIFE_IDLE);
    if (!idle_push(thread))
        return FULL;
    return take_back(thread, true) ? NOT_KEPT : KEPT;
}

/* --- parked ------------------------------------------------------------------------------------------- */

/* Sleeps while nothing is posted; what was, or LEAVE. NOTHING, where a thread was woken to look after the idle ones,
 * means: again. Exported, and without functions inside it, so that a debugger shows an idle thread as what it is, by
 * this frame. */
__attribute__((noinline, visibility("default"))) enum post thrum_kthread_idle(struct kthread *thread);
enum post thrum_kthread_idle(struct kthread *thread) {
    uint32_t seen = POST_NOTHING;
    for (;;) {
        /* This and the next pair with kthread_post and place_post: the job is there. */
        if (seen == POST_NOTHING && cas_acquire(&thread->post, &seen, POST_SLEEPING))
            seen = POST_SLEEPING;
        if (seen != POST_SLEEPING)
            break;
        uint64_t ns = retain_watch(thread);
        if (ns == RETAIN_LEAVE || ns == RETAIN_UNJOINED)
            return ns == RETAIN_LEAVE ? POST_LEAVE : POST_UNJOINED;
        struct timespec limit = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
        sys(SYS_futex, &thread->post, FUTEX_WAIT_PRIVATE, POST_SLEEPING, ns == 0 ? NULL : &limit);
        seen = load_acquire(&thread->post);
    }
    store_relaxed(&thread->post, POST_NOTHING);
    retain_wake(thread);
    return seen;
}

void kthread_post(struct kthread *thread, enum post post) {
    if (exchange_acq_rel(&thread->post, post) == POST_SLEEPING) /* pairs with thrum_kthread_idle */
        futex_wake(&thread->post, 1);
}

/* While the gate is closed: no other thread reads these. */
static void reset_flags(struct kthread *thread) {
    thread->exit_called = false;
    thread->mask_saved = false;
    thread->tid_moved = false;
    thread->fresh.has_tls_dtors = false;
    store_relaxed(&thread->joins, 0);
    thread->has_worked = true;
    store_relaxed(&thread->cancelled, 0);
    store_relaxed(&thread->tied, RETIRE_NOT);
    store_relaxed(&thread->call, 0);
    store_relaxed(&thread->lineage, thread->kind.lineage);
}

static void begin_job(struct kthread *thread) {
    reset_flags(thread);
    place_begin(thread);
    cpu_time_begin(&thread->fresh);
    if (kthread_config.wipe_stack)
        stack_wipe(&thread->fresh, thread->kind.stack_size);
    tls_reimage();
    libc_state_begin();
    creator_apply(&thread->creator, &thread->fresh);
    /* Signals sent to the kernel thread while it was idle had no recipient. None can be meant for the new logical
     * thread, whose gate is not open yet. */
    if (!skipped(ROW_SIGPENDING))
        signals_drop_pending(thread->pending_seen);
}

void kthread_adopt_tid(struct kthread *thread) {
    store_relaxed(&thread->tid, (pid_t)sys(SYS_gettid));
}

/* An empty job takes less, with what is done before and after it; to write a name into a file takes longer. */
enum { NAMED_US = 2 };

void *kthread_main(void *argument) {
    struct kthread *thread = argument;
    self = thread;
    kthread_adopt_tid(thread);
    thrum_kthread_idle(thread); /* the creator has left its mark, and written the handle */
    creator_inherited(&thread->fresh);
    if (kthread_keeping()) /* else it may not read the ticks (place.c) */
        scheduling_note(&thread->fresh);
    place_begin(thread);
    if (kthread_config.wipe_stack && thread->user.low == NULL) /* it would measure the program's */
        stack_measure(&thread->fresh);
    for (;;) {
        run_job(thread);
        enum kthread_retire why = retire_reason(thread);
        if (why != RETIRE_NOT) {
            if (why == RETIRE_LINEAGE || why == load_relaxed(&thread->tied))
                because_count(why, load_relaxed(&thread->call));
            return leave(thread, why);
        }
        if (place_end(thread) >= NAMED_US * ticks_per_us())
            creator_look_at_name();
        cpu_time_end(&thread->fresh);
        if (kthread_config.min_rest_ns != 0 && !skipped(ROW_REST))
            thread->rest_until = clock_monotonic_ns() + kthread_config.min_rest_ns;
        sigbits mask = thread->creator.mask;
        void *result = thread->result;
        switch (keep(thread)) {
        case KEPT: break;
        case LEFT_TO_JOINER: return leave_published(mask, keeping_retire(), result);
        case NOT_KEPT: return leave_detached(thread, keeping_retire());
        case FULL: return leave_detached(thread, how_many_full());
        }
        clean_up(thread);
        place_linger(thread);
        switch (thrum_kthread_idle(thread)) {
        case POST_QUIT: self = NULL; return NULL;
        case POST_LEAVE: return depart(thread, keeping() ? SIGBITS_ALL & ~SIGBITS_LIBC : mask);
        case POST_UNJOINED:
            return leave_published(keeping() ? SIGBITS_ALL & ~SIGBITS_LIBC : mask, RETIRE_UNJOINED, result);
        case POST_LAST: return leave(thread, expelled_retire(thread));
        default: begin_job(thread);
        }
    }
}
