// SPDX-License-Identifier: Apache-2.0
/* Where the program creates its threads: counted by the caller of pthread_create.
 *
 * A place is known by the return addresses on the stack above the call's own frame. An entry is taken by putting its
 * key in place (0 -> key, once); the thread that did that fills it in and says `ready`, all others only count. None
 * is given back while threads run. */
#include <string.h>

#include "stat.h"

enum { DEPTH = 4 }; /* return addresses that make a difference */

static struct probe_maker *find(struct probe *probe, uint64_t key, bool *fresh) {
    for (unsigned i = 0; i < PROBE_MAKERS; i++) {
        uint64_t seen = load_relaxed(&probe->maker_keys[i]);
        if (seen == 0 && cas_relaxed(&probe->maker_keys[i], &seen, key)) {
            *fresh = true;
            return &probe->makers[i];
        }
        if (seen == key)
            return &probe->makers[i];
    }
    return NULL;
}

void makers_count(struct probe *probe, const struct registers *at, const void *frame) {
    const struct registers above = {0, (uintptr_t)frame, 0};
    bool fresh = false;
    struct probe_maker *maker = find(probe, stack_key_sigsafe(&above, DEPTH), &fresh);
    if (maker == NULL) /* in probe->created only */
        return;
    fetch_add_relaxed(&maker->threads, 1);
    if (!fresh)
        return;
    stack_copy_sigsafe(&maker->stack, at);
    store_release(&maker->ready, 1); /* pairs with makers_of (cli/stat/collect.cpp) */
}

/* What a program has left that this process was before. */
void makers_clear(struct probe *probe) {
    probe->created = probe->joined = 0;
    memset(probe->makers, 0, sizeof probe->makers);
    memset(probe->maker_keys, 0, sizeof probe->maker_keys);
}
