// SPDX-License-Identifier: Apache-2.0
/* The stacks of all threads that can run, at one moment (ABT_info_trigger_print_all_thread_stacks).
 *
 * A signal handler may ask for it. Each stream finds it between two work units, where no thread
 * runs on it. The first one prints; the others rest until it has. A stream that sleeps counts as at rest. A request that comes
 * while another is printed is served next.
 *
 * A stream that is to run something again (1) takes back what said that it is at rest, (2) has a fence, (3) reads `leader`. One that
 * prints (1) has become the leader, (2) has a fence, (3) reads what the others say. So the leader waits for the stream, or that rests
 * again. */
#include <sched.h>

#include "layer.h"

/* Requests that wait: FREE -> WRITTEN by a trigger, by a cas -> WAITING by the same -> FREE by a leader, which has copied it. More
 * at a time are refused. A trigger never waits for another, which it may have interrupted. */
enum { REQUESTS = 16 };
enum request_state { FREE, WRITTEN, WAITING };

struct request {
    uint32_t state;  /* enum request_state; its changes pair: what the one wrote is there, or has been read */
    uint32_t number; /* the oldest is served first */
    FILE *file;
    double timeout;
    void (*done)(ABT_bool, void *);
    void *arg;
};

static struct {
    struct request requests[REQUESTS];
    uint32_t leader; /* a stream prints; by cas, with which the store of 0 pairs, as with the others' loads */
    uint32_t last;   /* number of the last request */
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

/* NULL: all are in use. */
static struct request *claim_request(void) {
    for (int i = 0; i < REQUESTS; i++) {
        uint32_t state = FREE;
        if (cas_acq_rel(&dump.requests[i].state, &state, WRITTEN))
            return &dump.requests[i];
    }
    return NULL;
}

ABT_EXPORT int ABT_info_trigger_print_all_thread_stacks(FILE *fp, double timeout,
                                                        void (*cb_func)(ABT_bool, void *), void *arg) {
    struct request *request = claim_request();
    if (request == NULL) /* as with the original, where it is the second already */
        return ABT_SUCCESS;
    request->number = fetch_add_relaxed(&dump.last, 1U);
    request->file = fp;
    request->timeout = timeout;
    request->done = cb_func;
    request->arg = arg;
    /* First: it may be served at once. Pairs with abt_stream_is_called. */
    fetch_add_release(&abt.dump_is_wanted, 1U);
    store_release(&request->state, WAITING);
    wake_streams();
    return ABT_SUCCESS;
}

/* The oldest; false: none is whole yet, or another leader has served it. By the leader. */
static bool take_request(struct request *taken) {
    struct request *oldest = NULL;
    for (int i = 0; i < REQUESTS; i++) {
        struct request *request = &dump.requests[i];
        if (load_acquire(&request->state) == WAITING &&
            (oldest == NULL || (int32_t)(request->number - oldest->number) < 0))
            oldest = request;
    }
    if (oldest == NULL)
        return false;
    *taken = *oldest;
    store_release(&oldest->state, FREE);
    return true;
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

/* By the leader alone, as the list is static. */
static void print_pools(FILE *file) {
    static struct abt_stream *streams[WORKERS_MAX];
    int count = 0;
    abt_lock(&abt.lock);
    for (struct abt_stream *at = abt.streams; at != NULL && count < WORKERS_MAX; at = at->next)
        streams[count++] = at;
    abt_unlock(&abt.lock);
    for (int i = count; i-- > 0;) {
        const struct abt_sched *sched = streams[i]->sched;
        fprintf(file, "execution stream %d\n", load_relaxed(&streams[i]->rank));
        for (int k = 0; k < sched->count; k++)
            if (ABT_info_print_thread_stacks_in_pool(file, abt_pool_handle(sched->pools[k])) != ABT_SUCCESS)
                fputs("  its pool cannot be printed\n", file);
    }
    fflush(file);
}

void abt_dump_await(struct abt_stream *stream) {
    fence_seq_cst(); /* pairs with that of abt_dump */
    while (load_acquire(&dump.leader)) {
        store_release(&stream->is_at_rest, 1); /* pairs with another_runs */
        while (load_acquire(&dump.leader))
            sched_yield();
        store_release(&stream->is_at_rest, 0);
        fence_seq_cst(); /* likewise: pairs with that of abt_dump */
    }
}

void abt_dump(struct abt_stream *stream) {
    uint32_t none = 0;
    if (!cas_acq_rel(&dump.leader, &none, 1)) {
        abt_dump_await(stream);
        return;
    }
    fence_seq_cst(); /* pairs with those of abt_dump_await */
    struct request request;
    if (take_request(&request)) {
        bool in_time = wait_for_rest(stream, request.timeout);
        print_pools(request.file);
        fetch_sub_relaxed(&abt.dump_is_wanted, 1U); /* until here the others come to rest for it */
        if (request.done != NULL)
            request.done(!in_time, request.arg);
    }
    store_release(&dump.leader, 0);
}
