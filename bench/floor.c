// SPDX-License-Identifier: Apache-2.0
/* See floor.h. */
#include "floor.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK = 64 * 1024, AT_ONCE = 64, QUEUE = 1 << 16, LOCKED = 1, WAITED_FOR = 2 };

struct floor_thread {
    void *sp; /* first: the assembly stores it there */
    void *(*fn)(void *);
    void *arg;                   /* the result, once it has ended */
    struct floor_thread *joiner; /* or itself: it has ended */
    struct floor_thread *next;
    char *top;
};

/* A ring whose newest end is for spawns and wake-ups and whose oldest is for yields. */
static struct {
    struct floor_thread *slots[QUEUE];
    uint64_t head, tail;
} queue = {.head = UINT64_C(1) << 32, .tail = UINT64_C(1) << 32};

static struct floor_thread *current, *free_threads, first_thread;
static void *free_stacks; /* linked by the word at the top of each */

/* What a runtime of several workers that may be interrupted cannot do without: it counts that it is in its own code, and looks
 * whether a worker is parked when it has pushed, or steals when it pops. Neither ever is here. */
static volatile uint32_t parked, shared;
static __thread volatile uint32_t inside = UINT32_C(0x80000000);

static inline void enter(void) {
    inside = inside + 1;
}

static inline void leave(void) {
    inside = inside - 1;
    if (__builtin_expect(inside == 0, 0))
        abort();
}

static inline struct floor_thread **slot(uint64_t i) {
    return &queue.slots[i % QUEUE];
}

static inline void push(struct floor_thread *thread) {
    if (__builtin_expect(queue.tail - queue.head == QUEUE, 0))
        abort();
    *slot(queue.tail) = thread;
    __atomic_store_n(&queue.tail, queue.tail + 1, __ATOMIC_RELEASE);
    if (__builtin_expect(parked, 0))
        abort();
}

static inline struct floor_thread *pop(void) {
    if (__builtin_expect(queue.tail == queue.head, 0))
        abort(); /* all wait */
    __atomic_store_n(&queue.tail, queue.tail - 1, __ATOMIC_RELEASE);
    if (__builtin_expect(shared, 0))
        abort();
    return *slot(queue.tail);
}

/* --- switching ---------------------------------------------------------------------------------------- */

void floor_switch(struct floor_thread *from, const struct floor_thread *to)
    __attribute__((visibility("hidden")));
void floor_call(struct floor_thread *from, struct floor_thread *child, char *top)
    __attribute__((visibility("hidden")));
struct floor_thread *floor_main(struct floor_thread *from, struct floor_thread *self)
    __attribute__((visibility("hidden"), used));

#define SAVE                                                                                                 \
    "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"                                \
    "sub $8, %rsp\n stmxcsr (%rsp)\n fnstcw 4(%rsp)\n mov %rsp, (%rdi)\n"
#define RESUME                                                                                               \
    "ldmxcsr (%rsp)\n fldcw 4(%rsp)\n add $8, %rsp\n"                                                        \
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"

__asm__(".text\n.p2align 4\n.globl floor_switch\n.hidden floor_switch\nfloor_switch:\n" SAVE
        "mov (%rsi), %rsp\n" RESUME ".p2align 4\n.globl floor_call\n.hidden floor_call\nfloor_call:\n" SAVE
        "mov %rdx, %rsp\n call floor_main\n mov (%rax), %rsp\n" RESUME);

static inline void switch_to(struct floor_thread *next) {
    struct floor_thread *self = current;
    current = next;
    floor_switch(self, next);
}

/* --- threads ------------------------------------------------------------------------------------------ */

static void *map(size_t size) {
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : (abort(), NULL);
}

static __attribute__((noinline)) void more_threads(void) {
    struct floor_thread *threads = map(AT_ONCE * sizeof *threads);
    for (int i = 0; i < AT_ONCE; i++) {
        threads[i].next = free_threads;
        free_threads = &threads[i];
    }
}

/* An odd number of pages apart, and of four colours, so that the tops do not share a set of the caches. */
static __attribute__((noinline)) void more_stacks(void) {
    const size_t page = 4096, stride = STACK + page;
    char *stacks = map(AT_ONCE * stride);
    for (size_t i = 0; i < AT_ONCE; i++) {
        mprotect(stacks + i * stride, page, PROT_NONE);
        char *top = stacks + (i + 1) * stride - 64 - i % 4 * 512;
        *(void **)(void *)top = free_stacks;
        free_stacks = top;
    }
}

struct floor_thread *floor_main(struct floor_thread *from, struct floor_thread *self) {
    push(from);
    leave();
    self->arg = self->fn(self->arg);
    enter();
    struct floor_thread *joiner = self->joiner;
    self->joiner = self;
    *(void **)(void *)self->top = free_stacks; /* it is left before another thread can take it */
    free_stacks = self->top;
    return current = joiner != NULL ? joiner : pop();
}

struct floor_thread *floor_spawn(void *(*fn)(void *), void *arg) {
    enter();
    if (__builtin_expect(free_threads == NULL, 0))
        more_threads();
    if (__builtin_expect(free_stacks == NULL, 0))
        more_stacks();
    struct floor_thread *child = free_threads, *self = current;
    free_threads = child->next;
    child->fn = fn;
    child->arg = arg;
    child->joiner = NULL;
    child->top = free_stacks;
    free_stacks = *(void **)free_stacks;
    current = child;
    floor_call(self, child, child->top);
    leave();
    return child;
}

void *floor_join(struct floor_thread *thread) {
    enter();
    if (thread->joiner != thread) {
        thread->joiner = current;
        switch_to(pop());
    }
    thread->next = free_threads;
    free_threads = thread;
    leave();
    return thread->arg;
}

void floor_yield(void) {
    if (queue.tail == queue.head)
        return;
    enter();
    struct floor_thread *next = pop();
    if (__builtin_expect(queue.tail - queue.head == QUEUE, 0))
        abort();
    *slot(--queue.head) = current;
    switch_to(next);
    leave();
}

void floor_init(void) {
    current = &first_thread;
}

/* --- waiting ------------------------------------------------------------------------------------------ */

static inline void enlist(struct floor_thread **first, struct floor_thread **last,
                          struct floor_thread *thread) {
    thread->next = NULL;
    if (*first != NULL)
        (*last)->next = thread;
    else
        *first = thread;
    *last = thread;
}

/* True: `thread` has it. Else it waits. */
static inline int take_or_enlist(struct floor_mutex *mutex, struct floor_thread *thread) {
    unsigned long none = 0;
    if (__atomic_compare_exchange_n(&mutex->word, &none, LOCKED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 1;
    enlist(&mutex->first, &mutex->last, thread);
    mutex->word = LOCKED | WAITED_FOR;
    return 0;
}

void floor_lock(struct floor_mutex *mutex) {
    enter();
    if (!take_or_enlist(mutex, current))
        switch_to(pop());
    leave();
}

void floor_unlock(struct floor_mutex *mutex) {
    unsigned long locked = LOCKED;
    if (__atomic_compare_exchange_n(&mutex->word, &locked, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return;
    struct floor_thread *waiter = mutex->first;
    mutex->first = waiter->next;
    mutex->word = waiter->next != NULL ? LOCKED | WAITED_FOR : LOCKED; /* which is the waiter's */
    push(waiter);
}

void floor_wait(struct floor_cond *cond, struct floor_mutex *mutex) {
    enlist(&cond->first, &cond->last, current);
    floor_unlock(mutex);
    enter();
    switch_to(pop());
    leave();
}

void floor_signal(struct floor_cond *cond, struct floor_mutex *mutex) {
    struct floor_thread *waiter = cond->first;
    if (waiter == NULL)
        return;
    cond->first = waiter->next;
    if (take_or_enlist(mutex, waiter))
        push(waiter);
}

void floor_broadcast(struct floor_cond *cond, struct floor_mutex *mutex) {
    while (cond->first != NULL)
        floor_signal(cond, mutex);
}
