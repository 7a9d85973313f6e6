// SPDX-License-Identifier: Apache-2.0
/* Values of threads and tasklets by key. Any number of keys; any thread may set another's; destructors run when the thread is
 * freed, so that values survive ABT_thread_revive. */
#include <stdlib.h>

#include "layer.h"

struct abt_key {
    uint64_t id;
    void (*destructor)(void *);
};

struct abt_key_value {
    struct abt_key_value *next;
    uint64_t id; /* of the key, which may be freed */
    void (*destructor)(void *);
    void *value;
};

static uint64_t next_id;

static struct abt_key *key_of(ABT_key key) {
    return (struct abt_key *)(void *)key;
}

ABT_EXPORT int ABT_key_create(void (*destructor)(void *), ABT_key *newkey) {
    struct abt_key *key = malloc(sizeof *key);
    ABT_CHECK(key != NULL, ABT_ERR_MEM);
    *key = (struct abt_key){.id = fetch_add_relaxed(&next_id, 1), .destructor = destructor};
    *newkey = (ABT_key)(void *)key;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_key_free(ABT_key *key) {
    ABT_CHECK_HANDLE(*key, ABT_ERR_INV_KEY);
    free(*key);
    *key = ABT_KEY_NULL;
    return ABT_SUCCESS;
}

static struct abt_key_value *find(struct abt_key_value *value, uint64_t id) {
    while (value != NULL && value->id != id)
        value = value->next;
    return value;
}

int abt_values_set(struct abt_thread *thread, ABT_key key, void *value) {
    uint64_t id = key_of(key)->id;
    abt_lock(&thread->values_lock);
    struct abt_key_value *found = find(thread->values, id);
    if (found != NULL)
        found->value = value;
    abt_unlock(&thread->values_lock);
    if (found != NULL)
        return ABT_SUCCESS;
    struct abt_key_value *made = malloc(sizeof *made);
    ABT_CHECK(made != NULL, ABT_ERR_MEM);
    *made = (struct abt_key_value){.id = id, .destructor = key_of(key)->destructor, .value = value};
    abt_lock(&thread->values_lock);
    abt_has_more(thread);
    struct abt_key_value **end =
        &thread->values; /* destructors are called in this order, as the original does */
    while (*end != NULL)
        end = &(*end)->next;
    *end = made;
    abt_unlock(&thread->values_lock);
    return ABT_SUCCESS;
}

int abt_values_get(struct abt_thread *thread, ABT_key key, void **value) {
    abt_lock(&thread->values_lock);
    const struct abt_key_value *found = find(thread->values, key_of(key)->id);
    *value = found != NULL ? found->value : NULL;
    abt_unlock(&thread->values_lock);
    return ABT_SUCCESS;
}

/* A destructor may set values again: until none is left. */
void abt_values_delete(struct abt_thread *thread) {
    while (thread->values != NULL) {
        struct abt_key_value *value = thread->values;
        thread->values = value->next;
        if (value->destructor != NULL && value->value != NULL)
            value->destructor(value->value);
        free(value);
    }
}

void abt_values_delete_early(struct abt_thread *self) {
    if (abt.preempts && !(load_relaxed(&self->flags) & ABT_FLAG_NAMED))
        abt_values_delete(self);
}

ABT_EXPORT int ABT_key_set(ABT_key key, void *value) {
    ABT_CHECK_HANDLE(key, ABT_ERR_INV_KEY);
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    return ABT_self_set_specific(key, value);
}

ABT_EXPORT int ABT_key_get(ABT_key key, void **value) {
    ABT_CHECK_HANDLE(key, ABT_ERR_INV_KEY);
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    return ABT_self_get_specific(key, value);
}
