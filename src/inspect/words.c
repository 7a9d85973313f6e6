// SPDX-License-Identifier: Apache-2.0
/* States, and what threads wait for, in words. */
#include "sched/awaits.h"

#include "inspect/inspect.h"

const char *inspect_awaits(uint8_t awaits) {
#define WORDS_OF_KIND(name, words, function) words,
    static const char *const words[AWAITS_KINDS] = {AWAITS_LIST(WORDS_OF_KIND)};
#undef WORDS_OF_KIND
    return awaits < AWAITS_KINDS ? words[awaits] : "?";
}

const char *inspect_state_word(enum inspect_state state) {
    static const char *const words[INSPECT_STATES] = {"runs", "new", "ready", "waits", "ended"};
    return words[state];
}

const char *inspect_ticks_word(enum inspect_ticks ticks) {
    static const char *const words[] = {"none", "off", "on", "rest", "masked", "blocked"};
    return words[ticks];
}

const char *inspect_worker_state_word(enum inspect_worker_state state) {
    static const char *const words[] = {"runs", "searches", "parked", "stopped", "relief"};
    return words[state];
}
