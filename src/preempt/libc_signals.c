// SPDX-License-Identifier: Apache-2.0
/* Libc's two internal signals where workers run on lent blocks; for preempt.c and donors.c.
 *
 * Their handlers take the installed thread control block for that of the kernel thread that got the signal. On a
 * worker it is a donor's. So both are wrapped, by raw system calls: sigaction() denies that these signals exist.
 *
 * SET IDS (33). In Linux setuid() and its like affect one kernel thread; libc makes each thread of the process call
 * it:
 *
 *   1. The caller takes a lock, marks all threads in libc's list but the one whose block it runs on, and sends each the
 *      signal, to the number that is in the block.
 *   2. The handler makes the call, takes the mark off the installed block, and counts the thread as done.
 *   3. The caller waits for all, checks whether a mark is left (then 1 again), and makes the call itself, last.
 *
 * A worker on a lent block would take the mark off a donor's, and its own would stay for ever: 3 would not end.
 * Wrapped, the handler runs with the worker's home block. A donor sleeps on its own.
 *
 * One thread is left out wrongly: a unit that calls on a lent block passes for the donor, which is not told. (Its
 * worker is, and makes the call twice, which is as good as once.) The donor must not keep its old ids: it would have
 * privileges that no other thread of the process has, and libc aborts at the first setuid() that ends there
 * differently than elsewhere. Which donor it is cannot be known, for the unit may move from worker to worker in
 * between. So each worker that is done compares its ids with those that the runtime knew; if they differ it records
 * them and sends all donors the same signal, with a value by which they know it, to follow. Doing so twice, or late,
 * does no harm, and no thread waits for it. But a donor must have followed when the next setuid() comes to it:
 *
 *   worker: busy++; libc's handler (when it returns the next setuid() may begin); ids, generation++; message; busy--
 *   donor:  waits for busy == 0; follows if there is a new generation; libc's handler
 *
 * When the next begins all are done with the last: each worker that may still have to write is counted by then. A
 * writer waits for no donor.
 *
 * A block without a kernel thread (blocks.h) leaves none out: where a unit calls on one, all kernel threads are in libc's list
 * with blocks of their own.
 *
 * The primary keeps the block of the kernel thread that it began on. When it is preempted it may resume elsewhere
 * (relief.c), and call there: then its first kernel thread is the one that is left out. So that one follows as donors
 * do, before it does what a worker does. It may follow a call of its own, too, which it makes last: again twice.
 *
 * CANCEL (32). pthread_cancel() sends it to a thread that may end at any instruction, in libc 2.34 and 2.35 to any
 * thread. A thread of the program's own stands on its own block. But on a worker that is not at home stands a unit
 * that was not meant: there the signal is dropped. Donors drop it too, which a unit names by pthread_self(), since
 * another unit may run on their blocks by then. But if the primary was meant, the signal is sent after it, or kept
 * until it resumes (primary.c).
 *
 * At any instant the installed block says which worker runs on it: tcb_install writes that first. A donor's says so
 * while its owner sleeps on it, too, so kernel threads are told apart by their numbers. A worker whose home is not
 * known has not left it.
 *
 * All signals are blocked in 33's handler: no code of the program's runs on a block that is not its unit's. Nothing
 * here touches errno, which may be another unit's. These may interrupt a tick's handler anywhere: they return to the
 * kernel thread that they came on.
 *
 * Libc sets its handlers when the process begins (up to 2.33), or 33's when it creates the first thread, and again in
 * a child of fork, and 32's at the first pthread_cancel(), once (2.34 to 2.42). So donors are created before, and a
 * helper thread is cancelled. */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/futex.h"
#include "os/lock.h"
#include "os/signals.h"
#include "os/thread.h"
#include "preempt/preempt.h"
#include "sched/tcb.h"
#include "sched/worker.h"

typedef void handler(int, siginfo_t *, void *);

/* The kernel's own. */
struct kernel_action {
    handler *fn;
    unsigned long flags;
    void (*restorer)(void);
    sigbits mask;
};

/* Libc's; r/o while they are wrapped, and kept afterwards for threads that are still in the wrapper. */
static struct kernel_action libc_cancel, libc_set_ids;

/* --- donors ------------------------------------------------------------------------------------------- */

/* Never freed: a handler may read it at any time. A thread that finds no room does not follow. */
enum { DONORS_MAX = 32768 };

static struct {
    struct {
        int32_t tid;         /* 0: free */
        uint32_t generation; /* of the ids that it has followed; its own */
        bool works;          /* the primary's kernel thread; its own */
    } of[DONORS_MAX];
    uint32_t count; /* none is behind that */
} donors;

static uint32_t generation; /* of `known`: under its lock */

/* DONORS_MAX: the calling kernel thread is none. */
static uint32_t donor_here(void) {
    int32_t tid = (int32_t)sys(SYS_gettid);
    uint32_t count = load_acquire(&donors.count), i = 0;
    while (i < count && load_relaxed(&donors.of[i].tid) != tid)
        i++;
    return i < count ? i : DONORS_MAX;
}

static bool claim(uint32_t i, int32_t tid) {
    int32_t unused = 0;
    /* Pairs with libc_signals_unfollow. */
    return load_relaxed(&donors.of[i].tid) == 0 && cas_acq_rel(&donors.of[i].tid, &unused, tid);
}

static void count_up_to(uint32_t end) {
    uint32_t count = load_relaxed(&donors.count);
    while (count < end && !cas_acq_rel(&donors.count, &count, end)) {
    }
}

/* A donor is created with what its creator has, which libc has told. */
void libc_signals_follow(bool works) {
    for (uint32_t i = 0; i < DONORS_MAX; i++)
        if (claim(i, (int32_t)sys(SYS_gettid))) {
            /* Pairs with say_ids: it was made with those ids. */
            donors.of[i].generation = load_acquire(&generation);
            donors.of[i].works = works;
            count_up_to(i + 1);
            return;
        }
}

void libc_signals_unfollow(void) {
    uint32_t self = donor_here();
    if (self != DONORS_MAX)
        store_release(&donors.of[self].tid, 0); /* pairs with claim */
}

/* --- ids ---------------------------------------------------------------------------------------------- */

struct ids {
    uid_t user[3], group[3]; /* real, effective, saved */
    long groups;             /* how many there are besides */
    uint64_t sum;            /* of them */
};

static struct {
    struct lock lock;
    struct ids ids;
    gid_t groups[65536]; /* as many as the kernel knows */
} known;

static uint32_t busy; /* futex: workers that have begun and may have to report the result */

/* Not lock_acquire: it asserts that the caller is inside, which a unit that is interrupted need not be. */
static void lock_blocked(struct lock *lock) {
    while (exchange_acquire(&lock->word, 2) != 0) /* pairs with lock_release */
        futex_wait(&lock->word, 2);
}

/* FNV-1a, a group at a time. */
static uint64_t sum_of(const gid_t *groups, long count) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (long i = 0; i < count; i++)
        sum = (sum ^ groups[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* The calling kernel thread's. By raw calls: libc's may leave an errno. */
static void read_ids(struct ids *ids) {
    sys(SYS_getresuid, &ids->user[0], &ids->user[1], &ids->user[2]);
    sys(SYS_getresgid, &ids->group[0], &ids->group[1], &ids->group[2]);
    ids->groups = sys(SYS_getgroups, sizeof known.groups / sizeof *known.groups, known.groups);
    ids->sum = sum_of(known.groups, ids->groups);
}

static bool same(const struct ids *one, const struct ids *other) {
    bool equal = one->groups == other->groups && one->sum == other->sum;
    for (int i = 0; i < 3; i++)
        equal &= one->user[i] == other->user[i] && one->group[i] == other->group[i];
    return equal;
}

/* As the kernel does it for sigqueue(), where that is not for one thread. */
static void tell_followers(void) {
    pid_t process = (pid_t)sys(SYS_getpid);
    siginfo_t info = {.si_code = SI_QUEUE};
    info.si_pid = process;
    info.si_value.sival_ptr = &known;
    for (uint32_t i = 0; i < load_acquire(&donors.count); i++) {
        int32_t tid = load_relaxed(&donors.of[i].tid);
        if (tid != 0)
            sys(SYS_rt_tgsigqueueinfo, process, tid, SIGNAL_SET_IDS, &info);
    }
}

/* By a worker: if its ids differ from the known ones, they are known now. A worker that finds them known may rely on
 * all having been sent the message: the primary's kernel thread, which runs code of the program's, is told when a
 * worker's call of setuid() returns. */
static void say_ids(void) {
    struct ids now;
    lock_blocked(&known.lock);
    read_ids(&now);
    bool are_new = !same(&now, &known.ids);
    if (are_new) {
        known.ids = now;
        store_release(&generation, generation + 1); /* pairs with libc_signals_follow */
    }
    if (are_new)
        tell_followers();
    lock_release(&known.lock);
}

/* By a donor. The ids come last: with them goes the right to change the others. It need not do what it may not, since
 * it may do whatever the donors could that were told in time. */
static void follow(uint32_t self) {
    lock_blocked(&known.lock);
    if (donors.of[self].generation != generation) {
        const struct ids *ids = &known.ids;
        sys(SYS_setgroups, ids->groups, known.groups);
        sys(SYS_setresgid, ids->group[0], ids->group[1], ids->group[2]);
        sys(SYS_setresuid, ids->user[0], ids->user[1], ids->user[2]);
        donors.of[self].generation = generation;
    }
    lock_release(&known.lock);
}

static void wait_for_workers(void) {
    for (uint32_t count; (count = load_acquire(&busy)) != 0;) /* pairs with on_worker */
        futex_wait(&busy, count);
}

static bool is_message(const siginfo_t *info) {
    return info->si_code == SI_QUEUE && info->si_value.sival_ptr == &known &&
           info->si_pid == (pid_t)sys(SYS_getpid);
}

/* --- the signals -------------------------------------------------------------------------------------- */

/* NULL: this kernel thread is none. Not for a donor. */
static struct worker *worker_really_here(void) {
    struct worker *worker = worker_here();
    return worker != NULL && worker->tid == (int32_t)sys(SYS_gettid) ? worker : NULL;
}

static bool is_at_home(const struct worker *worker) {
    uintptr_t home = load_relaxed(&worker->home.base);
    return home == 0 || home == arch_tcb();
}

/* No thread-local is touched in here, but by libc's handler. */
static __attribute__((noinline)) void at_home(const struct worker *worker, int signal, siginfo_t *info,
                                              void *context) {
    uintptr_t lent = arch_tcb();
    arch_tcb_install(worker->home.base, tcb_is_cheap);
    libc_set_ids.fn(signal, info, context);
    arch_tcb_install(lent, tcb_is_cheap);
}

static void on_worker(struct worker *worker, int signal, siginfo_t *info, void *context) {
    /* Before libc's handler, which tells the caller; pairs with wait_for_workers. */
    fetch_add_seq_cst(&busy, 1U);
    if (is_at_home(worker))
        libc_set_ids.fn(signal, info, context);
    else
        at_home(worker, signal, info, context);
    say_ids();
    if (fetch_sub_seq_cst(&busy, 1U) == 1) /* pairs with wait_for_workers: `known` is new */
        futex_wake(&busy, INT32_MAX);
}

static void on_donor(uint32_t self, int signal, siginfo_t *info, void *context) {
    if (is_message(info)) {
        follow(self);
        return;
    }
    wait_for_workers();
    follow(self);
    if (donors.of[self].works)
        on_worker(worker_here(), signal, info, context);
    else
        libc_set_ids.fn(signal, info, context);
}

static void on_set_ids(int signal, siginfo_t *info, void *context) {
    uint32_t donor = donor_here();
    struct worker *worker = donor == DONORS_MAX ? worker_really_here() : NULL;
    if (donor != DONORS_MAX)
        on_donor(donor, signal, info, context);
    else if (worker != NULL)
        on_worker(worker, signal, info, context);
    else
        libc_set_ids.fn(signal, info, context);
}

static bool is_other_worker_at_home(const struct worker *worker) {
    return is_at_home(worker) && worker != load_relaxed(&runtime.primary.bound);
}

/* Libc's handler may not return, and unwinds the stack from here on. */
static void on_cancel(int signal, siginfo_t *info, void *context) {
    uint32_t donor = donor_here();
    if (donor != DONORS_MAX && !donors.of[donor].works)
        return;
    const struct worker *worker = worker_really_here();
    if (worker == NULL || is_other_worker_at_home(worker) || primary_takes_cancel(worker))
        libc_cancel.fn(signal, info, context);
}

/* --- life --------------------------------------------------------------------------------------------- */

static bool action_get(int signal, struct kernel_action *action) {
    return sys(SYS_rt_sigaction, signal, NULL, action, sizeof action->mask) == 0;
}

static void action_set(int signal, const struct kernel_action *action) {
    sys(SYS_rt_sigaction, signal, action, NULL, sizeof action->mask);
}

static bool is_there(const struct kernel_action *action) {
    return (void *)action->fn != (void *)SIG_DFL && (void *)action->fn != (void *)SIG_IGN;
}

static void *sleep_until_told(void *told) {
    while (load_acquire((uint32_t *)told) == 0) /* pairs with cancel_helper_thread */
        futex_wait(told, 0);
    return NULL;
}

/* Makes libc set its handler. The helper thread does nothing for which it could be ended, and belongs to no worker. */
static int cancel_helper_thread(void) {
    pthread_t handle;
    uint32_t told = 0;
    int error = thread_make_quiet(&handle, 64 * 1024, sleep_until_told, &told);
    if (error != 0)
        return error;
    pthread_cancel(handle);
    store_release(&told, 1); /* pairs with sleep_until_told */
    futex_wake(&told, 1);
    pthread_join(handle, NULL);
    return 0;
}

/* Takes libc's place. The flags and what returns from the handler are libc's. */
static void wrap(int signal, handler *fn, sigbits blocked, struct kernel_action *libc) {
    struct kernel_action now;
    if (!action_get(signal, &now) || !is_there(&now))
        return;
    if (now.fn == fn) /* it came with fork */
        now = *libc;
    *libc = now;
    now.fn = fn;
    now.mask |= blocked;
    action_set(signal, &now);
}

static void unwrap(int signal, handler *fn, const struct kernel_action *libc) {
    struct kernel_action now;
    if (action_get(signal, &now) && now.fn == fn)
        action_set(signal, libc);
}

int libc_signals_wrap(void) {
    struct kernel_action cancel;
    if (action_get(SIGNAL_CANCEL, &cancel) && !is_there(&cancel)) {
        int error = cancel_helper_thread();
        if (error != 0)
            return error;
    }
    read_ids(&known.ids);
    wrap(SIGNAL_SET_IDS, on_set_ids, SIGBITS_ALL, &libc_set_ids);
    wrap(SIGNAL_CANCEL, on_cancel, signals_bit(preempt.settings.signal), &libc_cancel);
    return 0;
}

void libc_signals_unwrap(void) {
    unwrap(SIGNAL_SET_IDS, on_set_ids, &libc_set_ids);
    unwrap(SIGNAL_CANCEL, on_cancel, &libc_cancel);
}

/* The wrappers stay until libc or the next runtime sets others: for a thread outside the runtime they do what libc's
 * handlers do. */
void libc_signals_fork_child(void) {
    uint32_t count = exchange_acquire(&donors.count, 0);
    for (uint32_t i = 0; i < count; i++)
        store_relaxed(&donors.of[i].tid, 0);
    lock_reset(&known.lock);
    store_relaxed(&busy, 0);
}
