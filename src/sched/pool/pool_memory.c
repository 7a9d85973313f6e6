// SPDX-License-Identifier: Apache-2.0
/* What pools are made of, kept for good. */
#include "base/slab.h"
#include "os/lock.h"
#include "sched/current.h"
#include "sched/pool/pool.h"

static struct {
    struct lock lock;
    struct slab pools, memory; /* under lock */
} memory = {.pools = SLAB_INIT(struct thrum_pool), .memory = SLAB_INIT(char[POOL_MEMORY])};

static void *get(struct slab *slab) {
    enter();
    lock_acquire(&memory.lock);
    void *object = slab_alloc_locked(slab);
    lock_release(&memory.lock);
    leave();
    return object;
}

static void put(struct slab *slab, void *object) {
    enter();
    lock_acquire(&memory.lock);
    slab_free_locked(slab, object);
    lock_release(&memory.lock);
    leave();
}

struct thrum_pool *pool_new(void) {
    return get(&memory.pools);
}

void pool_free(struct thrum_pool *pool) {
    put(&memory.pools, pool);
}

void *pool_memory_get(void) {
    return get(&memory.memory);
}

void pool_memory_put(void *object) {
    put(&memory.memory, object);
}

void pool_fork_child(void) {
    lock_reset(&memory.lock);
    memory.pools.free = memory.memory.free = NULL;
}
