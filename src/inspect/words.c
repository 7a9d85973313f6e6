// SPDX-License-Identifier: Apache-2.0
/* States, and what threads wait for, in words. */
#include "sched/awaits.h"

#include "inspect/inspect.h"

const char *inspect_awaits(uint8_t awaits) {
    static const char *const words[AWAITS_KINDS] = {
        [AWAITS_NOTHING] = "nothing",
        [AWAITS_TIME] = "a time",
        [AWAITS_RESUME] = "thrum_resume",
        [AWAITS_END] = "the end of",
        [AWAITS_CALL] = "a blocking call",
        [AWAITS_WORKER] = "the end of a worker",
        [AWAITS_WORK] = "work for",
        [AWAITS_ANY] = "any of several",
        [AWAITS_MUTEX] = "mutex",
        [AWAITS_COND] = "condition",
        [AWAITS_READ] = "rwlock (read)",
        [AWAITS_WRITE] = "rwlock (write)",
        [AWAITS_SEM] = "semaphore",
        [AWAITS_BARRIER] = "barrier",
        [AWAITS_EVENT] = "event",
        [AWAITS_LATCH] = "latch",
        [AWAITS_EVENTUAL] = "eventual",
        [AWAITS_FUTURE] = "future",
        [AWAITS_ONCE] = "once",
        [AWAITS_SEND] = "channel (send)",
        [AWAITS_RECEIVE] = "channel (receive)",
    };
    return awaits < AWAITS_KINDS ? words[awaits] : "?";
}

const char *inspect_state_word(enum inspect_state state) {
    static const char *const words[INSPECT_STATES] = {"runs", "new", "ready", "waits", "ended"};
    return words[state];
}

const char *inspect_worker_state_word(enum inspect_worker_state state) {
    static const char *const words[] = {"runs", "searches", "parked", "stopped", "relief"};
    return words[state];
}
