// SPDX-License-Identifier: Apache-2.0
/* See because.h. An entry is claimed by a cas on its key and never given up; its count is added to without a lock. All
 * of it is relaxed: there is nothing behind a key. */
#include "kthread/because.h"

#include <string.h>

#include "base/atomic.h"

static struct {
    uint64_t key; /* 0: free; else the call, with the reason in the bits that no address has */
    uint64_t count;
} entries[BECAUSE_MOST];

enum { REASON_SHIFT = 56 };
#define CALL_MASK ((UINT64_C(1) << REASON_SHIFT) - 1)

static because call_of(uint64_t key) {
    return (because)(key & CALL_MASK);
}

/* The same name may stand at two addresses: each file that names it has its own. */
static bool same(uint64_t a, uint64_t b) {
    if (a == b)
        return true;
    if (a >> REASON_SHIFT != b >> REASON_SHIFT || call_of(a) < BECAUSE_NUMBERS ||
        call_of(b) < BECAUSE_NUMBERS)
        return false;
    return strcmp((const char *)call_of(a), (const char *)call_of(b)) == 0;
}

void because_count(unsigned reason, because call) {
    if (call == 0)
        return;
    const uint64_t key = (uint64_t)call | (uint64_t)reason << REASON_SHIFT;
    for (unsigned i = 0; i < BECAUSE_MOST; i++) {
        uint64_t seen = load_relaxed(&entries[i].key);
        if (seen == 0 && cas_relaxed(&entries[i].key, &seen, key))
            seen = key;
        if (same(seen, key)) {
            fetch_add_relaxed(&entries[i].count, 1);
            return;
        }
    }
}

bool because_get(unsigned i, unsigned *reason, because *call, uint64_t *count) {
    const uint64_t key = i < BECAUSE_MOST ? load_relaxed(&entries[i].key) : 0;
    *reason = (unsigned)(key >> REASON_SHIFT);
    *call = call_of(key);
    *count = i < BECAUSE_MOST ? load_relaxed(&entries[i].count) : 0;
    return key != 0;
}

void because_fork_child(void) {
    memset(entries, 0, sizeof entries);
}
