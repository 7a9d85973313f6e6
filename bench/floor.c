// SPDX-License-Identifier: Apache-2.0
/* See floor.h. */
#define _GNU_SOURCE
#include "floor.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 64 * 1024, AT_ONCE = 64, QUEUE = 1 << 16, CALM = 256, LOOKS_BETWEEN = 32 };
enum { LOOK_NS = 100000 }; /* before a worker parks */

struct floor_thread {
    void *sp; /* first: the assembly stores it there. NULL: the registers are not saved yet */
    void *(*fn)(void *);
    void *arg;                   /* the result, once it has ended */
    struct floor_thread *joiner; /* or itself: it has ended */
    struct floor_thread *next;
    char *top;
    int unseen; /* its creator has not returned from floor_spawn: no other thread has the handle */
};

/* The deque of Lê, Pop, Cohen and Zappa Nardelli ("Correct and efficient work-stealing for weak memory models", PPoPP 2013): spawns
 * and wake-ups at its tail, thieves at its head. Its owner's fence is left out while no thief has come: `shared` says
 * whether one has. Yielded threads are in a ring, whose oldest is taken by owner and thieves alike. */
struct worker {
    struct floor_thread *current, *idle;
    struct floor_thread *free_threads;
    void *free_stacks; /* linked by the word at the top of each */
    int64_t calm_head;
    int calm;               /* pops until `shared` is cleared, if no thief comes */
    struct floor_thread it; /* the kernel thread itself, of all but the first worker */
    _Alignas(128) int64_t head, tail;
    _Alignas(128) int shared,
        is_stealing; /* `shared` changes under `is_stealing`, which a thief keeps meanwhile */
    _Alignas(128) int64_t oldest;
    _Alignas(128) int64_t newest;
    _Alignas(128) struct floor_thread *slots[QUEUE];
    struct floor_thread *yielded[QUEUE];
};

static struct worker workers[FLOOR_WORKERS];
static unsigned worker_count;
static struct floor_thread first_thread;

/* Workers that are parked in the low half, that look for work in the high one; and the wake-ups, a futex. */
enum { PARKED = 1, LOOKS = 0x10000, PARKED_MASK = LOOKS - 1 };
static _Alignas(128) unsigned idlers;
static _Alignas(128) unsigned tokens;

/* Read anew each time, by one instruction: a thread may be on another worker after a switch. */
static __thread struct worker *floor_worker __attribute__((tls_model("local-exec"), used));
static __thread uint32_t floor_inside __attribute__((tls_model("local-exec"), used)) = UINT32_C(0x80000000);

/* A runtime that may be interrupted counts that it is in its own code. This one never is. */
static inline struct worker *enter(void) {
    struct worker *worker;
    __asm__ volatile("incl %%fs:floor_inside@tpoff\n mov %%fs:floor_worker@tpoff, %0"
                     : "=r"(worker)
                     :
                     : "memory", "cc");
    return worker;
}

static inline void leave(void) {
    __asm__ goto("decl %%fs:floor_inside@tpoff\n jz %l[interrupted]" : : : "memory", "cc" : interrupted);
    return;
interrupted:
    abort();
}

static inline struct worker *worker_now(void) {
    struct worker *worker;
    __asm__ volatile("mov %%fs:floor_worker@tpoff, %0" : "=r"(worker) : : "memory");
    return worker;
}

static void fence_of_all(void) {
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
        abort();
}

static inline void compiler_fence(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void relax(void) {
    __builtin_ia32_pause();
}

/* --- wake-ups: whoever pushes wakes a parked worker, unless one looks for work already ------------------ */

static __attribute__((noinline)) void wake_one(void) {
    unsigned seen = __atomic_load_n(&idlers, __ATOMIC_RELAXED);
    do
        if ((seen & PARKED_MASK) == 0 || seen >= LOOKS)
            return;
    while (!__atomic_compare_exchange_n(&idlers, &seen, seen - PARKED + LOOKS, 1, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    __atomic_fetch_add(&tokens, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &tokens, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline void wake_check(void) {
    compiler_fence(); /* pairs with fence_of_all() in park(): it sees what was pushed, or this that it is parked */
    const unsigned seen = __atomic_load_n(&idlers, __ATOMIC_RELAXED);
    if (__builtin_expect((seen & PARKED_MASK) != 0, 0) && seen < LOOKS)
        wake_one();
}

/* --- queues --------------------------------------------------------------------------------------------- */

static inline struct floor_thread **slot(struct worker *of, int64_t i) {
    return &of->slots[i % QUEUE];
}

static inline struct floor_thread **yielded(struct worker *of, int64_t i) {
    return &of->yielded[i % QUEUE];
}

static inline int has_work(const struct worker *worker) {
    return __atomic_load_n(&worker->tail, __ATOMIC_RELAXED) >
               __atomic_load_n(&worker->head, __ATOMIC_RELAXED) ||
           __atomic_load_n(&worker->newest, __ATOMIC_RELAXED) >
               __atomic_load_n(&worker->oldest, __ATOMIC_RELAXED);
}

static inline void push(struct worker *self, struct floor_thread *thread) {
    const int64_t tail = self->tail;
    if (__builtin_expect(tail - __atomic_load_n(&self->head, __ATOMIC_RELAXED) >= QUEUE, 0))
        abort();
    __atomic_store_n(slot(self, tail), thread, __ATOMIC_RELAXED);
    __atomic_store_n(&self->tail, tail + 1, __ATOMIC_RELEASE);
    wake_check();
}

static inline void push_yielded(struct worker *self, struct floor_thread *thread) {
    const int64_t newest = self->newest;
    if (__builtin_expect(newest - __atomic_load_n(&self->oldest, __ATOMIC_RELAXED) >= QUEUE, 0))
        abort();
    __atomic_store_n(yielded(self, newest), thread, __ATOMIC_RELAXED);
    __atomic_store_n(&self->newest, newest + 1, __ATOMIC_RELEASE);
    wake_check();
}

static inline struct floor_thread *pop_yielded(struct worker *of) {
    int64_t oldest = __atomic_load_n(&of->oldest, __ATOMIC_ACQUIRE);
    while (oldest < __atomic_load_n(&of->newest, __ATOMIC_ACQUIRE)) {
        struct floor_thread *thread = __atomic_load_n(yielded(of, oldest), __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(&of->oldest, &oldest, oldest + 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_ACQUIRE))
            return thread;
    }
    return NULL;
}

/* A thief has come: its owner's pops have their fence, until so many in a row met no other theft. */
static __attribute__((noinline)) void pop_shared(struct worker *self) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const int64_t head = __atomic_load_n(&self->head, __ATOMIC_RELAXED);
    int none = 0;
    if (head != self->calm_head) {
        self->calm_head = head;
        self->calm = CALM;
    } else if (--self->calm <= 0 && __atomic_compare_exchange_n(&self->is_stealing, &none, 1, 0,
                                                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        __atomic_store_n(&self->shared, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&self->is_stealing, 0, __ATOMIC_RELEASE);
    }
}

static inline struct floor_thread *pop(struct worker *self) {
    const int64_t last = self->tail - 1;
    if (last < __atomic_load_n(&self->head, __ATOMIC_RELAXED)) /* which only grows */
        return pop_yielded(self);
    __atomic_store_n(&self->tail, last, __ATOMIC_RELAXED);
    compiler_fence(); /* pairs with fence_of_all() in steal(): it sees the new tail, or this that a thief has come */
    if (__builtin_expect(__atomic_load_n(&self->shared, __ATOMIC_RELAXED), 0))
        pop_shared(self);
    int64_t head = __atomic_load_n(&self->head, __ATOMIC_RELAXED);
    struct floor_thread *thread = NULL;
    if (head <= last) {
        thread = __atomic_load_n(slot(self, last), __ATOMIC_RELAXED);
        if (head < last)
            return thread;
        if (__atomic_compare_exchange_n(&self->head, &head, head + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            self->calm_head++;
        else
            thread = NULL; /* a thief has taken it */
    }
    __atomic_store_n(&self->tail, last + 1, __ATOMIC_RELAXED);
    return thread != NULL ? thread : pop_yielded(self);
}

static struct floor_thread *steal(struct worker *victim) {
    int none = 0;
    if (!__atomic_compare_exchange_n(&victim->is_stealing, &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return NULL;
    if (!__atomic_load_n(&victim->shared, __ATOMIC_RELAXED)) {
        __atomic_store_n(&victim->shared, 1, __ATOMIC_RELAXED);
        fence_of_all();
    }
    struct floor_thread *thread = NULL;
    int64_t head = __atomic_load_n(&victim->head, __ATOMIC_ACQUIRE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (head < __atomic_load_n(&victim->tail, __ATOMIC_ACQUIRE)) {
        thread = __atomic_load_n(slot(victim, head), __ATOMIC_RELAXED);
        if (!__atomic_compare_exchange_n(&victim->head, &head, head + 1, 0, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED))
            thread = NULL;
    } else {
        thread = pop_yielded(victim);
    }
    __atomic_store_n(&victim->is_stealing, 0, __ATOMIC_RELEASE);
    return thread;
}

/* --- switching ---------------------------------------------------------------------------------------- */

void floor_switch(struct floor_thread *from, const struct floor_thread *to)
    __attribute__((visibility("hidden")));
void floor_call(struct floor_thread *from, struct floor_thread *child, char *top)
    __attribute__((visibility("hidden")));
void *floor_main(struct floor_thread *from, struct floor_thread *self)
    __attribute__((visibility("hidden"), used));

#define SAVE                                                                                                 \
    "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"                                \
    "sub $8, %rsp\n stmxcsr (%rsp)\n fnstcw 4(%rsp)\n mov %rsp, (%rdi)\n"
#define RESUME                                                                                               \
    "ldmxcsr (%rsp)\n fldcw 4(%rsp)\n add $8, %rsp\n"                                                        \
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"

/* The old thread is published before the new one is waited for: two threads that switch to each other do not deadlock. No
 * signal handler runs on these stacks. */
__asm__(".text\n.p2align 4\n.globl floor_switch\n.hidden floor_switch\nfloor_switch:\n" SAVE
        "1: mov (%rsi), %rax\n test %rax, %rax\n jz 2f\n mov %rax, %rsp\n" RESUME "2: pause\n jmp 1b\n"
        ".p2align 4\n.globl floor_call\n.hidden floor_call\nfloor_call:\n" SAVE
        "mov %rdx, %rsp\n call floor_main\n mov %rax, %rsp\n" RESUME);

/* Before a thread hands itself to others, it says that its registers are not saved. */
static inline void announce(struct floor_thread *self) {
    __atomic_store_n(&self->sp, NULL, __ATOMIC_RELAXED);
}

static inline void switch_to(struct worker *worker, struct floor_thread *next) {
    struct floor_thread *self = worker->current;
    worker->current = next;
    floor_switch(self, next);
}

/* The current thread is announced, and in a list from which another takes it. */
static inline void block(struct worker *worker) {
    struct floor_thread *next = pop(worker);
    switch_to(worker, next != NULL ? next : worker->idle);
}

/* --- threads ------------------------------------------------------------------------------------------ */

static void *map(size_t size) {
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : (abort(), NULL);
}

static __attribute__((noinline)) void more_threads(struct worker *worker) {
    struct floor_thread *threads = map(AT_ONCE * sizeof *threads);
    for (int i = 0; i < AT_ONCE; i++) {
        threads[i].next = worker->free_threads;
        worker->free_threads = &threads[i];
    }
}

/* An odd number of pages apart, and of four colours, so that the tops do not share a set of the caches. */
static __attribute__((noinline)) void more_stacks(struct worker *worker) {
    const size_t page = 4096, stride = STACK + page;
    char *stacks = map(AT_ONCE * stride);
    for (size_t i = 0; i < AT_ONCE; i++) {
        mprotect(stacks + i * stride, page, PROT_NONE);
        char *top = stacks + (i + 1) * stride - 64 - i % 4 * 512;
        *(void **)(void *)top = worker->free_stacks;
        worker->free_stacks = top;
    }
}

/* The thread that runs next, after the end of `self`. */
static inline struct floor_thread *end(struct worker *worker, const struct floor_thread *from,
                                       struct floor_thread *self) {
    struct floor_thread *next = pop(worker);
    if (next == from && self->unseen) { /* its creator never left the queue: no other can be joining */
        self->joiner = self;
        return next;
    }
    /* acquire: the joiner's; release: the result */
    struct floor_thread *joiner = __atomic_exchange_n(&self->joiner, self, __ATOMIC_ACQ_REL);
    if (joiner == NULL)
        return next != NULL ? next : worker->idle;
    if (next != NULL)
        push(worker, next);
    return joiner;
}

void *floor_main(struct floor_thread *from, struct floor_thread *self) {
    push(worker_now(), from);
    leave();
    self->arg = self->fn(self->arg);
    struct worker *worker = enter();
    *(void **)(void *)self->top = worker->free_stacks; /* it is left before this worker takes it */
    worker->free_stacks = self->top;
    struct floor_thread *next = worker->current = end(worker, from, self);
    void *sp;
    while (__builtin_expect((sp = __atomic_load_n(&next->sp, __ATOMIC_ACQUIRE)) == NULL, 0))
        relax();
    return sp;
}

struct floor_thread *floor_spawn(void *(*fn)(void *), void *arg) {
    struct worker *worker = enter();
    if (__builtin_expect(worker->free_threads == NULL, 0))
        more_threads(worker);
    if (__builtin_expect(worker->free_stacks == NULL, 0))
        more_stacks(worker);
    struct floor_thread *child = worker->free_threads, *self = worker->current;
    worker->free_threads = child->next;
    child->fn = fn;
    child->arg = arg;
    child->joiner = NULL;
    child->unseen = 1;
    child->top = worker->free_stacks;
    worker->free_stacks = *(void **)worker->free_stacks;
    worker->current = child;
    floor_call(self, child, child->top);
    child->unseen = 0;
    leave();
    return child;
}

void *floor_join(struct floor_thread *thread) {
    struct worker *worker = enter();
    if (__atomic_load_n(&thread->joiner, __ATOMIC_ACQUIRE) != thread) {
        struct floor_thread *self = worker->current, *next = pop(worker), *none = NULL;
        announce(self);
        if (__atomic_compare_exchange_n(&thread->joiner, &none, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            switch_to(worker, next != NULL ? next : worker->idle);
        else if (next != NULL) /* it has ended meanwhile */
            push(worker, next);
        worker = worker_now();
    }
    void *result = thread->arg;
    thread->next = worker->free_threads;
    worker->free_threads = thread;
    leave();
    return result;
}

void floor_yield(void) {
    struct worker *worker = enter();
    struct floor_thread *next = pop(worker);
    if (next != NULL) {
        announce(worker->current);
        push_yielded(worker, worker->current);
        switch_to(worker, next);
    }
    leave();
}

/* --- waiting ------------------------------------------------------------------------------------------ */

/* A mutex's word: 0, or LOCKED with WAITED_FOR where there are waiters, or BUSY: their list is being changed. */
enum { LOCKED = 1, WAITED_FOR = 2, BUSY = 4 };

static inline void enlist(struct floor_thread **first, struct floor_thread **last, int is_empty,
                          struct floor_thread *thread) {
    thread->next = NULL;
    if (is_empty)
        *first = thread;
    else
        (*last)->next = thread;
    *last = thread;
}

static inline int change(unsigned long *word, unsigned long from, unsigned long to) {
    return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* True: `thread` has it. Else it waits; it was announced. */
static int take_or_enlist(struct floor_mutex *mutex, struct floor_thread *thread) {
    for (;;) {
        const unsigned long word = __atomic_load_n(&mutex->word, __ATOMIC_RELAXED);
        if (word == 0) {
            if (change(&mutex->word, 0, LOCKED))
                return 1;
        } else if ((word & BUSY) != 0) {
            relax();
        } else if (change(&mutex->word, word, word | BUSY)) {
            enlist(&mutex->first, &mutex->last, (word & WAITED_FOR) == 0, thread);
            __atomic_store_n(&mutex->word, LOCKED | WAITED_FOR, __ATOMIC_RELEASE);
            return 0;
        }
    }
}

/* The longest waiter gets it. */
static void hand_over(struct worker *worker, struct floor_mutex *mutex) {
    for (;;) {
        const unsigned long word = __atomic_load_n(&mutex->word, __ATOMIC_RELAXED);
        if ((word & BUSY) != 0) {
            relax();
        } else if ((word & WAITED_FOR) == 0) {
            if (change(&mutex->word, word, 0))
                return;
        } else if (change(&mutex->word, word, word | BUSY)) {
            struct floor_thread *waiter = mutex->first;
            mutex->first = waiter->next;
            __atomic_store_n(&mutex->word, waiter->next != NULL ? LOCKED | WAITED_FOR : LOCKED,
                             __ATOMIC_RELEASE);
            push(worker, waiter);
            return;
        }
    }
}

void floor_lock(struct floor_mutex *mutex) {
    if (__atomic_load_n(&mutex->word, __ATOMIC_RELAXED) == 0 && change(&mutex->word, 0, LOCKED))
        return;
    struct worker *worker = enter();
    announce(worker->current);
    if (!take_or_enlist(mutex, worker->current))
        block(worker);
    leave();
}

void floor_unlock(struct floor_mutex *mutex) {
    if (__atomic_load_n(&mutex->word, __ATOMIC_RELAXED) == LOCKED && change(&mutex->word, LOCKED, 0))
        return;
    hand_over(enter(), mutex);
    leave();
}

static inline void lock_list(struct floor_cond *cond) {
    while (__builtin_expect(__atomic_exchange_n(&cond->is_busy, 1, __ATOMIC_ACQUIRE), 0))
        relax();
}

static inline void unlock_list(struct floor_cond *cond) {
    __atomic_store_n(&cond->is_busy, 0, __ATOMIC_RELEASE);
}

void floor_wait(struct floor_cond *cond, struct floor_mutex *mutex) {
    struct worker *worker = enter();
    announce(worker->current);
    lock_list(cond);
    enlist(&cond->first, &cond->last, cond->first == NULL, worker->current);
    unlock_list(cond);
    hand_over(worker, mutex);
    block(worker);
    leave();
}

void floor_signal(struct floor_cond *cond, struct floor_mutex *mutex) {
    if (__atomic_load_n(&cond->first, __ATOMIC_RELAXED) == NULL)
        return; /* none that this must be seen by */
    struct worker *worker = enter();
    lock_list(cond);
    struct floor_thread *waiter = cond->first;
    if (waiter != NULL)
        cond->first = waiter->next;
    unlock_list(cond);
    if (waiter != NULL && take_or_enlist(mutex, waiter))
        push(worker, waiter);
    leave();
}

void floor_broadcast(struct floor_cond *cond, struct floor_mutex *mutex) {
    while (__atomic_load_n(&cond->first, __ATOMIC_RELAXED) != NULL)
        floor_signal(cond, mutex);
}

/* --- workers ------------------------------------------------------------------------------------------ */

static int is_any_work(void) {
    for (unsigned i = 0; i < worker_count; i++)
        if (has_work(&workers[i]))
            return 1;
    return 0;
}

/* It looks for work afterwards, as one that has been woken. */
static void park(void) {
    __atomic_fetch_add(&idlers, (unsigned)PARKED - LOOKS, __ATOMIC_RELAXED);
    fence_of_all(); /* pairs with the compiler's in wake_check(): a pusher sees the change, or this what was pushed */
    if (is_any_work()) {
        unsigned seen = __atomic_load_n(&idlers, __ATOMIC_RELAXED);
        while ((seen & PARKED_MASK) != 0)
            if (__atomic_compare_exchange_n(&idlers, &seen, seen - PARKED + LOOKS, 1, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED))
                return;
        /* one was woken in its place, and left a token */
    }
    for (;;) {
        unsigned left = __atomic_load_n(&tokens, __ATOMIC_RELAXED);
        while (left != 0)
            if (__atomic_compare_exchange_n(&tokens, &left, left - 1, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return;
        syscall(SYS_futex, &tokens, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static struct floor_thread *look_for_work(const struct worker *self) {
    __atomic_fetch_add(&idlers, LOOKS, __ATOMIC_RELAXED);
    for (int64_t since = now_ns();;) {
        for (unsigned i = 0; i < worker_count; i++) {
            struct worker *victim = &workers[i];
            struct floor_thread *thread = victim != self && has_work(victim) ? steal(victim) : NULL;
            if (thread == NULL)
                continue;
            if (__atomic_fetch_sub(&idlers, LOOKS, __ATOMIC_RELAXED) / LOOKS == 1 && has_work(victim))
                wake_check(); /* the last that looks asks another to */
            return thread;
        }
        for (int i = 0; i < LOOKS_BETWEEN; i++)
            relax();
        if (now_ns() - since > LOOK_NS) {
            park();
            since = now_ns();
        }
    }
}

static void run_worker(struct worker *self) {
    for (;;) {
        enter();
        struct floor_thread *next = pop(self);
        if (next == NULL)
            next = look_for_work(self);
        announce(self->idle);
        switch_to(self, next);
        leave();
    }
}

/* The idle thread of the first worker. */
static void *idle(void *arg) {
    struct worker *self = arg;
    self->idle = self->current;
    run_worker(self);
    return NULL;
}

/* Of another worker: its kernel thread is its idle thread. */
static void *begin(void *arg) {
    struct worker *self = floor_worker = arg;
    self->current = self->idle = &self->it;
    run_worker(self);
    return NULL;
}

void floor_init(unsigned count) {
    if (count == 0 || count > FLOOR_WORKERS ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
        abort();
    worker_count = count;
    floor_worker = &workers[0];
    workers[0].current = &first_thread;
    floor_spawn(idle, &workers[0]); /* it takes the caller from the queue */
    for (unsigned i = 1; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, begin, &workers[i]) != 0)
            abort();
    }
}
