// SPDX-License-Identifier: Apache-2.0
/* See may_wait.h. */
#include "sched/may_wait.h"

#include <stdlib.h>

#include "base/text.h"
#include "sched/worker.h"

bool unit_here_may_wait(void) {
    const struct worker *worker = enter();
    bool may = worker == NULL || unit_may_wait(worker->current);
    leave();
    return may;
}

/* The public function in which a unit waits so; of several, the plain one. */
static const char *function_of(enum awaits kind) {
    switch (kind) {
    case AWAITS_TIME: return "thrum_sleep";
    case AWAITS_RESUME: return "thrum_suspend";
    case AWAITS_END: return "thrum_join";
    case AWAITS_CALL: return "thrum_blocking";
    case AWAITS_WORKER: return "thrum_worker_stop";
    case AWAITS_WORK: return "thrum_sched_idle";
    case AWAITS_ANY: return "thrum_wait_any";
    case AWAITS_MUTEX: return "thrum_mutex_lock";
    case AWAITS_COND: return "thrum_cond_wait";
    case AWAITS_READ: return "thrum_rwlock_read_lock";
    case AWAITS_WRITE: return "thrum_rwlock_write_lock";
    case AWAITS_SEM: return "thrum_sem_wait";
    case AWAITS_BARRIER: return "thrum_barrier_wait";
    case AWAITS_EVENT: return "thrum_event_wait";
    case AWAITS_LATCH: return "thrum_latch_wait";
    case AWAITS_EVENTUAL: return "thrum_eventual_get";
    case AWAITS_FUTURE: return "thrum_future_wait";
    case AWAITS_ONCE: return "thrum_once_call";
    case AWAITS_SEND: return "thrum_channel_send";
    case AWAITS_RECEIVE: return "thrum_channel_receive";
    default: return "a call that waits";
    }
}

_Noreturn void unit_cannot_wait(enum awaits kind) {
    text_line("misuse: a tasklet or a scheduler must not wait, but would have to in ", function_of(kind),
              NULL);
    abort();
}

_Noreturn void unit_waits_in_region(enum awaits kind) {
    text_line("misuse: a thread must not wait between thrum_nopreempt_begin() and thrum_nopreempt_end(), but "
              "would have to in ",
              function_of(kind), NULL);
    abort();
}

_Noreturn void unit_ends_in_region(void) {
    text_line("misuse: a thread must not end between thrum_nopreempt_begin() and thrum_nopreempt_end()", NULL,
              NULL);
    abort();
}
