// SPDX-License-Identifier: Apache-2.0
/* What preemption and blocking calls have in reserve, and use. */
#include "inspect/view.h"

static const char *mode_word(const struct preempt *has) {
    if (!has->on)
        return has->by_safepoints ? "safepoints" : "none";
    switch (has->settings.mode) {
    case THRUM_PREEMPT_YIELD: return "yield";
    case THRUM_PREEMPT_LEND: return "lend";
    case THRUM_PREEMPT_OWN_TLS: return "own-tls";
    case THRUM_PREEMPT_KLT: return "klt";
    default: return "none";
    }
}

/* As new, at the workers. */
static uint64_t count_as_new(const struct view *view) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < view->workers; i++) {
        uint32_t count = 0;
        memory_field(view->source, view_worker(view, i), struct worker, as_new.count, &count);
        all += count;
    }
    return all;
}

bool inspect_get_resources(const struct inspect_source *source, struct inspect_resources *resources) {
    struct view view;
    struct preempt has;
    struct preempt_counts counts;
    struct inspect_blocking blocking;
    if (!view_open(&view, source) || !memory_get(source, (uintptr_t)view.image.preempt, &has, sizeof has) ||
        !memory_get(source, (uintptr_t)view.image.counts, &counts, sizeof counts) ||
        !memory_get(source, (uintptr_t)view.image.blocking, &blocking, sizeof blocking))
        return false;
    *resources = (struct inspect_resources){
        .mode = mode_word(&has),
        .signal = has.on ? has.settings.signal : 0,
        .carries = has.carries,
        .preempted = (uint64_t)has.away + has.away_in_pools,
        .own_blocks = has.owners,
        .own_spare = counts.kept + count_as_new(&view),
        .spare = counts.spare,
        .donors = counts.donors,
        .blocking_threads = blocking.threads,
        .blocking_calls = blocking.threads > blocking.idle ? blocking.threads - blocking.idle : 0};
    return true;
}
