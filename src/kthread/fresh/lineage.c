// SPDX-License-Identifier: Apache-2.0
/* Numbers for kernel state that is inherited and cannot be put back; see fresh.h. Row lineage. */
#include "base/atomic.h"
#include "kthread/fresh/fresh.h"

static uint64_t last;

uint64_t lineage_new(void) {
    return fetch_add_relaxed(&last, 1) + 1;
}

bool lineage_ever_changed(void) {
    return load_relaxed(&last) != 0;
}
