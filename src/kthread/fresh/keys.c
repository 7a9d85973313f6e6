// SPDX-License-Identifier: Apache-2.0
/* pthread_key_t and tss_t values: destructors at a logical thread's end, and NULL for the next one. Row keys.
 *
 * libc runs destructors only when a kernel thread really exits. libc's own table, which it exports for debuggers,
 * tells which keys exist: so keys count that were created past the front end, too. The front end also reports every
 * creation and deletion; where libc's table is not understood, that is all there is. Values stay in libc: a deleted
 * and recreated key already reads as NULL there.
 *
 * The table is written by the creator or deleter of a key and read by ending threads. POSIX lets neither race with a
 * use of that key; an entry is one pointer and one flag, each atomic. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/fresh/fresh.h"

static struct {
    void (*destructor)(void *);
    bool exists;
} keys[PTHREAD_KEYS_MAX];

static unsigned keys_end; /* one past the highest key that ever existed; only grows */

/* libc's: of a key that exists `sequence` is odd, of one that never did it is 0. A new key is the lowest that is free, so
 * those that never existed come after all others. */
struct libc_key {
    uintptr_t sequence;
    void (*destructor)(void *);
};
static const struct libc_key *libc_keys; /* r/o after keys_init; NULL: not understood */

/* What debuggers are told of a field: its size in bits, how many there are, where. */
struct field {
    uint32_t bits, count, offset;
};

static bool field_is(const char *name, uint32_t offset) {
    const struct field *field = dlsym(RTLD_DEFAULT, name);
    return field != NULL && field->bits == 8 * sizeof(void *) && field->count == 1 && field->offset == offset;
}

void keys_init(void) {
    const struct libc_key *found = dlsym(RTLD_DEFAULT, "__pthread_keys");
    const uint32_t *size = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread_key_struct");
    bool understood = size != NULL && *size == sizeof *found &&
                      field_is("_thread_db_pthread_key_struct_seq", offsetof(struct libc_key, sequence)) &&
                      field_is("_thread_db_pthread_key_struct_destr", offsetof(struct libc_key, destructor));
    libc_keys = understood ? found : NULL;
}

static unsigned end_of_keys(void) {
    /* Pairs with the cas of keys_created: `exists` is there. */
    unsigned end = load_acquire(&keys_end), known = end;
    if (libc_keys == NULL)
        return end;
    /* Pairs with libc's cas of it, as in key_exists. */
    while (end < PTHREAD_KEYS_MAX && load_acquire(&libc_keys[end].sequence) != 0)
        end++;
    while (known < end && !cas_acq_rel(&keys_end, &known, end)) { /* pairs with the load above */
    }
    return end;
}

static bool key_exists(unsigned key) {
    /* The first pairs with libc's cas, the other with keys_created and keys_deleted. */
    return libc_keys != NULL ? (load_acquire(&libc_keys[key].sequence) & 1) != 0
                             : load_acquire(&keys[key].exists);
}

static void (*destructor_of(unsigned key))(void *) {
    return libc_keys != NULL ? load_relaxed(&libc_keys[key].destructor) : load_relaxed(&keys[key].destructor);
}

void keys_created(unsigned key, void (*destructor)(void *)) {
    if (key >= PTHREAD_KEYS_MAX)
        return;
    store_relaxed(&keys[key].destructor, destructor);
    store_release(&keys[key].exists, true); /* pairs with key_exists: the destructor is there */
    unsigned end = load_relaxed(&keys_end);
    while (end <= key && !cas_acq_rel(&keys_end, &end, key + 1)) { /* pairs with end_of_keys */
    }
}

void keys_deleted(unsigned key) {
    if (key < PTHREAD_KEYS_MAX)
        store_release(&keys[key].exists, false); /* pairs with key_exists */
}

/* One pass over all keys, those included that a destructor creates in it. True if a destructor ran, which may have set
 * values again. As in libc a value is gone when the pass has come by, also where its key has no destructor. */
static bool run_round(unsigned spared) {
    bool ran = false;
    unsigned end = end_of_keys();
    for (unsigned key = 0; key < end; key++) {
        void *value = key != spared && key_exists(key) ? pthread_getspecific(key) : NULL;
        if (value == NULL)
            continue;
        pthread_setspecific(key, NULL);
        void (*destructor)(void *) = destructor_of(key);
        if (destructor == NULL)
            continue;
        destructor(value);
        end = end_of_keys();
        ran = true;
    }
    return ran;
}

bool keys_run_destructors(unsigned spared) {
    int rounds = 0;
    if (skipped(ROW_KEYS))
        return false;
    while (rounds < PTHREAD_DESTRUCTOR_ITERATIONS && run_round(spared))
        rounds++;
    return rounds > 0;
}

void keys_clear(unsigned spared) {
    if (skipped(ROW_KEYS))
        return;
    unsigned end = end_of_keys();
    for (unsigned key = 0; key < end; key++)
        if (key != spared && key_exists(key) && pthread_getspecific(key) != NULL)
            pthread_setspecific(key, NULL);
}
