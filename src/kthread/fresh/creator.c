// SPDX-License-Identifier: Apache-2.0
/* What a new thread has from its creator: signal mask, floating-point environment, protection key rights, CPU
 * affinity, name. Captured when the thread is asked for, applied by the reused thread before user code runs.
 * Rows sigmask (in part), fpenv, pkeys, inherit. */
#include <string.h>
#include <sys/prctl.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/fresh/fresh.h"

static bool names_differ, pkeys_used;

void creator_names_differ(void) {
    store_relaxed(&names_differ, true);
}

void creator_pkeys_used(void) {
    if (arch_pkeys_available())
        store_relaxed(&pkeys_used, true);
}

void creator_affinity_changed(struct fresh_state *state) {
    store_relaxed(&state->affinity.length, 0);
}

static void affinity_get(struct fresh_affinity *affinity) {
    long length = sys(SYS_sched_getaffinity, 0, sizeof affinity->bits, affinity->bits);
    affinity->length = length > 0 ? (uint32_t)length : 0;
}

static bool affinity_same(const struct fresh_affinity *a, const struct fresh_affinity *b) {
    return load_relaxed(&a->length) == b->length && memcmp(a->bits, b->bits, b->length) == 0;
}

static void affinity_copy(struct fresh_affinity *to, const struct fresh_affinity *from) {
    memcpy(to->bits, from->bits, from->length);
    store_relaxed(&to->length, from->length);
}

void creator_capture(struct fresh_creator *creator) {
    arch_fpenv_save(&creator->fpenv);
    affinity_get(&creator->affinity);
    if (load_relaxed(&pkeys_used))
        creator->pkeys = arch_pkeys_save();
    creator->has_name = load_relaxed(&names_differ);
    if (creator->has_name)
        sys(SYS_prctl, PR_GET_NAME, creator->name);
}

void creator_apply(const struct fresh_creator *creator, struct fresh_state *state) {
    if (!skipped(ROW_FPENV))
        arch_fpenv_load(&creator->fpenv);
    if (load_relaxed(&pkeys_used) && !skipped(ROW_PKEYS))
        arch_pkeys_load(creator->pkeys);
    if (skipped(ROW_INHERIT))
        return;
    if (creator->affinity.length != 0 && !affinity_same(&state->affinity, &creator->affinity)) {
        sys(SYS_sched_setaffinity, 0, creator->affinity.length, creator->affinity.bits);
        affinity_copy(&state->affinity, &creator->affinity);
    }
    if (creator->has_name)
        sys(SYS_prctl, PR_SET_NAME, creator->name);
}

void creator_inherited(const struct fresh_creator *creator, struct fresh_state *state) {
    affinity_copy(&state->affinity, &creator->affinity);
}
