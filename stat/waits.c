// SPDX-License-Identifier: Apache-2.0
/* Futex waits: counted, timed, and sorted by where they are made and for which futex.
 *
 * The table is open addressing in memory that is shared with the command and with forked children. An entry is taken
 * by putting its key in place (0 -> key, once); whoever did that fills it in and says `ready`, everybody else only
 * adds to its counters. No entry is ever given back while threads run, so none can be mistaken for another. */
#include <string.h>
#include <sys/syscall.h>

#include "stat.h"

enum {
    PROBES = 16,     /* places that are tried for a key */
    FINE_DEPTH = 24, /* return addresses that make a difference */
    COARSE_DEPTH = 4,
};

/* The entry of a key among `count` from `first` on; *fresh where it is the caller's to fill in. NULL: full. */
static struct probe_wait *find(struct probe *probe, unsigned first, unsigned count, uint64_t key,
                               bool *fresh) {
    for (unsigned i = 0; i < PROBES; i++) {
        unsigned at = first + (unsigned)((key >> 8) + i) % count;
        uint64_t seen = load_relaxed(&probe->keys[at]);
        if (seen == 0 && cas_acq_rel(&probe->keys[at], &seen, key)) {
            *fresh = true;
            return &probe->in.entries[at];
        }
        if (seen == key)
            return &probe->in.entries[at];
    }
    return NULL;
}

static struct probe_wait *entry_of(struct probe *probe, const struct registers *at, uint64_t address) {
    bool fresh = false;
    uint64_t key = (stack_key_sigsafe(at, FINE_DEPTH) ^ address * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    struct probe_wait *entry = find(probe, 0, PROBE_FINE, key, &fresh);
    if (entry == NULL) {
        address = 0;
        entry = find(probe, PROBE_FINE, PROBE_COARSE, stack_key_sigsafe(at, COARSE_DEPTH), &fresh);
    }
    if (fresh) {
        entry->address = address;
        stack_copy_sigsafe(&entry->stack, at);
        store_release(&entry->ready, 1);
    }
    return entry;
}

long waits_call_sigsafe(struct probe *probe, const ucontext_t *context, const long a[6]) {
    const struct registers at = registers_of(context);
    struct probe_wait *entry = entry_of(probe, &at, (uint64_t)a[0]);
    fetch_add_relaxed(&probe->waits, 1);
    fetch_add_relaxed(entry != NULL ? &entry->waits : &probe->unplaced, 1);
    uint64_t begin = clock_ns_sigsafe();
    long answer = cancel_call_sigsafe(SYS_futex, a);
    if (entry != NULL)
        fetch_add_relaxed(&entry->nanoseconds, clock_ns_sigsafe() - begin);
    return answer;
}

/* What a program has left that this process was before: its addresses mean nothing any more. */
void waits_clear(struct probe *probe) {
    for (unsigned i = 0; i < PROBE_FINE + PROBE_COARSE; i++) {
        if (probe->keys[i] == 0)
            continue;
        memset(&probe->in.entries[i], 0, sizeof probe->in.entries[i]);
        probe->keys[i] = 0;
    }
}
