// SPDX-License-Identifier: Apache-2.0
/* See real.h. */
#include "real.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "cache.h"
#include "kthread/alternative.h"

struct real_functions real;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    return kthread_alternative == NULL ? found : kthread_alternative->behind(name, found);
}

#define LOOK_UP(name) store_relaxed(&real.name, (__typeof__(real.name))next(#name));

void real_fill_sigsafe(void) {
    REAL_FUNCTIONS_SIGSAFE(LOOK_UP)
    LOOK_UP(_exit)
    LOOK_UP(dlopen)
    compat_fill_sigsafe();
}

void real_fill(void) {
    real_fill_sigsafe();
    REAL_FUNCTIONS_LATE(LOOK_UP)
    LOOK_UP(pthread_exit)
    LOOK_UP(dlmopen)
}
