// SPDX-License-Identifier: Apache-2.0
/* See stack_cache.h. */
#include "stack_cache.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "kthread/counters.h"
#include "kthread/internal.h"
#include "kthread/libc.h"
#include "os/lock.h"
#include "os/signals.h"

enum { ARENA_BLOCKS = 16, ARENAS = 4096, KINDS = 32, SWEEP = 4 };

enum state { BLANK, FREE, USED, ADRIFT };

struct stack_block {
    char *low; /* of the guard; the stack begins above it */
    unsigned kind;
    enum state state;
    uint64_t use;
    pid_t tid; /* the thread's own note, 0 before */
    struct stack_block *next;

    /* for the thread's start */
    void *(*fn)(void *);
    void *arg;
    uint64_t lineage;
};

/* R/o once it is in the table, and never freed: it is looked at without the lock. */
struct arena {
    char *low, *high;
    size_t block_size;
    struct stack_block blocks[ARENA_BLOCKS];
};

/* First in, first out. */
struct queue {
    struct stack_block *first;
    struct stack_block **end; /* the NULL after the last one; NULL itself stands for &first */
};

/* Under the lock; `arenas` is also read without it, up to `arena_count`, which only grows. */
static struct {
    struct lock lock;
    struct {
        size_t stack_size, guard_size; /* both 0: the place is free */
        struct stack_block *free, *blank;
        unsigned free_count, made;
    } kinds[KINDS];
    struct queue adrift;
    struct arena *arenas[ARENAS];
    unsigned arena_count;
    unsigned free_count;
} cache; /* all zeros: the file that a process maps at its start carries none of it */

static sigbits enter(void) {
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC);
    lock_acquire(&cache.lock);
    return mask;
}

static void leave(sigbits mask) {
    lock_release(&cache.lock);
    signals_mask_set(mask);
}

static int needs_executable_stack(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_STACK)
            return (info->dlpi_phdr[i].p_flags & PF_X) != 0;
    return 0;
}

/* Asked once, at the first creation; two threads that do it at once find the same. */
static bool stacks_are_plain(void) {
    enum { NO = 1, YES = 2 };
    static uint32_t known;
    uint32_t answer = load_relaxed(&known);
    if (answer == 0) {
        answer = libc.dl_iterate_phdr(needs_executable_stack, NULL) == 0 ? YES : NO;
        store_relaxed(&known, answer);
    }
    return answer == YES;
}

/* --- blocks ------------------------------------------------------------------------------------------------ */

static char *stack_of(const struct stack_block *block) {
    return block->low + cache.kinds[block->kind].guard_size;
}

static struct stack_block *block_of(pthread_t handle) {
    char *address = (char *)handle;
    unsigned count = load_acquire(&cache.arena_count);
    for (unsigned i = 0; i < count; i++) {
        struct arena *arena = load_relaxed(&cache.arenas[i]);
        if (arena != NULL && address >= arena->low && address < arena->high)
            return &arena->blocks[(size_t)(address - arena->low) / arena->block_size];
    }
    return NULL;
}

static void *map(size_t size, int protection) {
    void *at = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* ARENA_BLOCKS more blank blocks. */
static void grow_locked(unsigned kind) {
    size_t block_size = cache.kinds[kind].guard_size + cache.kinds[kind].stack_size;
    if (cache.arena_count == ARENAS)
        return;
    struct arena *arena = map(sizeof *arena, PROT_READ | PROT_WRITE);
    char *low = arena == NULL ? NULL : map(block_size * ARENA_BLOCKS, PROT_NONE);
    if (low == NULL) {
        if (arena != NULL)
            munmap(arena, sizeof *arena);
        return;
    }
    *arena = (struct arena){.low = low, .high = low + block_size * ARENA_BLOCKS, .block_size = block_size};
    for (unsigned i = ARENA_BLOCKS; i-- > 0;) {
        struct stack_block *block = &arena->blocks[i];
        *block = (struct stack_block){.low = low + i * block_size, .kind = kind, .state = BLANK};
        block->next = cache.kinds[kind].blank;
        cache.kinds[kind].blank = block;
    }
    store_relaxed(&cache.arenas[cache.arena_count], arena);
    store_release(&cache.arena_count, cache.arena_count + 1);
}

static void push_free_locked(struct stack_block *block) {
    block->state = FREE;
    block->next = cache.kinds[block->kind].free;
    cache.kinds[block->kind].free = block;
    cache.kinds[block->kind].free_count++;
    cache.free_count++;
    counters_idle_add(UINT64_MAX);
}

static struct stack_block *pop_free_locked(unsigned kind) {
    struct stack_block *block = cache.kinds[kind].free;
    if (block == NULL)
        return NULL;
    cache.kinds[kind].free = block->next;
    cache.kinds[kind].free_count--;
    cache.free_count--;
    counters_idle_remove();
    return block;
}

/* Back to no access and no memory. If the kernel refuses, the block is given up: its address space is all it has. */
static void blank_locked(struct stack_block *block) {
    size_t size = cache.kinds[block->kind].stack_size;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED;
    if (mmap(stack_of(block), size, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        return;
    block->state = BLANK;
    block->next = cache.kinds[block->kind].blank;
    cache.kinds[block->kind].blank = block;
}

/* As libc does when a thread ends, and fresh/stack.c for idle ones: what was used deeper than is usual is given back.
 * Looked for in the pages just below, where a deep stack begins, and now and then not asked. */
static void trim(const struct stack_block *block) {
    enum { KEEP = 64 * 1024, LOOK = 16, ALWAYS_EVERY = 32 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = cache.kinds[block->kind].stack_size;
    unsigned char pages[LOOK];
    if (kthread_config.wipe_stack) {
        sys(SYS_madvise, stack_of(block), size, MADV_DONTNEED);
        return;
    }
    if (size <= KEEP + LOOK * page)
        return;
    char *low = stack_of(block), *high = low + size - KEEP;
    if (block->use % ALWAYS_EVERY != 0 && sys(SYS_mincore, high - LOOK * page, LOOK * page, pages) == 0 &&
        memchr(pages, 1, LOOK) == NULL)
        return;
    sys(SYS_madvise, low, high - low, MADV_DONTNEED);
}

static void free_locked(struct stack_block *block) {
    if (kthread_keeping() && cache.free_count < kthread_config.max_idle &&
        !load_relaxed(&kthread_config.memory_limited)) {
        trim(block);
        push_free_locked(block);
    } else {
        blank_locked(block);
    }
}

/* --- threads whose end is not reported -------------------------------------------------------------------- */

static void set_adrift_locked(struct stack_block *block) {
    struct stack_block **end = cache.adrift.end == NULL ? &cache.adrift.first : cache.adrift.end;
    block->state = ADRIFT;
    block->next = NULL;
    *end = block;
    cache.adrift.end = &block->next;
}

/* Takes out the one that *at points to. */
static struct stack_block *unlink_adrift_locked(struct stack_block **at) {
    struct stack_block *block = *at;
    if (block->next == NULL)
        cache.adrift.end = at;
    *at = block->next;
    return block;
}

/* It is there: its state is ADRIFT. */
static void remove_adrift_locked(const struct stack_block *block) {
    struct stack_block **at = &cache.adrift.first;
    while (*at != NULL && *at != block)
        at = &(*at)->next;
    thrum_assert(*at != NULL);
    if (*at != NULL)
        unlink_adrift_locked(at);
}

static bool is_gone(const struct stack_block *block) {
    pid_t tid = load_relaxed(&block->tid);
    return tid != 0 && sys(SYS_tgkill, sys(SYS_getpid), tid, 0) == -ESRCH;
}

/* Looks at a few; threads that still exist go to the end, so that all have their turn. */
static void sweep_locked(void) {
    for (int i = 0; i < SWEEP && cache.adrift.first != NULL; i++) {
        struct stack_block *block = unlink_adrift_locked(&cache.adrift.first);
        if (is_gone(block))
            free_locked(block);
        else
            set_adrift_locked(block);
    }
}

/* --- taking one ---------------------------------------------------------------------------------------------- */

/* The place of a kind, a new one if it has none, or -1. */
static int place_locked(const struct kthread_kind *kind) {
    for (int i = 0; i < KINDS; i++) {
        if (cache.kinds[i].stack_size == 0) {
            cache.kinds[i].stack_size = kind->stack_size;
            cache.kinds[i].guard_size = kind->guard_size;
        }
        if (cache.kinds[i].stack_size == kind->stack_size && cache.kinds[i].guard_size == kind->guard_size)
            return i;
    }
    return -1;
}

static struct stack_block *pop_blank_locked(unsigned kind) {
    if (cache.kinds[kind].blank == NULL)
        grow_locked(kind);
    struct stack_block *block = cache.kinds[kind].blank;
    if (block == NULL)
        return NULL;
    cache.kinds[kind].blank = block->next;
    return block;
}

/* Makes a blank one accessible. The caller owns it. */
static bool open_block(struct stack_block *block, size_t size, bool detached) {
    if (mprotect(stack_of(block), size, PROT_READ | PROT_WRITE) == 0)
        return true;
    sigbits mask = enter();
    if (detached)
        remove_adrift_locked(block);
    blank_locked(block);
    leave(mask);
    return false;
}

static struct stack_block *take(const struct kthread_kind *kind, bool detached) {
    sigbits mask = enter();
    int place = place_locked(kind);
    struct stack_block *block = NULL;
    if (place >= 0) {
        if (cache.kinds[place].free == NULL)
            sweep_locked();
        block = pop_free_locked((unsigned)place);
    }
    bool is_blank = place >= 0 && block == NULL;
    if (is_blank && (block = pop_blank_locked((unsigned)place)) != NULL)
        cache.kinds[place].made++;
    if (block != NULL) {
        block->state = USED;
        store_relaxed(&block->use, block->use + 1);
        store_relaxed(&block->tid, 0);
    }
    if (block != NULL && detached)
        set_adrift_locked(block);
    leave(mask);
    return block != NULL && is_blank && !open_block(block, kind->stack_size, detached) ? NULL : block;
}

/* The thread was not made after all. */
static void put_back(struct stack_block *block, bool detached) {
    sigbits mask = enter();
    if (detached)
        remove_adrift_locked(block);
    free_locked(block);
    leave(mask);
}

/* --- creations ------------------------------------------------------------------------------------------------ */

static void *start_on_block(void *argument) {
    struct stack_block *block = argument;
    kthread_adopt_lineage(block->lineage);
    void *(*fn)(void *) = block->fn, *arg = block->arg;
    store_relaxed(&block->tid, (pid_t)sys(SYS_gettid));
    return fn(arg);
}

static int create_on(struct stack_block *block, size_t size, bool detached, pthread_t *handle) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    error = pthread_attr_setstack(&attributes, stack_of(block), size);
    if (error == 0 && detached)
        error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (error == 0)
        error = libc.pthread_create(handle, &attributes, start_on_block, block);
    pthread_attr_destroy(&attributes);
    return error;
}

static bool is_served(const struct kthread_kind *kind) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return kind->stack_size % page == 0 && kind->guard_size % page == 0 && kind->stack_size != 0 &&
           !load_relaxed(&kthread_config.memory_limited) && stacks_are_plain();
}

bool stack_cache_start(const struct kthread_kind *asked, bool detached, void *(*fn)(void *), void *arg,
                       pthread_t *handle) {
    const struct kthread_kind roomy = {kthread_stack_size(asked), asked->guard_size, asked->lineage,
                                       asked->user},
                              *kind = &roomy;
    struct stack_block *block = is_served(kind) ? take(kind, detached) : NULL;
    if (block == NULL)
        return false;
    block->fn = fn;
    block->arg = arg;
    block->lineage = kind->lineage;
    if (create_on(block, kind->stack_size, detached, handle) != 0) {
        put_back(block, detached);
        return false;
    }
    counters_count(&thrum_cache_counters.created);
    return true;
}

/* --- after libc's join and detach ------------------------------------------------------------------------------ */

struct stack_held stack_cache_hold(pthread_t handle) {
    struct stack_block *block = block_of(handle);
    return (struct stack_held){block, block == NULL ? 0 : load_relaxed(&block->use)};
}

void stack_cache_joined(struct stack_held held) {
    struct stack_block *block = held.block;
    if (block == NULL)
        return;
    sigbits mask = enter();
    if (block->use == held.use && block->state == ADRIFT) {
        remove_adrift_locked(block);
        free_locked(block);
    } else if (block->use == held.use && block->state == USED) {
        free_locked(block);
    }
    leave(mask);
}

void stack_cache_detached(struct stack_held held) {
    struct stack_block *block = held.block;
    if (block == NULL)
        return;
    sigbits mask = enter();
    if (block->use == held.use && block->state == USED)
        set_adrift_locked(block);
    leave(mask);
}

void stack_cache_attributes(pthread_t handle, pthread_attr_t *attributes) {
    const struct stack_block *block = block_of(handle);
    if (block != NULL)
        pthread_attr_setguardsize(attributes, cache.kinds[block->kind].guard_size);
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

static bool is_blank(const struct arena *arena) {
    for (int i = 0; i < ARENA_BLOCKS; i++)
        if (arena->blocks[i].state != BLANK)
            return false;
    return true;
}

static void forget_blank_locked(const struct arena *arena) {
    struct stack_block **at = &cache.kinds[arena->blocks[0].kind].blank;
    while (*at != NULL)
        if ((*at)->low >= arena->low && (*at)->low < arena->high)
            *at = (*at)->next;
        else
            at = &(*at)->next;
}

/* Address space counts from now on (limits.c). */
static void unmap_blank_locked(void) {
    for (unsigned i = 0; i < cache.arena_count; i++) {
        struct arena *arena = cache.arenas[i];
        if (arena == NULL || !is_blank(arena))
            continue;
        forget_blank_locked(arena);
        store_relaxed(&cache.arenas[i], NULL);
        munmap(arena->low, (size_t)(arena->high - arena->low));
    }
}

unsigned stack_cache_cull(void) {
    unsigned count = 0;
    sigbits mask = enter();
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (struct stack_block *block; (block = pop_free_locked(kind)) != NULL; count++)
            blank_locked(block);
    if (load_relaxed(&kthread_config.memory_limited))
        unmap_blank_locked();
    leave(mask);
    return count;
}

void stack_cache_fork_child(void) {
    lock_reset(&cache.lock);
    store_relaxed(&cache.arena_count, 0);
    cache.free_count = 0;
    cache.adrift.first = NULL;
    cache.adrift.end = NULL;
    for (unsigned i = 0; i < KINDS; i++) {
        cache.kinds[i].stack_size = cache.kinds[i].guard_size = 0;
        cache.kinds[i].free = cache.kinds[i].blank = NULL;
        cache.kinds[i].free_count = cache.kinds[i].made = 0;
    }
}

unsigned stack_cache_free(const struct kthread_kind *kind) {
    sigbits mask = enter();
    int place = place_locked(kind);
    unsigned count = place < 0 ? 0 : cache.kinds[place].free_count;
    leave(mask);
    return count;
}

unsigned stack_cache_made(const struct kthread_kind *kind) {
    sigbits mask = enter();
    int place = place_locked(kind);
    unsigned count = place < 0 ? 0 : cache.kinds[place].made;
    leave(mask);
    return count;
}
