// SPDX-License-Identifier: Apache-2.0
/* Values that each thread has of its own.
 *
 * A key is a place in a table of destructors, which is made of words that are changed by cas: 0 free, KEY_PLAIN taken
 * without a destructor, else the destructor. A thread's values are a block from a depot, taken at the first set; each
 * has the key's generation beside it, so that a value of a key that was deleted and created again reads as NULL. */
#include <errno.h>
#include <string.h>

#include "base/misuse.h"
#include "context/depot.h"
#include "sched/keys.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

enum { ROUNDS = 4 }; /* as PTHREAD_DESTRUCTOR_ITERATIONS */
#define KEY_PLAIN ((void (*)(void *))1)

static struct {
    void (*destructor)(void *);
    uint32_t generation; /* odd while the key exists */
} keys[THRUM_KEYS_MAX];

struct unit_values {
    struct {
        void *value;
        uint32_t generation;
    } slots[THRUM_KEYS_MAX];
};

static char *block_at(const struct depot_shape *shape, char *chunk, unsigned i) {
    return chunk + 64 + i * shape->size;
}

static struct depot depot = {.shape = {.chunk = 64 * 1024,
                                       .per_chunk = (64 * 1024 - 64) / sizeof(struct unit_values),
                                       .object = block_at,
                                       .size = sizeof(struct unit_values)}};

int thrum_key_create(thrum_key_t *key, void (*destructor)(void *)) {
    if (is_null(key))
        return EINVAL;
    for (unsigned i = 0; i < THRUM_KEYS_MAX; i++) {
        uint32_t generation = load_relaxed(&keys[i].generation);
        /* Pairs with thrum_key_delete's. */
        if (generation % 2 == 0 && cas_acq_rel(&keys[i].generation, &generation, generation + 1)) {
            /* Pairs with destroy_once: it sees this generation, too. */
            store_release(&keys[i].destructor, destructor != NULL ? destructor : KEY_PLAIN);
            *key = i;
            return 0;
        }
    }
    return EAGAIN;
}

int thrum_key_delete(thrum_key_t key) {
    /* This and the next pair with thrum_key_create's cas, as do the loads in set and get. */
    uint32_t generation = key < THRUM_KEYS_MAX ? load_acquire(&keys[key].generation) : 0;
    if (generation % 2 == 0 || !cas_acq_rel(&keys[key].generation, &generation, generation + 1))
        return EINVAL;
    return 0;
}

INSIDE static struct unit_values *values_new(void) {
    struct unit_values *values = depot_get_shared(&depot);
    if (values != NULL)
        memset(values, 0, sizeof *values);
    return values;
}

INSIDE static void values_free(struct unit_values *values) {
    depot_put_shared(&depot, values);
}

int thrum_key_set(thrum_key_t key, const void *value) {
    /* Pairs with thrum_key_create's and thrum_key_delete's cas. */
    uint32_t generation = key < THRUM_KEYS_MAX ? load_acquire(&keys[key].generation) : 0;
    if (generation % 2 == 0)
        return EINVAL;
    struct worker *worker = enter();
    struct thrum_unit *self = worker != NULL ? worker->current : NULL;
    int error = self == NULL ? EPERM : 0;
    if (error == 0 && self->values == NULL && (self->values = values_new()) == NULL)
        error = ENOMEM;
    if (error == 0) {
        store_relaxed(&self->extras, true);
        memcpy(&self->values->slots[key].value, &value, sizeof value);
        self->values->slots[key].generation = generation;
    }
    leave();
    return error;
}

void *thrum_key_get(thrum_key_t key) {
    struct worker *worker = enter();
    const struct unit_values *values = worker != NULL ? worker->current->values : NULL;
    void *value = NULL;
    /* Pairs with thrum_key_create's and thrum_key_delete's cas. */
    if (values != NULL && key < THRUM_KEYS_MAX &&
        values->slots[key].generation == load_acquire(&keys[key].generation))
        value = values->slots[key].value;
    leave();
    return value;
}

/* One pass; true if a destructor ran, which may have set values again. */
static bool destroy_once(struct unit_values *values) {
    bool ran = false;
    for (unsigned i = 0; i < THRUM_KEYS_MAX; i++) {
        void *value = values->slots[i].value;
        /* Pairs with thrum_key_create: what is read next is not older than this. */
        void (*destructor)(void *) = load_acquire(&keys[i].destructor);
        /* Pairs with thrum_key_create's and thrum_key_delete's cas. */
        if (value == NULL || values->slots[i].generation != load_acquire(&keys[i].generation))
            continue;
        values->slots[i].value = NULL;
        if (destructor != KEY_PLAIN) {
            destructor(value);
            ran = true;
        }
    }
    return ran;
}

void keys_destroy(struct thrum_unit *unit) {
    for (int round = 0; round < ROUNDS && destroy_once(unit->values); round++) {
    }
    enter();
    values_free(unit->values);
    unit->values = NULL;
    leave();
}

void keys_fini(void) {
    depot_destroy(&depot);
}

void keys_fork_child(void) {
    depot_fork_child(&depot);
}
