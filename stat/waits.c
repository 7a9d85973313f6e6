// SPDX-License-Identifier: Apache-2.0
/* Futex waits: counted, timed, and sorted by where they are made and for which futex. A wait that the program's end
 * finds is timed by the command: its beginning stands in a slot meanwhile.
 *
 * The table is open addressing in memory that is shared with the command and with forked children. An entry is taken
 * by putting its key in place (0 -> key, once); the thread that did that fills it in and says `ready`, all others
 * only add to its counters. No entry is ever given back while threads run, so none can be mistaken for another. */
#include <pthread.h>
#include <string.h>

#include "os/syscall.h"
#include "stat.h"

enum {
    PROBES = 16,     /* places that are tried for a key */
    FINE_DEPTH = 24, /* return addresses that make a difference */
    COARSE_DEPTH = 4,
};

/* The entry of a key among `count` from `first` on; *fresh where it is the caller's to fill in. NULL: full. */
static struct probe_wait *find(struct probe *probe, unsigned first, unsigned count, uint64_t key,
                               bool *fresh) {
    for (unsigned i = 0; i < PROBES; i++) {
        unsigned at = first + (unsigned)((key >> 8) + i) % count;
        uint64_t seen = load_relaxed(&probe->keys[at]);
        if (seen == 0 && cas_relaxed(&probe->keys[at], &seen, key)) {
            *fresh = true;
            return &probe->in.entries[at];
        }
        if (seen == key)
            return &probe->in.entries[at];
    }
    return NULL;
}

static struct probe_wait *entry_of(struct probe *probe, const struct registers *at, uint64_t address) {
    bool fresh = false;
    uint64_t key = (stack_key_sigsafe(at, FINE_DEPTH) ^ address * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    struct probe_wait *entry = find(probe, 0, PROBE_FINE, key, &fresh);
    if (entry == NULL) {
        address = 0;
        entry = find(probe, PROBE_FINE, PROBE_COARSE, stack_key_sigsafe(at, COARSE_DEPTH), &fresh);
    }
    if (fresh) {
        entry->address = address;
        stack_copy_sigsafe(&entry->stack, at);
        store_release(&entry->ready, 1); /* pairs with Trapped::take_waits (cli/stat/exact.cpp) */
    }
    return entry;
}

/* --- those that have not ended ---------------------------------------------------------------------------- */

/* The thread's slot, while it waits. Taken by `thread` 0 -> its number, and only written to by it. A forked child's thread
 * finds its parent's number in it, and takes another one. */
static _Thread_local struct probe_open *mine;
static _Thread_local uint64_t mine_sp; /* where the stack stood at the call */

static bool is_mine(const struct probe_open *slot, int32_t thread) {
    return slot != NULL && load_relaxed(&slot->thread) == thread;
}

/* One of a thread that had the same number and did not come back is as good as a free one. NULL: there is none nearby. */
static struct probe_open *take_slot(struct probe *probe, int32_t thread) {
    for (unsigned i = 0; i < PROBES; i++) {
        struct probe_open *slot = &probe->open[((unsigned)thread + i) % PROBE_OPEN];
        int32_t seen = load_relaxed(&slot->thread);
        /* Pairs with close_wait of the thread that had it. */
        if (seen == thread || (seen == 0 && cas_acq_rel(&slot->thread, &seen, thread))) {
            slot->process = confined_process_sigsafe();
            return slot;
        }
    }
    return NULL;
}

static void fill(struct probe_open *slot, uint64_t entry, uint64_t begin) {
    store_relaxed(&slot->begin, 0);
    fence_seq_cst(); /* no new `entry` beside the old `begin`: pairs with the fence of open_waits */
    store_relaxed(&slot->entry, entry);
    store_release(&slot->begin, begin); /* pairs with Trapped::open_waits (cli/stat/exact.cpp) */
}

/* What the slot holds of a wait that a signal's handler has interrupted, and waits on top of. */
struct outer {
    uint64_t entry, begin, sp;
};

/* A handler that left by siglongjmp has ended that wait: then the stack stands no deeper than it did at it. */
static void open_wait(struct probe *probe, const struct probe_wait *entry, uint64_t sp, uint64_t begin,
                      struct outer *outer) {
    const int32_t thread = confined_thread_sigsafe();
    *outer = (struct outer){0};
    if (!is_mine(mine, thread))
        mine = take_slot(probe, thread);
    else if (sp < mine_sp)
        *outer = (struct outer){mine->entry, mine->begin, mine_sp};
    mine_sp = sp;
    if (mine != NULL)
        fill(mine, (uint64_t)(entry - probe->in.entries), begin);
}

static void close_wait(const struct outer *outer) {
    if (mine == NULL)
        return;
    mine_sp = outer->sp;
    if (outer->begin != 0) {
        fill(mine, outer->entry, outer->begin);
        return;
    }
    store_release(&mine->begin, 0); /* this and the next pair with open_waits and take_slot */
    store_release(&mine->thread, 0);
    mine = NULL;
}

/* A thread that ends from within a wait, cancelled as a rule. */
static void thread_ends(void *unused) {
    struct probe *probe = probe_of_process();
    (void)unused;
    if (!is_mine(mine, confined_thread_sigsafe()))
        return;
    fetch_add_relaxed(&probe->in.entries[mine->entry].nanoseconds, clock_ns_sigsafe() - mine->begin);
    close_wait(&(struct outer){0});
}

void waits_thread_begins(void) {
    static pthread_key_t end; /* its destructor runs when a thread ends */
    static bool has_end;      /* made by the first thread, before there are others */
    if (!probe_wants(PROBE_EXACT))
        return;
    if (!has_end)
        has_end = pthread_key_create(&end, thread_ends) == 0;
    if (has_end)
        pthread_setspecific(end, &end);
}

/* --- all of them ------------------------------------------------------------------------------------------ */

long waits_call_sigsafe(struct probe *probe, const ucontext_t *context, const long a[6]) {
    const struct registers at = registers_of(context);
    struct probe_wait *entry = entry_of(probe, &at, (uint64_t)a[0]);
    fetch_add_relaxed(&probe->waits, 1);
    fetch_add_relaxed(entry != NULL ? &entry->waits : &probe->unplaced, 1);
    if (entry == NULL)
        return cancel_call_sigsafe(SYS_futex, a);
    struct outer outer;
    const uint64_t begin = clock_ns_sigsafe();
    open_wait(probe, entry, at.sp, begin, &outer);
    const long answer = cancel_call_sigsafe(SYS_futex, a);
    close_wait(&outer);
    fetch_add_relaxed(&entry->nanoseconds, clock_ns_sigsafe() - begin);
    return answer;
}

/* What a program has left that this process was before: its addresses mean nothing any more. */
void waits_clear(struct probe *probe) {
    for (unsigned i = 0; i < PROBE_FINE + PROBE_COARSE; i++) {
        if (probe->keys[i] == 0)
            continue;
        memset(&probe->in.entries[i], 0, sizeof probe->in.entries[i]);
        probe->keys[i] = 0;
    }
    if (load_relaxed(&probe->loaded) > 1)
        memset(probe->open, 0, sizeof probe->open);
}
