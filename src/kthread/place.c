// SPDX-License-Identifier: Apache-2.0
/* The placement policy; see place.h. All shared words are hints but `post`, which kthread_post and the parked
 * thread own together (life.h). */
#include "kthread/place.h"

#include <sched.h>

#include "base/atomic.h"
#include "kthread/crowd.h"
#include "kthread/internal.h"
#include "os/clock.h"
#include "os/ticks.h"

/* Microseconds. */
enum {
    LINGER = 5,     /* a thread spins for the next job: about what a wake-up on the same CPU costs */
    JOIN_SPIN = 20, /* a joiner for the end: a wake-up across CPUs costs more */
    BRIEF = 20,     /* a job below this may run on its creator's CPU */
    SHORT = 200,    /* one below this leaves so little behind that it is seen to once for a series of them */
    MEDIUM = 2000,  /* above it a wake-up across CPUs is a percent of the job: nothing to gain */
    PROMPT = 50,    /* a creator that is back within this came straight back */
    LATE = 100,     /* a thread woken here that started later than this had company on the CPU */
    YIELD_LONG = 100, /* a yield that took longer ran another process's time slice */
    PROBE_SPIN = 60,  /* covers a wake-up across CPUs */
    PROBE_SPIN_MIN = PROBE_SPIN / 5,
    PROBE_EVERY = 20, /* at first; doubles with each failure */
    PROBE_EVERY_MAX = 5000,
};
enum { BACK_OFF_LINGER = 8, BACK_OFF_YIELD = 10, BACK_OFF_STAY = 10, BACK_OFF_HERE = 6 };

static uint64_t us(uint64_t n) {
    return n * ticks_per_us();
}

/* --- how many may spin -------------------------------------------------------------------------------- */

static struct {
    _Alignas(64) uint32_t now;
    _Alignas(64) uint32_t most; /* CPUs that the process may use, but one */
} spinners;

static bool spin_begin(void) {
    if (fetch_add_relaxed(&spinners.now, 1) < load_relaxed(&spinners.most))
        return true;
    fetch_sub_relaxed(&spinners.now, 1);
    return false;
}

static void spin_end(void) {
    fetch_sub_relaxed(&spinners.now, 1);
}

/* --- the creator's own notes -------------------------------------------------------------------------- */

static __thread struct {
    struct site *last_site; /* of its last creation, if it may still come back for that; else NULL */
    uint64_t last;          /* ticks then */
    struct site *latest;    /* likewise, whether it may or not */
    uint32_t created;       /* since its last join */
    uint32_t yield_fails, yield_skip;
    uint32_t stay_fails, stay_skip;
    uint32_t here_fails, here_skip;
} own;

/* Passes up a chance that has failed before: true for 2^n - 1 times after the n-th failure in a row. */
static bool passed_up(uint32_t *skip) {
    if (*skip == 0)
        return false;
    (*skip)--;
    return true;
}

static void failed(uint32_t *fails, uint32_t *skip, uint32_t most) {
    if (*fails < most)
        (*fails)++;
    *skip = (UINT32_C(1) << *fails) - 1;
}

/* The creator is in the library again: at once, or after work of its own? A run that ends early makes the next one
 * harder to begin; a long one (it was the end of a time slice) does not. */
static void learn_prompt(uint64_t now) {
    struct site *site = own.last_site;
    if (site == NULL)
        return;
    own.last_site = NULL;
    uint32_t prompt = load_relaxed(&site->prompt), needed = load_relaxed(&site->prompt_needed);
    if (now - own.last < us(PROMPT)) {
        if (prompt < 4096)
            store_relaxed(&site->prompt, prompt + 1);
        return;
    }
    if (prompt < 4 * needed)
        needed = needed < 1024 ? needed * 2 : needed;
    else
        needed = needed > 8 ? needed / 2 : needed;
    store_relaxed(&site->prompt_needed, needed);
    store_relaxed(&site->prompt, 0);
}

static bool is_prompt(const struct site *site) {
    return load_relaxed(&site->prompt) >= load_relaxed(&site->prompt_needed);
}

static void learn_batch(struct site *site, uint32_t created) {
    site_score(&site->batch_sure, load_relaxed(&site->batch) == created);
    if (load_relaxed(&site->batch_sure) == 0)
        store_relaxed(&site->batch, created);
}

/* After this one the creator will sleep in a join: its CPU is about to be free, the best place for a job that is not
 * quite brief. */
static bool is_last_before_join(const struct site *site) {
    return own.created == 1 && load_relaxed(&site->batch) == 1 && site_says(&site->batch_sure) &&
           site_says(&site->medium);
}

/* --- probing ------------------------------------------------------------------------------------------ */

static struct {
    _Alignas(64) uint64_t next; /* ticks: no probe before */
    uint64_t every, spin;       /* ticks; 0 until the rate is known */
} probe;

static bool probe_due(uint64_t now) {
    uint64_t next = load_relaxed(&probe.next), every = load_relaxed(&probe.every);
    return (int64_t)(now - next) >= 0 &&
           cas_relaxed(&probe.next, &next, now + (every != 0 ? every : us(PROBE_EVERY)));
}

static uint64_t probe_spin(void) {
    uint64_t spin = load_relaxed(&probe.spin);
    return spin != 0 ? spin : us(PROBE_SPIN);
}

/* It met: probe as often as at first, and spin for twice as long as was needed. It did not: both double. */
static void probe_result(bool met, uint64_t took) {
    uint64_t every = load_relaxed(&probe.every), spin = met ? took * 2 : probe_spin() * 2;
    every = met ? us(PROBE_EVERY) : (every != 0 ? every : us(PROBE_EVERY)) * 2;
    if (every > us(PROBE_EVERY_MAX))
        every = us(PROBE_EVERY_MAX);
    if (spin > us(PROBE_SPIN))
        spin = us(PROBE_SPIN);
    if (spin < us(PROBE_SPIN_MIN))
        spin = us(PROBE_SPIN_MIN);
    store_relaxed(&probe.every, every);
    store_relaxed(&probe.spin, spin);
    store_relaxed(&probe.next, arch_ticks() + every);
}

/* --- the creator -------------------------------------------------------------------------------------- */

enum { LONG_BITS = 8 * sizeof(unsigned long) };

static bool mask_has(const struct fresh_affinity *mask, int cpu) {
    unsigned word = (unsigned)cpu / LONG_BITS;
    return cpu >= 0 && word < mask->length / sizeof(unsigned long) &&
           (mask->bits[word] >> ((unsigned)cpu % LONG_BITS) & 1);
}

static unsigned mask_count(const struct fresh_affinity *mask) {
    unsigned count = 0;
    for (unsigned i = 0; i < mask->length / sizeof(unsigned long); i++)
        count += (unsigned)__builtin_popcountl(mask->bits[i]);
    return count;
}

/* The sleeping thread may run on this CPU only, or anywhere but on it, until it has woken up and asks for its
 * creator's mask (its own is not known any more). */
static bool confine(struct kthread *thread, int cpu, bool to_it) {
    const struct fresh_affinity *mask = &thread->creator.affinity;
    unsigned long bits[FRESH_CPU_WORDS];
    unsigned words = mask->length / sizeof *bits;
    if (!mask_has(mask, cpu))
        return false;
    for (unsigned i = 0; i < words; i++)
        bits[i] = to_it ? 0 : mask->bits[i];
    unsigned long bit = 1UL << ((unsigned)cpu % LONG_BITS), *word = &bits[(unsigned)cpu / LONG_BITS];
    *word = to_it ? bit : *word & ~bit;
    store_relaxed(&thread->fresh.affinity.length, 0);
    return sys(SYS_sched_setaffinity, thread->tid, mask->length, bits) == 0;
}

static enum place_how choose(struct kthread *thread, bool detached, uint64_t now) {
    struct place_order *order = &thread->order;
    bool brief = site_says(&order->site->brief);
    if (detached || ticks_per_us() == 0 || !is_prompt(order->site))
        return PLACE_PLAIN;
    if (!brief && (!is_last_before_join(order->site) || passed_up(&own.here_skip)))
        return PLACE_PLAIN;
    if (brief && mask_count(&thread->creator.affinity) > 1 && probe_due(now))
        return confine(thread, order->creator_cpu, false) ? PLACE_PROBE : PLACE_PLAIN;
    if (brief && order->slept_cpu == order->creator_cpu && !passed_up(&own.stay_skip))
        return PLACE_STAY;
    return confine(thread, order->creator_cpu, true) ? PLACE_HERE : PLACE_PLAIN;
}

/* Before the post: afterwards another thread may own it. */
static void note_creation(struct kthread *thread, bool detached, enum place_how how, uint64_t now) {
    struct site *site = site_of(thread->start, thread->argument);
    thread->order = (struct place_order){site, how, sched_getcpu(), thread->run.last_cpu, now};
    crowd_seen(thread->order.creator_cpu, now);
    store_relaxed(&thread->run.cpu, -1);
    own.created++;
    own.latest = site;
    own.last_site = detached ? NULL : site;
    own.last = now;
}

/* More come before the creator waits for them, and this one runs for a while: woken where the creator runs, it would keep
 * that from making the others. The kernel mostly wakes a thread where it slept. */
int place_avoids(void) {
    const struct site *site = own.latest;
    bool more = site != NULL && site_says(&site->batch_sure) && own.created + 1 < load_relaxed(&site->batch);
    return more && !site_says(&site->brief) ? sched_getcpu() : -1;
}

void place_post(struct kthread *thread, bool detached) {
    uint64_t now = arch_ticks();
    learn_prompt(now);
    note_creation(thread, detached, PLACE_HOT, now);
    uint32_t seen = POST_NOTHING;
    if (cas_acq_rel(&thread->post, &seen, POST_JOB)) /* pairs with thrum_kthread_idle */
        return;
    thread->order.how = choose(thread, detached, now);
    kthread_post(thread, POST_JOB);
    own.last = arch_ticks();
}

void place_new(struct kthread *thread, bool detached) {
    uint64_t now = arch_ticks();
    learn_prompt(now);
    note_creation(thread, detached, PLACE_NEW, now);
}

void place_detached(void) {
    if (own.last_site != NULL)
        store_relaxed(&own.last_site->prompt, 0);
    own.last_site = NULL;
}

/* --- the thread --------------------------------------------------------------------------------------- */

void place_begin(struct kthread *thread) {
    thread->notes.order = thread->order;
    thread->run.started = arch_ticks();
    thread->run.last_cpu = sched_getcpu();
    if ((thread->order.how == PLACE_HERE || thread->order.how == PLACE_STAY) &&
        thread->run.last_cpu == thread->order.creator_cpu)
        crowd_waited(thread->run.last_cpu, thread->run.started);
    store_relaxed(&thread->run.cpu, thread->run.last_cpu);
    if (own.latest != NULL || own.created != 0 ||
        own.yield_fails != 0) { /* what it was as a creator is over */
        own.latest = own.last_site = NULL;
        own.created = 0;
        own.yield_skip = own.yield_fails = 0;
    }
}

uint64_t place_end(struct kthread *thread) {
    struct site *site = thread->notes.order.site;
    thread->notes.short_job = false;
    if (ticks_per_us() == 0)
        return UINT64_MAX;
    uint64_t now = arch_ticks(), ran = now - thread->run.started;
    crowd_seen(sched_getcpu(), now);
    thread->notes.short_job = ran < us(SHORT);
    site_score(&site->brief, ran < us(BRIEF));
    site_score(&site->medium, ran < us(MEDIUM));
    return ran;
}

static bool spin_for_post(const uint32_t *post, uint64_t ticks) {
    uint64_t begin = arch_ticks();
    do {
        for (int i = 0; i < 8; i++) {
            if (load_relaxed(post) != POST_NOTHING)
                return true;
            arch_relax();
        }
    } while (arch_ticks() - begin < ticks);
    return false;
}

void place_linger(struct kthread *thread) {
    struct place_notes *notes = &thread->notes;
    bool probing = notes->order.how == PLACE_PROBE;
    if (ticks_per_us() == 0 || sched_getcpu() == notes->order.creator_cpu ||
        (!probing && passed_up(&notes->skip)) || !spin_begin())
        return;
    bool posted = spin_for_post(&thread->post, probing ? probe_spin() : us(LINGER));
    spin_end();
    if (posted)
        notes->fails = 0;
    else
        failed(&notes->fails, &notes->skip, BACK_OFF_LINGER);
}

/* --- the joiner --------------------------------------------------------------------------------------- */

static bool has_ended(const struct kthread *thread) {
    return load_acquire(&thread->life) >= LIFE_ENDED; /* pairs with publish */
}

static bool spin_for_end(const struct kthread *thread, uint64_t since, uint64_t ticks) {
    creator_look_again();
    do {
        for (int i = 0; i < 8; i++) {
            if (has_ended(thread))
                return true;
            arch_relax();
        }
    } while (arch_ticks() - since < ticks);
    return false;
}

/* On the same CPU: gives it away, as long as that brings the end and not another process's time slice. */
static bool yield_for_end(const struct kthread *thread) {
    uint64_t began = arch_ticks();
    if (crowd_is_dense(began) || passed_up(&own.yield_skip))
        return false;
    int cpu = sched_getcpu();
    crowd_seen(cpu, began);
    sched_yield();
    if (sched_getcpu() == cpu) /* else it need not have waited there */
        crowd_waited(cpu, arch_ticks());
    bool ended = has_ended(thread);
    if (ended && (int64_t)(thread->run.started - began) < (int64_t)us(YIELD_LONG))
        own.yield_fails = 0;
    else
        failed(&own.yield_fails, &own.yield_skip, BACK_OFF_YIELD);
    return ended;
}

/* A thread may be forbidden to read the ticks (PR_SET_TSC): keeping stops before it is. Then no creator comes here any
 * more, and a joiner only waits. */
static bool may_read_ticks(void) {
    return kthread_keeping();
}

void place_join(struct kthread *thread) {
    if (!may_read_ticks())
        return;
    learn_prompt(arch_ticks());
    if (own.created != 0)
        learn_batch(thread->order.site, own.created);
    own.created = 0;
}

bool place_wait(struct kthread *thread) {
    struct place_order *order = &thread->order;
    if (has_ended(thread))
        return true;
    if (!may_read_ticks() || ticks_per_us() == 0 || !kthread_keeping()) /* not where a filter may be why */
        return false;
    uint64_t now = arch_ticks();
    int cpu = load_relaxed(&thread->run.cpu), here = sched_getcpu();
    if (order->how == PLACE_PROBE)
        return spin_for_end(thread, now, probe_spin());
    if (order->how == PLACE_HOT && cpu < 0)
        cpu = order->slept_cpu; /* it is there and has not seen the job yet */
    if (!site_says(&order->site->brief) && order->how != PLACE_HERE)
        return false;
    if (order->how == PLACE_HERE || order->how == PLACE_STAY || cpu == here) {
        if (yield_for_end(thread))
            return true;
        cpu = load_relaxed(&thread->run.cpu);
        if (order->how != PLACE_STAY || cpu == here || cpu < 0)
            return false; /* else the kernel has put it somewhere else */
    }
    if (load_relaxed(&spinners.most) == 0)
        return false;
    return spin_for_end(thread, now, us(JOIN_SPIN));
}

void place_joined(struct kthread *thread, bool slept) {
    const struct place_order *order = &thread->order;
    if (!may_read_ticks())
        return;
    int cpu = load_relaxed(&thread->run.cpu);
    switch (order->how) {
    case PLACE_PROBE: probe_result(cpu != order->creator_cpu && !slept, arch_ticks() - order->posted); break;
    case PLACE_HERE: /* did it have to wait for others on this CPU? */
        if (site_says(&order->site->brief))
            break;
        if ((int64_t)(thread->run.started - order->posted) < (int64_t)us(LATE))
            own.here_fails = 0;
        else
            failed(&own.here_fails, &own.here_skip, BACK_OFF_HERE);
        break;
    case PLACE_STAY: /* did it stay? */
        if (cpu == order->creator_cpu)
            own.stay_fails = 0;
        else
            failed(&own.stay_fails, &own.stay_skip, BACK_OFF_STAY);
        break;
    default: break;
    }
}

/* --- process ------------------------------------------------------------------------------------------ */

void place_init(void) {
    unsigned long bits[FRESH_CPU_WORDS];
    long length = sys(SYS_sched_getaffinity, 0, sizeof bits, bits);
    struct fresh_affinity mask = {.length = length > 0 ? (uint32_t)length : 0, .bits = bits};
    unsigned cpus = mask_count(&mask);
    store_relaxed(&spinners.most, cpus > 1 ? cpus - 1 : 0);
    crowd_init();
    ticks_per_us(); /* begins to measure */
}

void place_fork_child(void) {
    store_relaxed(&spinners.now, 0);
    own.last_site = NULL;
}
