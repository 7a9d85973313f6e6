// SPDX-License-Identifier: Apache-2.0
/* The preloaded library: what its files share.
 *
 * libthrum-cache.so stands before libc in the search order and defines the names of the calls that make, end and
 * reach threads, or that change what a thread is. Each definition either serves the call from src/kthread or
 * passes it to libc, and keeps the notes that the reuse of a thread depends on. docs/internals/soundness.md lists which
 * call belongs to which row.
 *
 * Exported definitions are marked INTERPOSE and named in libthrum-cache.map. */
#ifndef THRUM_CACHE_INTERNAL_H
#define THRUM_CACHE_INTERNAL_H

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/counters.h"
#include "kthread/gate.h"
#include "kthread/kthread.h"
#include "kthread/libc.h"
#include "real.h"

#define INTERPOSE __attribute__((visibility("default")))

/* --- init.c --- */
/* Sets the library up on the first call that has to do with a thread: libc's table is filled, handles can be
 * told apart. Whether threads are kept is kthread_state()'s business. */
void cache_ready(void);
/* The part of it that every process pays for. */
void cache_early(void);
bool cache_verbose(void);
bool cache_off_from_start(void); /* and that has been said, with --verbose */
const char *
cache_off_pending(void);         /* why it will be off with the first thread, NULL if it is not known to */
bool cache_is_the_program(void); /* this process is the one that `thrum run` became */
long cache_pid(void);            /* the process that this memory belongs to: not a vfork's child */

bool cache_in_main(void); /* the caller is the process's main thread; no system call if nothing is kept */

void cache_fork_child(void);
/* A seccomp filter is about to be installed. What is not set up by now never will be: the filter may kill for it. */
void cache_filter_coming(void);

/* --- sandbox.c: a filter that was there before the process --- */
/* Whether every call that reuse makes may be made. Also settles whether fresh/unseen.c may ask about io_uring. */
bool sandbox_permits(void);
bool sandbox_is_filtered(void);  /* or it cannot be told */
bool sandbox_permits_more(void); /* calls that were not tried: there was no filter */

/* --- kind.c: thread attributes --- */
/* What a pthread_create with these attributes needs. PASS_NOT, or why it goes to libc. */
enum counters_pass kind_of(const pthread_attr_t *attributes, struct kthread_kind *kind, bool *detached);

/* --- create.c --- */
int c11_error(int error);
void create_fork_child(void);

/* --- limits.c --- */
void limits_read(void);

/* --- registers.c --- */
bool registers_have_pkeys(void); /* any thread can change its rights to protection keys */

/* --- report.c --- */
void report_once(void); /* the summary, if it is wanted and this process has not said it yet */

/* --- tasks.c, task_stat.c --- */
/* What follows in a path behind the folder of this process's tasks ("self/task", "/proc/PID/task"); NULL if it does not lead
 * there. */
const char *tasks_behind(const char *path);
bool tasks_is_folder(const char *path); /* it is that folder */
/* Entries of an open folder are about to be read. */
void tasks_listed_by(int fd);
/* The kernel has answered what a program asked about this path: true if idle threads have gone for it, and it is to be
 * asked again. */
bool task_stat_again(long answer, const char *path);

/* --- total.c: THRUM_CACHE_TOTAL, the counters summed over processes --- */
bool total_open(const char *path); /* false, with errno, where the file is not one for it */
bool total_wanted(void);           /* there is one */
void total_add(void);

/* --- tree.c: the processes of a program in one table --- */
void tree_open(uint64_t program); /* at start, with --verbose */
bool tree_add(void);              /* at the end: false if this process must report for itself */
void tree_print(void (*reasons)(const char *title, const uint64_t *counts, const char *(*reason)(unsigned)));

/* --- clock.c --- */
struct reach;
bool clock_is_of_thread(clockid_t clock);
pid_t clock_tid(clockid_t clock); /* 0 for the caller's */
/* A timer was made by its system call, by this clock, whose thread `reach` may be visiting. False: there is no room to
 * remember it, and it was deleted. */
bool clock_timer_made(clockid_t clock, const struct reach *reach, const int *timer);
/* What to set it to: `value`, or *shifted. */
const struct itimerspec *clock_timer_value(int timer, int flags, const struct itimerspec *value,
                                           struct itimerspec *shifted);
void clock_timer_gone(int timer);
void clock_fork_child(void);

/* --- process.c --- */
bool process_watch_forks(void); /* false: no memory for the handlers */
void process_child_begins(bool by_main);
bool process_make_room(void); /* idle threads end; true if there were any. errno stays */

/* --- compat.c --- */
void compat_fill_sigsafe(void);
/* The caller is a child that shares this memory, and the thread-locals of the thread that made it, until it has another
 * program (vfork, clone with CLONE_VM). What it changes is its own. */
bool process_is_sharing(void);
/* Can the kernel read there? Else it answers EFAULT, also where this library would look first. 8 bytes or more. */
bool process_can_read(const void *memory, size_t size);

/* --- stale.c: a thread named by its kernel id, for the length of a call --- */
struct reach {
    pid_t tid; /* the id to ask the kernel about: an id of no thread if that one has ended */
    struct kthread
        *thread; /* being visited; NULL: it is not one of ours, or it is the caller, or it has ended */
    struct gate_visit visit;
};
/* reach_end must follow. A negative id, and 0 for the caller, are left as they are. */
void reach_begin(struct reach *reach, pid_t tid);
void reach_end(struct reach *reach);
pid_t reach_look(pid_t tid); /* both at once: `tid`, or an id of no thread */
/* Something of the kernel's that names the thread outlives its job: it will retire. */
void reach_tie_by(const struct reach *reach, because call);
#define reach_tie(reach) reach_tie_by((reach), because_name(__func__))
/* The thread that a CPU clock belongs to; the clock to ask for. */
clockid_t reach_begin_clock(struct reach *reach, clockid_t clock);
/* All that the arguments of a system call name; they are changed where a thread has ended. */
struct reach_call {
    struct reach target, other;
    struct sigevent event;
};
void reach_begin_call(struct reach_call *call, long number, long *arguments);
void reach_end_call(struct reach_call *call);

/* --- visits by handle: a thread of ours other than the caller --- */
enum visit { VISIT_FOREIGN, VISIT_SELF, VISIT_INSIDE, VISIT_ENDED };
/* Only after VISIT_INSIDE gate_visit_end must follow. */
static inline enum visit visit_handle(pthread_t handle, struct kthread **thread, struct gate_visit *visit) {
    *thread = kthread_of_sigsafe(handle);
    if (*thread == NULL)
        return VISIT_FOREIGN;
    if (*thread == kthread_self_sigsafe())
        return VISIT_SELF;
    return kthread_visit(*thread, visit) ? VISIT_INSIDE : VISIT_ENDED;
}

/* --- inherit.c: kernel state that new threads inherit and that cannot be put back --- */
/* The thread that was just visited by handle has had such state changed, by this call of the program. */
void inherit_changed_by(enum visit entered, struct kthread *thread, pthread_t handle, because call);
/* The same by tid; 0 is the caller. */
void inherit_changed_tid_by(pid_t tid, because call);
#define inherit_changed_tid(tid) inherit_changed_tid_by((tid), because_name(__func__))
void inherit_changed_reached_by(const struct reach *reach, because call);
#define inherit_changed_reached(reach) inherit_changed_reached_by((reach), because_name(__func__))
void inherit_changed_many(const char *what); /* by one call */
void inherit_only_one_thread(void);          /* the kernel is about to want that */
/* A seccomp filter is about to be installed. */
void inherit_filter_coming(void);
void inherit_fork_child(void);
/* The caller is about to give up, or to change, what it may do, for itself alone. */
void inherit_rights_coming(void);
/* The caller is about to leave namespaces, or memory and files that it shares. */
void inherit_leaves_namespaces(void);

#endif
