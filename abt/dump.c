// SPDX-License-Identifier: Apache-2.0
/* The stacks of all threads that can run, at one moment (ABT_info_trigger_print_all_thread_stacks).
 *
 * A signal handler may ask for it. Each stream finds it between two work units, where no thread
 * runs on it. The first one prints; the others rest until it has. A stream that sleeps counts as at rest: it looks here before it
 * runs anything. A request that comes while another is printed is served next. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

struct request {
    FILE *file;
    double timeout;
    void (*done)(ABT_bool, void *);
    void *arg;
};

static struct {
    /* The last request, which a trigger may overwrite while it is read: abt.dump_is_wanted is 0 meanwhile, and then another number.
     * Between two equal numbers what was read is whole. */
    FILE *file;
    uint64_t timeout; /* the bits of a double */
    void (*done)(ABT_bool, void *);
    void *arg;
    uint32_t leader; /* a stream prints; by cas, with which the store of 0 pairs, as with the others' loads */
    uint32_t last;   /* number of the last request: odd, as 0 in dump_is_wanted stands for none */
} dump;

/* One that sleeps would not find it. Locks are held in regions only: if none is open here, the caller has not interrupted a
 * holder. If one is, the caller's own stream finds the request when it is out of it. */
static void wake_streams(void) {
    if (regions_open() != 0)
        return;
    abt_lock(&abt.lock);
    for (struct abt_stream *stream = abt.streams; stream != NULL; stream = stream->next)
        abt_stream_wake(stream);
    abt_unlock(&abt.lock);
}

ABT_EXPORT int ABT_info_trigger_print_all_thread_stacks(FILE *fp, double timeout,
                                                        void (*cb_func)(ABT_bool, void *), void *arg) {
    uint64_t bits;
    memcpy(&bits, &timeout, sizeof bits);
    store_relaxed(&abt.dump_is_wanted, 0);
    fence_seq_cst(); /* pairs with that of read_request */
    store_relaxed(&dump.file, fp);
    store_relaxed(&dump.timeout, bits);
    store_relaxed(&dump.done, cb_func);
    store_relaxed(&dump.arg, arg);
    store_release(&abt.dump_is_wanted, 2 * fetch_add_relaxed(&dump.last, 1U) + 1);
    wake_streams();
    return ABT_SUCCESS;
}

/* Its number; 0: there is none, or it is being written. */
static uint32_t read_request(struct request *request) {
    uint32_t number;
    do {
        number = load_acquire(&abt.dump_is_wanted);
        if (number == 0)
            return 0;
        uint64_t bits = load_relaxed(&dump.timeout);
        memcpy(&request->timeout, &bits, sizeof bits);
        request->file = load_relaxed(&dump.file);
        request->done = load_relaxed(&dump.done);
        request->arg = load_relaxed(&dump.arg);
        fence_seq_cst(); /* pairs with the trigger's: a field of a later request was read after its 0 */
    } while (load_relaxed(&abt.dump_is_wanted) != number);
    return number;
}

/* Does another stream run a work unit, or is it about to? */
static bool another_runs(const struct abt_stream *self) {
    bool runs = false;
    abt_lock(&abt.lock);
    for (const struct abt_stream *stream = abt.streams; stream != NULL && !runs; stream = stream->next)
        runs = stream != self && load_acquire(&stream->state) == ABT_XSTREAM_STATE_RUNNING &&
               !load_acquire(&stream->is_asleep) && !load_acquire(&stream->is_at_rest);
    abt_unlock(&abt.lock);
    return runs;
}

/* False: not all came to rest in time. */
static bool wait_for_rest(const struct abt_stream *self, double timeout) {
    uint64_t deadline = timeout < 0 ? TIMER_NEVER : abt_deadline_in_seconds(timeout);
    while (another_runs(self)) {
        if (timer_now() >= deadline)
            return false;
        sched_yield();
    }
    return true;
}

static void print_pools(FILE *file) {
    struct abt_stream **streams = malloc(WORKERS_MAX * sizeof *streams);
    int count = 0;
    abt_lock(&abt.lock);
    for (struct abt_stream *at = abt.streams; streams != NULL && at != NULL && count < WORKERS_MAX;
         at = at->next)
        streams[count++] = at;
    abt_unlock(&abt.lock);
    for (int i = count; i-- > 0;) {
        const struct abt_sched *sched = streams[i]->sched;
        fprintf(file, "execution stream %d\n", load_relaxed(&streams[i]->rank));
        for (int k = 0; k < sched->count; k++)
            ABT_info_print_thread_stacks_in_pool(file, abt_pool_handle(sched->pools[k]));
    }
    fflush(file);
    free(streams);
}

void abt_dump(struct abt_stream *stream) {
    uint32_t none = 0;
    if (!cas_acq_rel(&dump.leader, &none, 1)) {
        store_release(&stream->is_at_rest, 1);
        while (load_acquire(&dump.leader))
            sched_yield();
        store_release(&stream->is_at_rest, 0);
        return;
    }
    struct request request;
    uint32_t number = read_request(&request);
    if (number != 0) { /* or the one before has done it */
        bool in_time = wait_for_rest(stream, request.timeout);
        print_pools(request.file);
        cas_acq_rel(&abt.dump_is_wanted, &number, 0); /* one that has come meanwhile stays */
        if (request.done != NULL)
            request.done(!in_time, request.arg);
    }
    store_release(&dump.leader, 0);
}
