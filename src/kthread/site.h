// SPDX-License-Identifier: Apache-2.0
/* What is known of the threads that one place of a program creates, so that the next one can be put on the right CPU
 * (place.h). A place is identified by the start routine; for std::thread and std::async, which have one start routine
 * for all, by the type of the callable, that is the virtual table of libstdc++'s state object.
 *
 * Everything here is a hint: entries share a small table, a newcomer evicts the owner of its slot, and updates race.
 * A wrong hint costs time, never correctness. */
#ifndef THRUM_KTHREAD_SITE_H
#define THRUM_KTHREAD_SITE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

enum { SITE_SCORE_MAX = 16, SITE_SCORE_YES = 4 };

struct site {
    uintptr_t id;
    uint32_t brief;      /* score: its threads run for less than BRIEF (place.c) */
    uint32_t medium;     /* score: for less than MEDIUM */
    uint32_t batch;      /* creations before the creator's next join, as last seen... */
    uint32_t batch_sure; /* ... and the score of that */
    uint32_t prompt;     /* so many times in a row the creator came back to the library at once */
    uint32_t prompt_needed;
};

struct site *site_of(void *(*start)(void *), void *argument);

/* A score goes up by one and down by four: one thread that was interrupted does not change the mind. */
void site_score(uint32_t *score, bool good);
static inline bool site_says(const uint32_t *score) {
    return load_relaxed(score) >= SITE_SCORE_YES;
}

/* Called for every loaded module, under the loader's lock, by code that walks them anyway. */
void site_module_seen(const struct dl_phdr_info *info);

#endif
