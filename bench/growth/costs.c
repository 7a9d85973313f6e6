/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the default scheduler cost here: the parameters of simulation.py, which says what each does there.
 * bench/growth runs this, once a round; it prints lines of a name and a number, ns where it does not say otherwise, or
 * "none WHY". SCALE is 1 for the usual patience.
 *
 * libthrum's objects are linked in, since some of the parts have no public function. Each number is the median of many
 * samples. A short one is less what it costs to look at the clock, whose readings are ordered with what is around them,
 * as those of the time stamp counter by itself are not. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "os/membarrier.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

enum { SAMPLES = 2000, FEW_SAMPLES = 200, BATCH = 1000 };

static double stamp_ns;
static uint64_t samples[SAMPLES];

static void check(int error) {
    if (error != 0) {
        fprintf(stderr, "costs: %s\n", strerror(error));
        exit(1);
    }
}

static uint64_t clock_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* Of the first `count` samples, in ns. */
static double median(size_t count) {
    qsort(samples, count, sizeof *samples, compare);
    return (double)(samples[(count - 1) / 2] + samples[count / 2]) / 2;
}

/* The shortest but for a tenth. Of what two CPUs do together: where one of them is busy with something else, most samples
 * are of waiting for it. */
static double low(size_t count) {
    median(count);
    return (double)samples[count / 10];
}

/* A sample is between two readings of the clock, and holds one of them. */
static double median_between(size_t count) {
    double ns = median(count) - stamp_ns;
    return ns > 0 ? ns : 0;
}

static void say(const char *name, double value) {
    printf("%s %.3f\n", name, value);
}

static void wait_ns(double ns) {
    for (uint64_t end = clock_now() + (uint64_t)ns; clock_now() < end;) {
    }
}

static void learn_stamps(void) {
    for (size_t i = 0; i < SAMPLES; i++) {
        uint64_t before = clock_now();
        samples[i] = clock_now() - before;
    }
    stamp_ns = median(SAMPLES);
}

/* Instead of what has been said, which is still in stdio's buffer. */
static _Noreturn void give_up(int unused) {
    static const char why[] =
        "none the second worker, or thread, has to have a CPU; the machine is too busy\n";
    (void)unused;
    _exit(write(STDOUT_FILENO, why, sizeof why - 1) < 0);
}

/* Are so many samples enough? */
static void need(size_t count) {
    if (count < 10)
        give_up(0);
}

static void with_workers(unsigned workers, void *(*fn)(void *)) {
    struct thrum_config config = {.workers = workers};
    thrum_t thread;
    check(thrum_init(&config));
    check(thrum_spawn(&thread, NULL, fn, NULL));
    check(thrum_join(thread, NULL));
    check(thrum_fini());
}

/* --- one worker --------------------------------------------------------------------------------------- */

static void *nothing(void *unused) {
    return unused;
}

/* spawn: with the child's run and end; join: of one that has ended. */
static void *measure_spawn(void *unused) {
    static thrum_t threads[BATCH];
    uint64_t joins[FEW_SAMPLES];
    for (size_t i = 0; i < FEW_SAMPLES; i++) {
        uint64_t before = clock_now();
        for (size_t k = 0; k < BATCH; k++)
            check(thrum_spawn(&threads[k], NULL, nothing, NULL));
        uint64_t between = clock_now();
        for (size_t k = 0; k < BATCH; k++)
            check(thrum_join(threads[k], NULL));
        samples[i] = between - before;
        joins[i] = clock_now() - between;
    }
    say("spawn_ns", median(FEW_SAMPLES) / BATCH);
    memcpy(samples, joins, sizeof joins);
    say("join_ns", median(FEW_SAMPLES) / BATCH);
    return unused;
}

static void *yield_often(void *unused) {
    for (size_t i = 0; i < FEW_SAMPLES; i++) {
        uint64_t before = clock_now();
        for (size_t k = 0; k < BATCH; k++)
            thrum_yield();
        samples[i] = (clock_now() - before) / 2; /* the other one's, too */
    }
    return unused;
}

static void *measure_switch(void *unused) {
    thrum_t other;
    check(thrum_spawn(&other, NULL, yield_often, NULL));
    yield_often(NULL);
    check(thrum_join(other, NULL));
    say("switch_ns", median(FEW_SAMPLES) / BATCH);
    return unused;
}

/* --- queues, without a runtime ------------------------------------------------------------------------ */

static struct deque deque;
static struct thrum_unit unit; /* never run */

static double push_and_pop(void) {
    for (size_t i = 0; i < FEW_SAMPLES; i++) {
        uint64_t before = clock_now();
        for (size_t k = 0; k < BATCH; k++) {
            deque_push(&deque, &unit);
            if (deque_pop(&deque) == NULL)
                abort();
        }
        samples[i] = clock_now() - before;
    }
    return median(FEW_SAMPLES) / BATCH;
}

/* What a pop costs more once a thief has come; DEQUE_CALM pops later it is as before, so `changing` is held. */
static void measure_deque(void) {
    check(deque_init(&deque, false));
    double alone = push_and_pop();
    deque.changing = deque.shared = 1;
    double shared = push_and_pop();
    deque_destroy(&deque);
    say("deque_ns", alone);
    say("fence_ns", shared > alone ? shared - alone : 0);
}

/* A searcher looks at this many idle others, and pauses. */
static void measure_looks(void) {
    enum { OTHERS = 64, RELAX = 32 };
    static struct deque deques[OTHERS];
    static struct yield_ring rings[OTHERS];
    unsigned seen = 0;
    for (size_t i = 0; i < FEW_SAMPLES; i++) {
        uint64_t before = clock_now();
        for (unsigned k = 0; k < 100 * OTHERS; k++)
            seen += !deque_is_empty(&deques[k % OTHERS]) || !yield_ring_is_empty(&rings[k % OTHERS]);
        samples[i] = clock_now() - before;
    }
    if (seen != 0)
        abort();
    say("look_ns", median(FEW_SAMPLES) / 100 / OTHERS);
    for (size_t i = 0; i < SAMPLES; i++) {
        uint64_t before = clock_now();
        for (int k = 0; k < RELAX; k++)
            arch_relax();
        samples[i] = clock_now() - before;
    }
    say("relax_ns", median_between(SAMPLES));
}

/* --- two CPUs, without a runtime ---------------------------------------------------------------------- */

static _Alignas(128) uint32_t word;
static _Alignas(128) uint32_t over;

static void *answer(void *unused) {
    for (uint32_t i = 1; i <= 2 * BATCH; i += 2) {
        while (load_acquire(&word) != i) {
        }
        store_release(&word, i + 1);
    }
    return unused;
}

/* A word goes there and back; a transfer is one way. */
static void measure_line(void) {
    for (size_t i = 0; i < FEW_SAMPLES / 4; i++) {
        pthread_t other;
        word = 0;
        check(pthread_create(&other, NULL, answer, NULL));
        store_release(&word, 1);
        while (load_acquire(&word) != 2) {
        }
        uint64_t before = clock_now();
        for (uint32_t k = 3; k <= 2 * BATCH; k += 2) {
            store_release(&word, k);
            while (load_acquire(&word) != k + 1) {
            }
        }
        samples[i] = clock_now() - before;
        check(pthread_join(other, NULL));
    }
    say("line_ns", low(FEW_SAMPLES / 4) / 2 / (BATCH - 1));
}

/* An owner that pushes one when it is asked to. */
static void *push_when_asked(void *unused) {
    for (uint32_t i = 1; i <= SAMPLES; i++) {
        while (load_acquire(&word) != i)
            arch_relax();
        deque_push(&deque, &unit);
        store_release(&over, i);
    }
    return unused;
}

/* A theft in itself: the deque's lines come from the owner. */
static void measure_steal(void) {
    pthread_t owner;
    check(deque_init(&deque, true)); /* the fence is there; the change of mode is measured by itself */
    word = over = 0;
    check(pthread_create(&owner, NULL, push_when_asked, NULL));
    for (uint32_t i = 1; i <= SAMPLES; i++) {
        store_release(&word, i);
        while (load_acquire(&over) != i)
            arch_relax();
        uint64_t before = clock_now();
        if (deque_steal(&deque) == NULL)
            abort();
        samples[i - 1] = clock_now() - before;
    }
    check(pthread_join(owner, NULL));
    deque_destroy(&deque);
    say("steal_ns", median_between(SAMPLES));
}

static uint64_t turns;

static void *turn(void *unused) {
    while (!load_acquire(&over))
        store_relaxed(&turns, turns + 1);
    return unused;
}

enum { SPANS = 21, PER_SPAN = 20 };

/* How many turns the other makes in a ns, while membarrier is called so often, or only the clock is looked at. */
static double turns_meanwhile(bool disturb, uint64_t calls[PER_SPAN], double *span) {
    uint64_t before = load_relaxed(&turns), start = clock_now();
    for (size_t i = 0; i < PER_SPAN; i++) {
        uint64_t at = clock_now();
        if (disturb)
            membarrier_expedited();
        calls[i] = clock_now() - at;
        wait_ns(10000);
    }
    *span = (double)(clock_now() - start);
    return (double)(load_relaxed(&turns) - before) / *span;
}

/* membarrier: what it costs its caller; interrupt: what it takes from a running thread. In turns with spans without:
 * the CPU's clock changes. */
static void measure_membarrier(void) {
    static uint64_t calls[SPANS * PER_SPAN], lost[SPANS];
    pthread_t other;
    uint64_t unused[PER_SPAN];
    turns = over = 0;
    check(pthread_create(&other, NULL, turn, NULL));
    wait_ns(1e6);
    for (size_t i = 0; i < SPANS; i++) {
        double span, without = turns_meanwhile(false, unused, &span);
        double with = turns_meanwhile(true, &calls[i * PER_SPAN], &span);
        double share = without > 0 && with < without ? 1 - with / without : 0;
        lost[i] = (uint64_t)(share * span / PER_SPAN);
    }
    store_release(&over, 1);
    check(pthread_join(other, NULL));
    memcpy(samples, calls, sizeof calls);
    say("membarrier_ns", median_between(SPANS * PER_SPAN));
    memcpy(samples, lost, sizeof lost);
    say("interrupt_ns", median(SPANS));
}

/* --- two workers -------------------------------------------------------------------------------------- */

static struct {
    double length; /* ns */
    uint64_t begun, ended;
    uint32_t worker;
} child;

/* Not inlined: after a move the address of a thread-local is another. */
static __attribute__((noinline)) uint32_t here(void) {
    uint32_t id = enter()->id;
    leave();
    return id;
}

static void *compute(void *unused) {
    child.begun = clock_now();
    child.worker = here();
    wait_ns(child.length);
    child.ended = clock_now();
    return unused;
}

/* Makes a child that computes for so long. True: meanwhile its maker has gone to the other worker. */
static bool moves(thrum_t *thread, double length, uint64_t *before, uint64_t *after) {
    child.length = length;
    *before = clock_now();
    check(thrum_spawn(thread, NULL, compute, NULL));
    *after = clock_now();
    return here() != load_relaxed(&child.worker);
}

/* On a busy machine the second worker is often without a CPU. */
static double patience_ns;

static uint64_t patience(void) {
    return clock_now() + (uint64_t)patience_ns;
}

/* The creator is stolen by a worker that has been without work for `idle` ns: from before its spawn until it resumes.
 * *call: from before the spawn until the child runs. */
static double measure_taking(double idle, size_t count, double *call) {
    uint64_t before, after, calls[SAMPLES];
    thrum_t thread;
    size_t moved = 0;
    for (uint64_t until = patience(); moved < count && clock_now() < until;) {
        wait_ns(idle);
        bool has_moved = moves(&thread, 50000 + idle / 4, &before, &after);
        check(thrum_join(thread, NULL));
        if (has_moved && after < child.ended) {
            calls[moved] = child.begun - before;
            samples[moved++] = after - before;
        }
    }
    need(moved);
    double taken = median_between(moved);
    memcpy(samples, calls, moved * sizeof *calls);
    *call = median_between(moved);
    return taken;
}

/* handoff: by one that searches, wake: by one that is parked, from when the maker is in the queue. wake_call: what it takes
 * the pusher to wake it. */
static void *measure_handoff(void *unused) {
    double call, call_parked;
    double handoff = measure_taking(20000, FEW_SAMPLES, &call);
    double wake = measure_taking(400000, FEW_SAMPLES / 2, &call_parked);
    say("handoff_ns", handoff - call > 0 ? handoff - call : 0);
    say("wake_ns", wake - call > 0 ? wake - call : 0);
    say("wake_call_ns", call_parked > call ? call_parked - call : 0);
    return unused;
}

/* meet: the creator waits in a join, elsewhere; from the child's end until it resumes. */
static void *measure_meet(void *unused) {
    uint64_t before, after;
    thrum_t thread;
    size_t met = 0;
    for (uint64_t until = patience(); met < FEW_SAMPLES && clock_now() < until;) {
        wait_ns(20000);
        bool has_moved = moves(&thread, 50000, &before, &after);
        check(thrum_join(thread, NULL));
        uint64_t now = clock_now();
        if (has_moved && after + 10000 < child.ended)
            samples[met++] = now - child.ended;
    }
    need(met);
    say("meet_ns", median_between(met));
    return unused;
}

static uint32_t far_ended;

static void *end_far(void *unused) {
    fetch_add_seq_cst(&far_ended, 1U);
    return unused;
}

/* join_far: of one that has ended on the other worker, among many. */
static void *measure_join_far(void *unused) {
    static thrum_t threads[BATCH];
    size_t count = 0;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    for (uint64_t until = patience(); count < FEW_SAMPLES && clock_now() < until;) {
        check(thrum_attr_set_worker(&attr, 1 - here()));
        store_relaxed(&far_ended, 0);
        for (size_t i = 0; i < BATCH; i++)
            check(thrum_spawn(&threads[i], &attr, end_far, NULL));
        while (load_acquire(&far_ended) != BATCH)
            arch_relax();
        wait_ns(2000); /* the last one, too, has said that it has ended */
        uint64_t before = clock_now();
        for (size_t i = 0; i < BATCH; i++)
            check(thrum_join(threads[i], NULL));
        samples[count++] = clock_now() - before;
    }
    need(count);
    say("join_far_ns", median(count) / BATCH);
    return unused;
}

enum { CHAIN = 400 };
static struct {
    uint64_t begun, ended, resumed; /* the child, and its creator */
    uint32_t worker;
} chain[CHAIN];

static void *link_of_chain(void *link) {
    size_t i = (size_t)link;
    chain[i].begun = clock_now();
    chain[i].worker = here();
    wait_ns(3000);
    chain[i].ended = clock_now();
    return NULL;
}

static void make_chain(void) {
    thrum_t threads[CHAIN];
    for (size_t i = 0; i < CHAIN; i++) {
        check(thrum_spawn(&threads[i], NULL, link_of_chain, (void *)i));
        chain[i].resumed = clock_now();
    }
    for (size_t i = 0; i < CHAIN; i++)
        check(thrum_join(threads[i], NULL));
}

/* Its child was on another worker than the one before, and ran on when the maker had been taken by that one's. */
static bool was_a_turn(size_t i) {
    return chain[i].worker != chain[i - 1].worker && chain[i].resumed < chain[i].ended &&
           chain[i - 1].ended > chain[i].begun;
}

/* turn: a worker whose child ends finds the maker in the other's queue; from that end until it runs it. */
static void *measure_turn(void *unused) {
    size_t count = 0;
    for (uint64_t until = patience(); count < SAMPLES && clock_now() < until;) {
        make_chain();
        for (size_t i = 1; i < CHAIN && count < SAMPLES; i++)
            if (was_a_turn(i))
                samples[count++] = chain[i].resumed - chain[i - 1].ended;
    }
    need(count);
    say("turn_ns", median_between(count));
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s SCALE\n", argv[0]);
        return 2;
    }
    patience_ns = 5e9 * atof(argv[1]);
    signal(SIGALRM, give_up);
    alarm(5 + (unsigned)(55 * atof(argv[1])));
    membarrier_register();
    learn_stamps();
    with_workers(1, measure_spawn);
    with_workers(1, measure_switch);
    measure_deque();
    measure_looks();
    measure_line();
    measure_steal();
    measure_membarrier();
    with_workers(2, measure_handoff);
    with_workers(2, measure_meet);
    with_workers(2, measure_turn);
    with_workers(2, measure_join_far);
    say("fair_every", FAIR_EVERY);
    say("deque_calm", DEQUE_CALM);
    fflush(stdout);
    return 0;
}
