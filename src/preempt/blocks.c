// SPDX-License-Identifier: Apache-2.0
/* See blocks.h. */
#include "preempt/blocks.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/futex.h"
#include "os/loaded.h"
#include "os/lock.h"
#include "os/memory.h"
#include "os/rseq.h"
#include "os/syscall.h"
#include "os/thread.h"
#include "preempt/preempt.h"
#include "preempt/renew.h"
#include "sched/current.h"
#include "sched/exit.h"

/* Of struct pthread's `cancelhandling`: nptl/descr.h, and alike since there is NPTL. */
enum { STATE_DISABLED = 1 << 0, STATE_EXITING = 1 << 4, STATE_SETXID = 1 << 6 };

/* Above all numbers of kernel threads (PID_MAX_LIMIT is 2^22), and within FUTEX_TID_MASK. */
enum { NUMBERS = 0x20000000, NUMBERS_END = 0x3fffffff };

enum { SLOTS = 32, LINE = 64 }; /* in an area; bytes of a cache line */

typedef int creator(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* What is known of libc; r/o once `answer` is not NOT_NOW, as is `reason`. */
static enum blocks_answer answer;
static const char *reason;
static struct {
    uint32_t tid, state; /* where they are in a block */
    uint32_t *count;     /* of threads */
    creator *create;
    size_t slot, stack; /* bytes: of a block with libc's part; of the memory that libc is given for one */
    ptrdiff_t robust;   /* the list of robust mutexes, from libc's record; of each the same */
} of;

/* Memory for SLOTS blocks, downward from here, and for a stack below the last. A stack is needed for as long as a block is made:
 * it lies where the next ones will be. So one is made at a time, by the thread that has taken the area. */
struct area {
    struct area *next;
    char *end; /* of the next block */
    unsigned left;
} __attribute__((aligned(LINE)));

static struct lock lock;
static struct block *kept; /* under lock, as the next two, and preempt_counts.kept */
static struct area *areas; /* that no thread makes a block in, and that have room */
static size_t mapped;      /* bytes, in all */
static uint32_t number = NUMBERS + 1;

/* On the stack of the thread that makes one. */
struct birth {
    struct exception_globals *(*exceptions_here)(void); /* r/o, as the next */
    const char *low;
    struct block *block;
    const char *wrong; /* what is unlike the libc that is known */
    char *robust;      /* NULL: the kernel does not tell */
    bool is_born;
};

/* Where the kernel has none (emulators), the record stands for it, of which it is no part. */
static char *list_of_robust(char *record) {
    char *head = NULL;
    size_t length = 0;
    const long error = sys(SYS_get_robust_list, 0, &head, &length);
    return error == -ENOSYS ? record : error == 0 ? head : NULL;
}

/* Of libc's record, struct pthread, which a pthread_t names: at the thread pointer, or before it (aarch64). */
static uint32_t *word_of(uintptr_t record, uint32_t offset) {
    return (uint32_t *)(record + offset); // NOLINT(performance-no-int-to-ptr)
}

/* --- the kernel thread, which is there for this -------------------------------------------------------- */

/* Libc's signal to change the ids is open here: its handler takes the mark off. */
static void forbid_marks(uint32_t *state) {
    /* This and the next two pair with libc's cas of the mark (setxid_mark_thread, and its handler). */
    uint32_t now = load_acquire(state);
    for (;;) {
        if (now & STATE_SETXID) {
            sched_yield();
            now = load_acquire(state);
        } else if (cas_acq_rel(state, &now, now | STATE_EXITING)) {
            return;
        }
    }
}

/* While it is learnt. Later ones are made where the program may have a filter against calls that libc does not make for a
 * thread. */
static const char *what_is_wrong(const struct birth *birth, uintptr_t record) {
    if (answer != BLOCKS_NOT_NOW)
        return NULL;
    if (record - (uintptr_t)birth->low >= of.stack || arch_tcb() - (uintptr_t)birth->low >= of.stack)
        return "threads are not created by libc itself";
    if ((uintptr_t)birth->block - record > of.slot - sizeof(struct block))
        return "libc's record of a thread begins lower than where its part of a stack does";
    if (load_relaxed(word_of(record, of.tid)) != (uint32_t)sys(SYS_gettid))
        return "a thread's number is elsewhere in libc's record";
    if ((load_relaxed(word_of(record, of.state)) & ~(uint32_t)STATE_SETXID) != STATE_DISABLED)
        return "a thread's state is elsewhere in libc's record";
    return NULL;
}

/* Leaves as little as possible on the stack, which is memory that stays. ASan would keep marks of its frame, where the next block
 * comes to lie. */
__attribute__((no_sanitize("address"))) static void *leave_block(void *arg) {
    struct birth *birth = arg;
    const uintptr_t base = arch_tcb(), record = (uintptr_t)pthread_self();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* units that run on it name it by pthread_self() */
    if ((birth->wrong = what_is_wrong(birth, record)) != NULL)
        return NULL;
    birth->block->tcb.base = base;
    birth->block->record = record;
    birth->block->tcb.exceptions =
        birth->exceptions_here != NULL ? birth->exceptions_here() : &birth->block->tcb.none;
    rseq_give_up(base);
    exit_watch(true);
    birth->robust = answer == BLOCKS_NOT_NOW
                        ? list_of_robust((char *)record) // NOLINT(performance-no-int-to-ptr)
                        : (char *)record + of.robust;    // NOLINT(performance-no-int-to-ptr)
    birth->is_born = true;
    forbid_marks(word_of(record, of.state));
    for (;;)
        sys(SYS_exit, 0);
}

/* --- its maker ------------------------------------------------------------------------------------------ */

/* The kernel wakes it as a shared futex. False: the thread is gone, and libc's word says otherwise. */
static bool wait_until_gone(const uint32_t *tid) {
    const struct timespec look = {0, 100000000};
    /* This and the next pair with the kernel's store at the thread's end: it has left its stack. */
    for (uint32_t now; (now = load_acquire(tid)) != 0;)
        if (sys(SYS_futex, tid, FUTEX_WAIT, now, &look) == -ETIMEDOUT && answer == BLOCKS_NOT_NOW &&
            sys(SYS_tgkill, sys(SYS_getpid), now, 0) == -ESRCH && load_acquire(tid) == now)
            return false;
    return true;
}

static int configure(pthread_attr_t *attr, char *low) {
    sigset_t mask;
    const sigbits bits = thread_quiet_mask();
    sigemptyset(&mask);
    memcpy(&mask, &bits, sizeof bits);
    const int error = pthread_attr_setsigmask_np(attr, &mask);
    return error != 0 ? error : pthread_attr_setstack(attr, low, of.stack);
}

static int create(pthread_t *handle, char *low, struct birth *birth) {
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error != 0)
        return error;
    error = configure(&attr, low);
    if (error == 0)
        error = of.create(handle, &attr, leave_block, birth);
    pthread_attr_destroy(&attr);
    return error;
}

/* Huge pages would give each area as much as hundreds of them need. */
static struct area *map_area(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes =
        (sizeof(struct area) + (SLOTS - 1) * of.slot + sizeof(struct block) + of.stack + page - 1) / page *
        page;
    char *low = memory_map(bytes, MAP_NORESERVE);
    if (low == NULL)
        return NULL;
    memory_advise(low, bytes, MADV_NOHUGEPAGE);
    struct area *area = (struct area *)(void *)(low + bytes - sizeof *area);
    *area = (struct area){.end = (char *)area, .left = SLOTS};
    fetch_add_relaxed(&mapped, bytes);
    return area;
}

static struct area *take_area(void) {
    enter();
    lock_acquire(&lock);
    struct area *area = areas;
    if (area != NULL)
        areas = area->next;
    lock_release(&lock);
    leave();
    return area != NULL ? area : map_area();
}

/* No kernel thread runs in it. One that is full is forgotten. */
static void give_area(struct area *area) {
    if (area->left == 0)
        return;
    enter();
    lock_acquire(&lock);
    area->next = areas;
    areas = area;
    lock_release(&lock);
    leave();
}

/* One that was made before the program had C++ is of no use with it: where its exceptions are only a thread on it can find. */
static struct block *take_kept(bool with_exceptions) {
    enter();
    lock_acquire(&lock);
    struct block *block;
    while ((block = kept) != NULL) {
        kept = block->next;
        store_relaxed(&preempt_counts.kept, preempt_counts.kept - 1);
        if (!with_exceptions || block->tcb.exceptions != &block->tcb.none)
            break;
    }
    lock_release(&lock);
    leave();
    return block;
}

/* Its kernel thread is gone: what libc knows of it is made that of a running thread again. */
static void seem_alive(struct block *block) {
    fetch_sub_relaxed(of.count, 1U);
    /* This and the next pair with libc's loads, when it looks for threads to mark. */
    fetch_and_acq_rel(word_of(block->record, of.state), ~(uint32_t)STATE_EXITING);
    store_release(word_of(block->record, of.tid), block->number);
}

/* At the next place in `area`. NULL with *why: this libc is not understood; else: not now. *is_over: no kernel thread runs there. */
static struct block *make_in(const struct area *area, struct exception_globals *(*exceptions_here)(void),
                             const char **why, bool *is_over) {
    pthread_t handle;
    struct block *block = (struct block *)(void *)(area->end - sizeof *block);
    *block = (struct block){.number = fetch_add_relaxed(&number, 1U)};
    struct birth birth = {
        .exceptions_here = exceptions_here, .low = (char *)block - of.stack, .block = block};
    *is_over = true;
    if (create(&handle, (char *)block - of.stack, &birth) != 0)
        return NULL;
    const bool is_libcs = (uintptr_t)handle - (uintptr_t)birth.low < of.stack;
    const bool is_told = !is_libcs || wait_until_gone(word_of((uintptr_t)handle, of.tid));
    if (!birth.is_born) { /* its function returns */
        pthread_join(handle, NULL);
        *why = birth.wrong;
        return NULL;
    }
    if (!is_told) {
        fetch_sub_relaxed(of.count, 1U);
        *is_over = false;
        *why = "the end of a thread is not told in libc's record";
        return NULL;
    }
    seem_alive(block);
    if (birth.robust == NULL) {
        *is_over = false; /* libc has it for a thread's for ever */
        *why = "the kernel does not tell of robust mutexes";
        return NULL;
    }
    if (answer == BLOCKS_NOT_NOW)
        of.robust = birth.robust - (char *)handle;
    return block;
}

static struct block *make(struct exception_globals *(*exceptions_here)(void), const char **why) {
    bool is_over;
    struct area *area = load_relaxed(&number) < NUMBERS_END ? take_area() : NULL;
    if (area == NULL)
        return NULL;
    struct block *block = make_in(area, exceptions_here, why, &is_over);
    if (block != NULL) {
        area->end -= of.slot;
        area->left--;
    }
    if (is_over)
        give_area(area);
    return block;
}

struct block *block_make(struct exception_globals *(*exceptions_here)(void)) {
    const char *why;
    struct block *block = take_kept(exceptions_here != NULL);
    return block != NULL ? block : make(exceptions_here, &why);
}

void block_keep(struct block *block) {
    enter();
    lock_acquire(&lock);
    block->next = kept;
    kept = block;
    store_relaxed(&preempt_counts.kept, preempt_counts.kept + 1);
    lock_release(&lock);
    leave();
}

void block_reset_state(const struct block *block) {
    uint32_t *state = word_of(block->record, of.state), now = load_relaxed(state);
    /* Pairs with libc's cas of the mark. */
    while ((now & ~(uint32_t)STATE_SETXID) != STATE_DISABLED &&
           !cas_acq_rel(state, &now, (now & STATE_SETXID) | STATE_DISABLED)) {
    }
}

ptrdiff_t block_robust_list(void) {
    return of.robust;
}

/* --- what this libc is like ------------------------------------------------------------------------------ */

/* What debuggers are told of a field: its size in bits, how many there are, where. */
struct field {
    uint32_t bits, count, offset;
};

static bool find_field(const char *name, uint32_t *offset) {
    const struct field *field = dlsym(RTLD_DEFAULT, name);
    if (field == NULL || field->bits != 32 || field->count != 1)
        return false;
    *offset = field->offset;
    return true;
}

static bool is_known_version(void) {
    enum { OLDEST = 34, NEWEST = 42 };
    const char *version = gnu_get_libc_version();
    if (strncmp(version, "2.", 2) != 0)
        return false;
    const long minor = strtol(version + 2, NULL, 10);
    return OLDEST <= minor && minor <= NEWEST;
}

static const char *find_words(void) {
    void (*tls_info)(size_t *, size_t *);
    size_t tls = 0, alignment = 0;
    *(void **)&tls_info = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
    of.count = dlsym(RTLD_DEFAULT, "__nptl_nthreads");
    if (tls_info == NULL || of.count == NULL || !find_field("_thread_db_pthread_tid", &of.tid) ||
        !find_field("_thread_db_pthread_cancelhandling", &of.state))
        return "libc does not tell where its record of a thread has what";
    tls_info(&tls, &alignment);
    tls += 2 * alignment; /* the thread pointer is aligned, and so is the end of libc's part */
    /* A record before the thread pointer (aarch64) is not counted. */
    tls += arch_tcb() - (uintptr_t)pthread_self();
    of.slot = (tls + sizeof(struct block) + LINE - 1) / LINE * LINE;
    of.stack = (size_t)PTHREAD_STACK_MIN + tls;
    return NULL;
}

/* A library between the program and libc may give a thread that it keeps. Then libc's own function is called. */
static struct block *try(struct exception_globals *(*exceptions_here)(void), const char **why) {
    static const char *const none = "";
    *why = none;
    of.create = pthread_create;
    struct block *block = make(exceptions_here, why);
    if (block != NULL || *why == none)
        return block;
    *(void **)&of.create = loaded_symbol("libc.so.6", "pthread_create");
    return of.create != NULL ? make(exceptions_here, why) : NULL;
}

enum blocks_answer blocks_learn(struct exception_globals *(*exceptions_here)(void), const char **why) {
    if (answer != BLOCKS_NOT_NOW) {
        *why = reason;
        return answer;
    }
    reason = is_known_version() ? find_words() : "this version of libc is not known";
    if (reason == NULL && !renew_learn())
        reason = "thread-locals are not where libc is known to have them";
    if (reason == NULL) {
        struct block *block = try(exceptions_here, &reason);
        if (block == NULL && *reason == '\0')
            return BLOCKS_NOT_NOW;
        if (block != NULL)
            block_keep(block);
        answer = block != NULL ? BLOCKS_USABLE : BLOCKS_UNUSABLE;
    } else {
        answer = BLOCKS_UNUSABLE;
    }
    *why = reason;
    return answer;
}

size_t blocks_mapped(void) {
    return load_relaxed(&mapped);
}

/* Its memory stays: the caller may stand on one. */
void blocks_fork_child(void) {
    lock_reset(&lock);
    kept = NULL;
    areas = NULL;
    preempt_counts.kept = 0;
}
