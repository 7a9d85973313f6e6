// SPDX-License-Identifier: Apache-2.0
/* Notes of every key, for src/kthread/fresh/keys.c. libc creates tss_t keys by an internal call, and libstdc++
 * of old binaries uses the underscored name. */
#include <threads.h>

#include "cache.h"

int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *));

INTERPOSE int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    int error = REAL(pthread_key_create)(key, destructor);
    if (error == 0)
        keys_created(*key, destructor);
    return error;
}

INTERPOSE int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    return pthread_key_create(key, destructor);
}

INTERPOSE int pthread_key_delete(pthread_key_t key) {
    keys_deleted(key);
    return REAL(pthread_key_delete)(key);
}

INTERPOSE int tss_create(tss_t *key, tss_dtor_t destructor) {
    int error = REAL(tss_create)(key, destructor);
    if (error == thrd_success)
        keys_created(*key, destructor);
    return error;
}

INTERPOSE void tss_delete(tss_t key) {
    keys_deleted(key);
    REAL(tss_delete)(key);
}
