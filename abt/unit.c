// SPDX-License-Identifier: Apache-2.0
/* Unit handles. In a pool of the library's kinds a thread's is its own address with the lowest bit set; in one of the program's it
 * is what the program made for it, with the two lowest bits clear, and a table leads back to the thread. */
#include <stdlib.h>

#include "layer.h"

struct entry {
    struct entry *next;
    ABT_unit unit;
    struct abt_thread *thread;
};

enum { BUCKETS = 1024 };
static struct bucket {
    struct abt_spin lock;
    struct entry *first; /* under lock */
} buckets[BUCKETS];

static struct bucket *bucket_of(ABT_unit unit) {
    return &buckets[(uintptr_t)unit * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

bool abt_units_add(ABT_unit unit, struct abt_thread *thread) {
    struct entry *entry = malloc(sizeof *entry);
    if (entry == NULL)
        return false;
    *entry = (struct entry){.unit = unit, .thread = thread};
    struct bucket *bucket = bucket_of(unit);
    abt_lock(&bucket->lock);
    entry->next = bucket->first;
    bucket->first = entry;
    abt_unlock(&bucket->lock);
    return true;
}

void abt_units_remove(ABT_unit unit) {
    struct bucket *bucket = bucket_of(unit);
    struct entry *found = NULL;
    abt_lock(&bucket->lock);
    for (struct entry **place = &bucket->first; *place != NULL && found == NULL;) {
        if ((*place)->unit == unit) {
            found = *place;
            *place = found->next;
        } else {
            place = &(*place)->next;
        }
    }
    abt_unlock(&bucket->lock);
    free(found);
}

struct abt_thread *abt_unit_thread(ABT_unit unit) {
    if (abt_is_null(unit))
        return NULL;
    if ((uintptr_t)unit & 1)
        return (struct abt_thread *)((uintptr_t)unit & ~(uintptr_t)1);
    struct bucket *bucket = bucket_of(unit);
    struct abt_thread *thread = NULL;
    abt_lock(&bucket->lock);
    for (const struct entry *at = bucket->first; at != NULL && thread == NULL; at = at->next)
        if (at->unit == unit)
            thread = at->thread;
    abt_unlock(&bucket->lock);
    return thread;
}

ABT_EXPORT int ABT_unit_get_thread(ABT_unit unit, ABT_thread *thread) {
    ABT_CHECK_HANDLE(unit, ABT_ERR_INV_UNIT);
    struct abt_thread *found = abt_unit_thread(unit);
    ABT_CHECK(found != NULL, ABT_ERR_INV_UNIT);
    *thread = abt_handle(found);
    return ABT_SUCCESS;
}

/* A thread is associated where it is pushed: there is nothing left to do. */
ABT_EXPORT int ABT_unit_set_associated_pool(ABT_unit unit, ABT_pool pool) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    ABT_CHECK_HANDLE(unit, ABT_ERR_INV_UNIT);
    return ABT_SUCCESS;
}
