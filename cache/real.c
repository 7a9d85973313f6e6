// SPDX-License-Identifier: Apache-2.0
/* See real.h. */
#include "real.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

struct real_functions real;

static void look_up(void *slot, const char *name) {
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(slot, &symbol, sizeof symbol);
}

#define LOOK_UP(name) look_up(&real.name, #name);

void real_fill(void) {
    REAL_FUNCTIONS(LOOK_UP)
    look_up(&real.pthread_exit, "pthread_exit");
    look_up(&real._exit, "_exit");
    look_up(&real.dlmopen, "dlmopen");
    store_release(&real.filled, true);
}
