// SPDX-License-Identifier: Apache-2.0
/* Numbers for kernel state that is inherited and cannot be put back; see fresh.h. Row lineage. */
#include "base/atomic.h"
#include "kthread/fresh/fresh.h"

enum { COUNT_BITS = 40 };

static uint64_t last;
static uint64_t rights; /* the generation of the main thread's */

uint64_t lineage_new(uint64_t from) {
    return (from >> COUNT_BITS << COUNT_BITS) | (fetch_add_relaxed(&last, 1) + 1);
}

uint64_t lineage_new_rights(void) {
    /* Pairs with lineage_has_rights_of_main, by the fences of kthread_change_rights and keeping. */
    return lineage_new((fetch_add_seq_cst(&rights, 1) + 1) << COUNT_BITS);
}

bool lineage_has_rights_of_main(uint64_t lineage) {
    return lineage >> COUNT_BITS == load_seq_cst(&rights); /* pairs with lineage_new_rights */
}

bool lineage_ever_changed(void) {
    return load_relaxed(&last) != 0;
}
