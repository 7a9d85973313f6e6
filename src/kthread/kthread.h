// SPDX-License-Identifier: Apache-2.0
/* Kernel threads kept for reuse: the layer's interface.
 *
 * A *kernel thread* is what clone made, with its stack and its libc thread control block. A *logical thread* is
 * what a program asked for with pthread_create. Here a kernel thread runs one logical thread after another; in
 * between it is *idle*: parked on a futex, listed, its signals blocked. What happens to it is told in life.h;
 * how a used one is made indistinguishable from a new one, in fresh/.
 *
 * Used by cache/ (LD_PRELOAD, for unmodified programs) and meant for the user-level runtime, which takes its
 * carriers from here. The layer calls libc's own functions through the table in libc.h, never by name where the
 * front end interposes that name.
 *
 * Contexts: the functions below are called from kernel threads, not from signal handlers, unless they end in
 * _sigsafe.
 */
#ifndef THRUM_KTHREAD_KTHREAD_H
#define THRUM_KTHREAD_KTHREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "kthread/because.h"
#include "kthread/fresh/fresh.h"
#include "kthread/life.h"
#include "kthread/place.h"
#include "thrum/cache.h"

struct kthread_own_stack { /* the program's; {NULL}: none */
    char *low;
    size_t size;
};

/* What must match exactly for one kernel thread to stand in for another.
 *
 * A job whose stack is the program's own runs there, but its kernel thread does not live there: that parks on a small
 * stack of libc's, for the program may do with its own what it likes as soon as the job has been joined. Any kernel
 * thread of that kind serves any such job of the same lineage. */
struct kthread_kind {
    size_t stack_size; /* of libc's; kthread_user_stack() sets it and guard_size for a program's stack */
    size_t guard_size;
    uint64_t lineage;              /* fresh/lineage.h */
    struct kthread_own_stack user; /* that there is one must match, not which */
};
void kthread_user_stack(struct kthread_kind *kind, char *low, size_t size);

#define KTHREAD_ENUM_(name, text) RETIRE_##name,
enum kthread_retire { RETIRE_NOT, THRUM_CACHE_RETIRE_REASONS(KTHREAD_ENUM_) };
#undef KTHREAD_ENUM_

/* Cache lines are laid out by writer: in a quick reuse each line that changes hands costs as much as a system call. */
struct kthread {
    _Alignas(64) uint32_t post; /* enum post; the parked thread sleeps on it */
    uint32_t gate;              /* which threads may still reach it by its handle; gate.h */

    _Alignas(64) uint32_t life; /* enum life; a joiner sleeps on it */
    void *result;               /* written by the thread before `life` says ENDED or RETIRED */
    struct place_run run;       /* written by the thread, read by a joiner that spins */

    /* The job: written by the creator while it owns the descriptor. */
    _Alignas(64) void *(*start)(void *);
    void *argument;
    pthread_t joiner; /* its joiner, 0 if none: a second joiner is refused (cas) */
    struct place_order order;
    struct fresh_creator creator;
    struct kthread_own_stack user; /* the job's; not written where this kind has none */

    /* The thread's own, for the length of one job: it resets them before its gate opens (other threads set the flags
     * atomically). */
    _Alignas(64) struct place_notes notes;
    struct fresh_state fresh;
    bool exit_called;   /* pthread_exit chose the result */
    uint32_t cancelled; /* pthread_cancel was called on it */
    uint32_t tied;      /* enum kthread_retire: something outlives the job, so the thread may not */
    because call;       /* the call that `tied` or the change of `lineage` is from */
    bool mask_saved;    /* creator.mask is now the job's own, as it was at its end */
    bool tid_moved;     /* the kernel would not clear libc's word at its exit */
    uint64_t lineage;   /* kind.lineage, until the job changes it; fresh/lineage.h */
    pthread_t joins;    /* the foreign thread that it waits for in libc's pthread_join, 0 if none */
    struct __jmp_buf_tag *landing; /* where its pthread_exit lands */
    bool has_worked;               /* this is not its first job */
    bool joined_in_libc;           /* by a joiner, which then frees the descriptor */
    sigbits pending_seen;          /* pending for it or the process when the last job ended */

    /* r/o after the kernel thread's creation */
    _Alignas(64) pthread_t handle;
    pid_t tid;
    struct kthread_kind kind;

    /* under the idle list's lock */
    _Alignas(64) struct kthread *next_idle;
    struct kthread **idle_at; /* the pointer that points to it */
    unsigned listed_in;       /* the node of its list, plus 1; 0: none. Under that list's lock, else a hint */
    uint64_t idle_since;      /* monotonic ns, if the warden of retain.h wants it */
    uint64_t rest_until;      /* monotonic ns; written by the thread before it is listed */

    uint32_t is_unjoined; /* how_many.h; set by the thread before its end is published */

    /* of the parked thread (retain.h) */
    uint64_t parked_ns; /* monotonic, coarse; 0: it has not slept since its last job */
    bool trimmed;
    pid_t left_tid; /* `tid`, once it has departed */

    /* under the registry's lock */
    struct kthread *next_known, *previous_known;
};

/* The default of max_idle: it bounds nothing, and new threads have a limit of their own (SPARE_NEW in how_many.h). */
#define KTHREAD_MAX_IDLE_UNSET UINT64_MAX

/* Set once, before the first thread; r/o afterwards but for memory_limited and most_tasks. */
struct kthread_config {
    uint64_t min_rest_ns; /* a thread rests this long before it is reused */
    uint64_t max_idle;    /* more idle threads than this are not kept */
    bool memory_limited;  /* none is kept while address space is limited */
    bool wipe_stack;
    uint64_t most_tasks; /* of the system's limit on tasks no more than this is kept; 0: there is no limit */
    /* retain.h; 0 and false: off */
    uint64_t max_age_ns;
    uint64_t thread_ns; /* the bound on the sum of idle times */
    uint64_t trim_after_ns;
    bool watch_pressure;
};
extern struct kthread_config kthread_config;

/* The kernel thread under the caller, NULL if it is not one of ours or is on its way out. */
struct kthread *kthread_self_sigsafe(void);

/* The one behind a handle, NULL if the handle is not of ours. The handle must be valid, as for any pthread_
 * function. */
struct kthread *kthread_of_sigsafe(pthread_t handle);

/* Once, before the first thread. False if this libc is not understood: nothing must be kept. */
bool kthread_init(void);

/* Starts fn(arg) on an idle kernel thread of this kind, or on a new one. 0 or libc's errno (EAGAIN: not even
 * after the idle threads were given up), or one of these: nothing was done. *handle is set before the
 * thread starts. */
enum {
    KTHREAD_NO_DESCRIPTOR = -1,
    KTHREAD_NOT_KEPT =
        -2, /* kthread_stop_keeping: a filter may be there, under which this library makes no call */
};
int kthread_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
                  pthread_t *handle);

/* Waits for it. 0, EINVAL (detached, another thread joins, bad deadline), EDEADLK, EBUSY (mode try), ETIMEDOUT. A
 * cancellation point unless mode is KTHREAD_JOIN_TRY; a cancelled join leaves the thread joinable. */
enum kthread_join_mode { KTHREAD_JOIN_WAIT, KTHREAD_JOIN_TRY };
int kthread_join(struct kthread *thread, void **result, enum kthread_join_mode mode, clockid_t clock,
                 const struct timespec *deadline);
int kthread_detach(struct kthread *thread);

/* pthread_exit for a thread of ours. */
void kthread_exit(void *result) __attribute__((noreturn));

/* Before a thread of ours leaves by a raw exit system call. */
void kthread_exits_raw(void);

/* Ends all idle threads, and the kernel threads of those that ended and are not joined, and waits until the kernel has
 * let go of them. Returns how many there were. */
unsigned kthread_cull(void);

/* Around a copy of the process that libc knows nothing of (a bare clone), in the parent: no thread of ours may be inside
 * libc then, or libc's locks would be held for ever in the copy. */
void kthread_before_copy(void);
void kthread_after_copy(void);

/* main() called pthread_exit: from now on the last logical thread must end the process. */
void kthread_main_exits(void);

/* Nothing is kept any more (`why` is one phrase); threads that run now retire when they end. */
void kthread_stop_keeping(const char *why);
/* A seccomp filter is coming, perhaps for all threads: the same, and no thread is left that is about to make a call of the
 * library's. From then on the kernel may end a single thread, by a filter or because the thread is in strict mode. */
void kthread_filter_comes(void);
/* Such a thread does not publish its end: its joiner waits for the kernel thread, as libc's does. */
bool kthread_may_be_killed(void);
/* kthread_stop_keeping before the first thread, without a system call. */
void kthread_keep_none(const char *why);
bool kthread_keeping(void);
const char *kthread_state(void); /* "on", or why not */

/* In a fork's child; by_main: the process's main thread had called fork. */
void kthread_fork_child(bool by_main);

/* Reaching a thread by handle or tid, for the length of a visit (gate.h): false if it has ended or is idle. The
 * visitor may be any thread but the one it visits. */
struct gate_visit;
bool kthread_visit(struct kthread *thread, struct gate_visit *visit);
enum kthread_tid { KTHREAD_TID_FOREIGN, KTHREAD_TID_ENDED, KTHREAD_TID_VISITED };
enum kthread_tid kthread_visit_tid(pid_t tid, struct gate_visit *visit, struct kthread **thread);

/* Something will outlive the calling thread's job that dies only with the kernel thread: it will retire. Named after the
 * function that says so, which is the program's call where that is interposed; else the _by form names it. */
void kthread_tie_sigsafe_by(enum kthread_retire why, because call);
#define kthread_tie_sigsafe(why) kthread_tie_sigsafe_by((why), because_name(__func__))
/* The same for a thread of ours that the caller visits. */
void kthread_tie_of_by(struct kthread *thread, enum kthread_retire why, because call);
/* The same for the thread with this tid, the caller's if 0, if it is one of ours. */
void kthread_tie_tid_by(pid_t tid, because call);
#define kthread_tie_tid(tid) kthread_tie_tid_by((tid), because_name(__func__))

/* Lineages (fresh/lineage.h). The caller's: false if unknown. The caller, or another thread of ours, changed
 * kernel state that its children inherit. A thread of libc's own making takes on its creator's. */
bool kthread_lineage(uint64_t *lineage);
void kthread_change_lineage_by(because call);
void kthread_change_lineage_of_by(struct kthread *thread, because call);
#define kthread_change_lineage()          kthread_change_lineage_by(because_name(__func__))
#define kthread_change_lineage_of(thread) kthread_change_lineage_of_by((thread), because_name(__func__))
void kthread_adopt_lineage(uint64_t lineage);
/* The main thread, which calls this, is about to change what it may do: no kernel thread keeps the rights that it has
 * now but those that are at work, and these end when they are done. */
void kthread_change_rights(void);

#endif
