// SPDX-License-Identifier: Apache-2.0
/* pthread_key_t and tss_t values: destructors at a logical thread's end, and NULL for the next one. Row keys.
 *
 * libc runs destructors only when a kernel thread really exits and does not tell which keys exist, so the front
 * end reports every creation and deletion. Values stay in libc: a deleted and recreated key already reads as
 * NULL there.
 *
 * The table is written by whoever creates or deletes a key and read by ending threads. POSIX lets neither
 * race with a use of that key; an entry is one pointer and one flag, each atomic. */
#include <limits.h>
#include <pthread.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/fresh/fresh.h"

static struct {
    void (*destructor)(void *);
    bool exists;
} keys[PTHREAD_KEYS_MAX];

static unsigned keys_end; /* one past the highest key that ever existed; only grows */

void keys_created(unsigned key, void (*destructor)(void *)) {
    if (key >= PTHREAD_KEYS_MAX)
        return;
    store_relaxed(&keys[key].destructor, destructor);
    store_release(&keys[key].exists, true);
    unsigned end = load_relaxed(&keys_end);
    while (end <= key && !cas_acq_rel(&keys_end, &end, key + 1)) {
    }
}

void keys_deleted(unsigned key) {
    if (key < PTHREAD_KEYS_MAX)
        store_release(&keys[key].exists, false);
}

/* One pass over all keys, those included that a destructor creates in it. True if a destructor ran, which may have set
 * values again. As in libc a value is gone when the pass has come by, also where its key has no destructor. */
static bool run_round(void) {
    bool ran = false;
    for (unsigned key = 0; key < load_acquire(&keys_end); key++) {
        void *value = load_acquire(&keys[key].exists) ? pthread_getspecific(key) : NULL;
        if (value == NULL)
            continue;
        pthread_setspecific(key, NULL);
        void (*destructor)(void *) = load_relaxed(&keys[key].destructor);
        if (destructor == NULL)
            continue;
        destructor(value);
        ran = true;
    }
    return ran;
}

void keys_run_destructors(void) {
    if (skipped(ROW_KEYS))
        return;
    for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && run_round(); round++) {
    }
}

void keys_clear(void) {
    if (skipped(ROW_KEYS))
        return;
    unsigned end = load_acquire(&keys_end);
    for (unsigned key = 0; key < end; key++)
        if (load_acquire(&keys[key].exists) && pthread_getspecific(key) != NULL)
            pthread_setspecific(key, NULL);
}
