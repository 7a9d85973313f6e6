// SPDX-License-Identifier: Apache-2.0
/* Preempted threads that may hold a lock for which a stream waits in the kernel: a lock of libc's, such as malloc's or that of
 * stdout, or one that the program's threads and pool functions share.
 *
 * What is not preempted may wait for such a lock: the primary thread, a tasklet, the function of a scheduler or of a pool, a thread
 * that asks not to be preempted. If the holder stands in a pool of the same stream it would never run. The core's relief worker
 * (src/preempt/relief.h) finds such a wait at the second tick. It calls abt_relieve, which runs preempted threads in turn, oldest
 * first, each until it yields, waits, ends, or is preempted again.
 *
 * All preempted threads are in one list, wherever their pools are, from before they are pushed until a host is about to run them.
 * A thread in the list may have been popped already: it is taken from there only if it is taken out of its pool, too.
 *
 * A worker that relieves has no stream. Its loop stands for a host without a scheduler: what it runs always comes back to it, and
 * goes to its own pool. Such a thread names the stream where it last ran as its own. Before it becomes a host itself it
 * yields, and continues on a stream.
 *
 * Modelled in tests/model/abt_relief.pml.
 *
 * Locks. The list's is taken first, then a pool's. */
#include "direct.h"

static struct {
    struct abt_spin lock;
    struct abt_thread *first, *last; /* under lock; oldest first */
} preempted;

/* By the worker's number; NULL: it does not relieve now. By that worker alone, inside. */
static struct abt_thread *hosts[WORKER_IDS];

struct abt_thread *abt_relief_host(const struct thrum_unit *unit) {
    const struct worker *worker = front_worker_of_loop(unit);
    return worker != NULL ? hosts[worker->id] : NULL;
}

/* --- the list -------------------------------------------------------------------------------------------- */

void abt_preempted_add(struct abt_thread *thread) {
    abt_has_more(thread);
    abt_lock(&preempted.lock);
    thread->preempted_next = NULL;
    thread->preempted_prev = preempted.last;
    if (preempted.last != NULL)
        preempted.last->preempted_next = thread;
    else
        preempted.first = thread;
    preempted.last = thread;
    fetch_or_relaxed(&thread->request, (uint32_t)ABT_REQUEST_PREEMPTED);
    abt_unlock(&preempted.lock);
}

static void remove_locked(struct abt_thread *thread) {
    struct abt_thread *next = thread->preempted_next, *prev = thread->preempted_prev;
    if (prev != NULL)
        prev->preempted_next = next;
    else
        preempted.first = next;
    if (next != NULL)
        next->preempted_prev = prev;
    else
        preempted.last = prev;
    fetch_and_relaxed(&thread->request, ~(uint32_t)ABT_REQUEST_PREEMPTED);
}

void abt_preempted_remove(struct abt_thread *thread) {
    abt_lock(&preempted.lock);
    remove_locked(thread);
    abt_unlock(&preempted.lock);
}

void abt_preempted_forget(void) {
    preempted.first = preempted.last = NULL;
}

/* Of this stream; NULL: of any. */
static struct abt_thread *take_locked(const struct abt_stream *stream) {
    for (struct abt_thread *thread = preempted.first; thread != NULL; thread = thread->preempted_next)
        if ((stream == NULL || thread->last_stream == stream) && thread->pool->type == ABT_POOL_OURS &&
            abt_pool_take(thread->pool, thread)) {
            remove_locked(thread);
            return thread;
        }
    return NULL;
}

static struct abt_thread *take(const struct abt_stream *stream) {
    abt_lock(&preempted.lock);
    struct abt_thread *thread = stream != NULL ? take_locked(stream) : NULL;
    if (thread == NULL)
        thread = take_locked(NULL);
    abt_unlock(&preempted.lock);
    return thread;
}

/* --- on a relief worker ---------------------------------------------------------------------------------- */

bool abt_relieve(struct worker *worker, const struct worker *stuck) {
    struct abt_thread *thread = take(abt_stream_on(stuck));
    if (thread == NULL)
        return false;
    struct abt_thread host = {.kind = ABT_KIND_MAIN, .left = ABT_LEFT_WAITING};
    hosts[worker->id] = &host;
    store_relaxed(&thread->state, ABT_THREAD_STATE_RUNNING);
    front_run_relieved(worker, thread->unit);
    struct abt_thread *direct = host.direct;
    abt_see_to(&host);
    if (direct != NULL) /* to which it has yielded */
        abt_ready(direct, ABT_POOL_CONTEXT_OP_THREAD_YIELD_TO, false);
    hosts[worker->id] = NULL;
    return true;
}

void abt_go_home(void) {
    for (;;) {
        const struct worker *worker = enter();
        bool is_home = abt_stream_on(worker) != NULL;
        leave();
        if (is_home)
            return;
        abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_YIELD, NULL);
    }
}
