// SPDX-License-Identifier: Apache-2.0
//
// Row join: every result and every error of pthread_join, pthread_tryjoin_np, pthread_timedjoin_np,
// pthread_clockjoin_np and pthread_detach; on new and on reused threads.
#include "child.h"

enum { IDLE = 3, ROUNDS = 5, MS = 1000000, WAIT_MS = 60 };

static void begin(void) {
    if (row_is_skipped())
        alarm(3); // without the row, several of these wait for ever
    warm_threads(IDLE);
}

// A thread that runs until it is told to end.
struct held {
    pthread_t thread;
    int end;
    void *result;
};
static void *hold(void *p) {
    struct held *held = p;
    await_flag(&held->end);
    return held->result;
}
static void start_held(struct held *held, void *result) {
    held->end = 0;
    held->result = result;
    CHECK_OK(pthread_create(&held->thread, NULL, hold, held));
}
static void finish_held(struct held *held) {
    void *result = NULL;
    set_flag(&held->end);
    CHECK_OK(pthread_join(held->thread, &result));
    CHECK(result == held->result, "pthread_join gave %p instead of %p", result, held->result);
}

static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec t;
    CHECK_SYS(clock_gettime(clock, &t));
    t.tv_nsec += ms % 1000 * MS;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

// ---- results ------------------------------------------------------------------------------------------------------

static void *leave(void *arg) {
    pthread_exit(arg);
}

static void results(void) {
    begin();
    for (intptr_t i = 1; i < 50; i++) {
        pthread_t thread;
        void *result = NULL;
        CHECK_OK(pthread_create(&thread, NULL, i % 2 ? do_nothing : leave, (void *)i));
        if (i % 5 == 0)
            sleep_ms(2); // it has ended already
        switch (i % 4) {
        case 0: CHECK_OK(pthread_join(thread, &result)); break;
        case 1: {
            int error;
            while ((error = pthread_tryjoin_np(thread, &result)) == EBUSY)
                sleep_ms(1);
            CHECK_OK(error);
            break;
        }
        case 2: {
            struct timespec later = in_ms(CLOCK_REALTIME, 5000);
            CHECK_OK(pthread_timedjoin_np(thread, &result, &later));
            break;
        }
        case 3: {
            struct timespec later = in_ms(CLOCK_MONOTONIC, 5000);
            CHECK_OK(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &later));
            break;
        }
        }
        CHECK_EQ((intptr_t)result, i);
    }
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
    CHECK_OK(pthread_join(thread, NULL));
}

// The joiner of main gets what main gave to pthread_exit.
static pthread_t main_thread;
static void *join_main(void *arg) {
    void *result;
    (void)arg;
    CHECK_OK(pthread_join(main_thread, &result));
    CHECK_EQ((intptr_t)result, 4711);
    exit(23);
}
static void main_leaves(void) {
    pthread_t thread;
    main_thread = pthread_self();
    begin();
    CHECK_OK(pthread_create(&thread, NULL, join_main, NULL));
    pthread_exit((void *)4711);
}
static void main_is_joined(void) {
    expect_exit(child_status(main_leaves, 10), 23);
}

// ---- not yet ------------------------------------------------------------------------------------------------------

static void busy_and_late(void) {
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        struct held held;
        void *result;
        start_held(&held, &held);
        CHECK_EQ(pthread_tryjoin_np(held.thread, &result), EBUSY);

        const struct {
            clockid_t clock;
            int by_clock;
        } ways[] = {{CLOCK_REALTIME, 0}, {CLOCK_REALTIME, 1}, {CLOCK_MONOTONIC, 1}};
        for (int w = 0; w < 3; w++) {
            int64_t start = now_ms();
            struct timespec soon = in_ms(ways[w].clock, WAIT_MS);
            CHECK_EQ(ways[w].by_clock ? pthread_clockjoin_np(held.thread, &result, ways[w].clock, &soon)
                                      : pthread_timedjoin_np(held.thread, &result, &soon),
                     ETIMEDOUT);
            CHECK(now_ms() - start >= WAIT_MS - 2, "timed out after %d ms", (int)(now_ms() - start));
            CHECK(now_ms() - start < WAIT_MS + 2000, "timed out after %d ms", (int)(now_ms() - start));
        }
        const struct timespec past = {1, 0};
        CHECK_EQ(pthread_timedjoin_np(held.thread, &result, &past), ETIMEDOUT);
        CHECK_EQ(pthread_clockjoin_np(held.thread, &result, CLOCK_MONOTONIC, &past), ETIMEDOUT);

        // Still joinable after all that.
        finish_held(&held);
    }
}

// A join that has to wait, and is woken by the end.
static void *end_soon(void *arg) {
    sleep_ms(20);
    return arg;
}
static void woken_by_the_end(void) {
    begin();
    for (intptr_t i = 1; i <= 9; i++) {
        pthread_t thread;
        void *result = NULL;
        int64_t start = now_ms();
        struct timespec later = in_ms(CLOCK_REALTIME, 8000), later_monotonic = in_ms(CLOCK_MONOTONIC, 8000);
        CHECK_OK(pthread_create(&thread, NULL, end_soon, (void *)i));
        if (i % 3 == 0)
            CHECK_OK(pthread_join(thread, &result));
        if (i % 3 == 1)
            CHECK_OK(pthread_timedjoin_np(thread, &result, &later));
        if (i % 3 == 2)
            CHECK_OK(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &later_monotonic));
        CHECK_EQ((intptr_t)result, i);
        CHECK(now_ms() - start < 4000, "the end woke no joiner");
    }
}

// ---- wrong --------------------------------------------------------------------------------------------------------

static void bad_times(void) {
    struct held held;
    start_held(&held, NULL);
    // glibc 2.36 spins on such a time until the thread ends.
    for (long nsec = -1; under_thrum() && nsec <= 1000000000; nsec += 1000000001) {
        struct timespec bad = in_ms(CLOCK_REALTIME, 5000);
        bad.tv_nsec = nsec;
        CHECK_EQ(pthread_timedjoin_np(held.thread, NULL, &bad), EINVAL);
        CHECK_EQ(pthread_clockjoin_np(held.thread, NULL, CLOCK_MONOTONIC, &bad), EINVAL);
    }
    struct timespec later = in_ms(CLOCK_REALTIME, 5000);
    CHECK_EQ(pthread_clockjoin_np(held.thread, NULL, CLOCK_PROCESS_CPUTIME_ID, &later), EINVAL);
    CHECK_EQ(pthread_clockjoin_np(held.thread, NULL, 12345, &later), EINVAL);
    finish_held(&held);
}

static void *join_itself(void *arg) {
    struct timespec later = in_ms(CLOCK_REALTIME, 3000);
    CHECK_EQ(pthread_join(pthread_self(), NULL), EDEADLK);
    CHECK_EQ(pthread_timedjoin_np(pthread_self(), NULL, &later), EDEADLK);
    later = in_ms(CLOCK_MONOTONIC, 3000);
    CHECK_EQ(pthread_clockjoin_np(pthread_self(), NULL, CLOCK_MONOTONIC, &later), EDEADLK);
    return arg;
}
static void self_join(void) {
    begin();
    CHECK_EQ(pthread_join(pthread_self(), NULL), EDEADLK);
    for (int i = 0; i < ROUNDS; i++)
        run_thread(join_itself, NULL);
}

// Two threads, each of which joins the other: one of them is told so, and then ends. (pthread_join(3) promises this
// EDEADLK and the EINVAL for a second joiner; POSIX does not, and glibc 2.36 hangs. So with the cache only.)
struct couple {
    pthread_t threads[2];
    int ready, errors[2];
};
static void *join_partner(void *p) {
    struct couple *couple = p;
    await_flag(&couple->ready);
    int me = pthread_equal(pthread_self(), couple->threads[1]);
    if (me == 1)
        sleep_ms(30); // the other one waits already
    couple->errors[me] = pthread_join(couple->threads[!me], NULL);
    return NULL;
}
static void mutual_join(void) {
    if (!under_thrum())
        return;
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        struct couple couple = {.errors = {-1, -1}};
        CHECK_OK(pthread_create(&couple.threads[0], NULL, join_partner, &couple));
        CHECK_OK(pthread_create(&couple.threads[1], NULL, join_partner, &couple));
        set_flag(&couple.ready);
        CHECK_OK(pthread_join(couple.threads[0], NULL));
        CHECK_EQ(couple.errors[0], 0);
        CHECK_EQ(couple.errors[1], EDEADLK);
    }
}

// A second joiner, and detaching, while one waits.
struct joiner {
    struct held *held;
    int waiting, error;
};
static void *wait_for_held(void *p) {
    struct joiner *joiner = p;
    set_flag(&joiner->waiting);
    joiner->error = pthread_join(joiner->held->thread, NULL);
    return NULL;
}
static void second_joiner(void) {
    if (!under_thrum())
        return;
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        struct held held;
        struct joiner joiner = {&held, 0, -1};
        pthread_t first;
        start_held(&held, NULL);
        CHECK_OK(pthread_create(&first, NULL, wait_for_held, &joiner));
        await_flag(&joiner.waiting);
        sleep_ms(30); // it stands in pthread_join
        struct timespec later = in_ms(CLOCK_REALTIME, 3000);
        CHECK_EQ(pthread_join(held.thread, NULL), EINVAL);
        CHECK_EQ(pthread_timedjoin_np(held.thread, NULL, &later), EINVAL);
        CHECK_EQ(pthread_tryjoin_np(held.thread, NULL), EBUSY); // it runs: said before anything else
        set_flag(&held.end);
        CHECK_OK(pthread_join(first, NULL));
        CHECK_EQ(joiner.error, 0);
    }
}

// A joiner that gave up leaves the thread to the next one.
static void joiner_after_timeout(void) {
    struct held held;
    struct timespec soon = in_ms(CLOCK_REALTIME, 10);
    begin();
    start_held(&held, &soon);
    CHECK_EQ(pthread_timedjoin_np(held.thread, NULL, &soon), ETIMEDOUT);
    struct joiner joiner = {&held, 0, -1};
    pthread_t next;
    CHECK_OK(pthread_create(&next, NULL, wait_for_held, &joiner));
    await_flag(&joiner.waiting);
    set_flag(&held.end);
    CHECK_OK(pthread_join(next, NULL));
    CHECK_EQ(joiner.error, 0);
}

// A joiner that is cancelled does so, too.
static void joiner_cancelled(void) {
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        struct held held;
        struct joiner joiner = {&held, 0, -1};
        pthread_t first;
        void *result;
        start_held(&held, &held);
        CHECK_OK(pthread_create(&first, NULL, wait_for_held, &joiner));
        await_flag(&joiner.waiting);
        sleep_ms(20);
        CHECK_OK(pthread_cancel(first));
        CHECK_OK(pthread_join(first, &result));
        CHECK(result == PTHREAD_CANCELED, "the cancelled joiner ended with %p", result);
        finish_held(&held);
    }
}

// ---- detach -------------------------------------------------------------------------------------------------------

static void detached_thread(void) {
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        struct held held;
        struct timespec later = in_ms(CLOCK_REALTIME, 3000);
        start_held(&held, NULL);
        CHECK_OK(pthread_detach(held.thread));
        CHECK_EQ(pthread_detach(held.thread), EINVAL);
        CHECK_EQ(pthread_join(held.thread, NULL), EINVAL);
        CHECK_EQ(pthread_timedjoin_np(held.thread, NULL, &later), EINVAL);
        set_flag(&held.end);
        sleep_ms(2);
    }
}

static void created_detached(void) {
    pthread_attr_t attr;
    begin();
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    for (int i = 0; i < ROUNDS; i++) {
        struct held held = {.end = 0};
        CHECK_OK(pthread_create(&held.thread, &attr, hold, &held));
        CHECK_EQ(pthread_detach(held.thread), EINVAL);
        CHECK_EQ(pthread_join(held.thread, NULL), EINVAL);
        CHECK_EQ(pthread_tryjoin_np(held.thread, NULL), EBUSY);
        set_flag(&held.end);
        sleep_ms(5);
    }
}

// Detaching after the end, and detaching oneself.
static int detached_ends;
static void *count_end(void *arg) {
    __atomic_fetch_add(&detached_ends, 1, __ATOMIC_RELEASE);
    return arg;
}
static void *detach_itself(void *arg) {
    CHECK_OK(pthread_detach(pthread_self()));
    CHECK_EQ(pthread_detach(pthread_self()), EINVAL);
    CHECK_EQ(pthread_join(pthread_self(), NULL), EINVAL);
    return count_end(arg);
}
static void detach_after_the_end(void) {
    enum { THREADS = 30 };
    begin();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, NULL, i % 2 ? count_end : detach_itself, NULL));
        if (i % 2) {
            if (i % 3)
                sleep_ms(2);
            CHECK_OK(pthread_detach(thread));
        }
    }
    for (int i = 0; i < 5000 && __atomic_load_n(&detached_ends, __ATOMIC_ACQUIRE) < THREADS; i++)
        sleep_ms(1);
    CHECK_EQ(detached_ends, THREADS);
}

// Detaching while a thread waits in pthread_join: undefined, and glibc then frees the thread twice. With the cache it
// is refused or has no effect: the joiner gets its answer.
static void detach_under_a_joiner(void) {
    if (!under_thrum())
        return;
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        struct held held;
        struct joiner joiner = {&held, 0, -1};
        pthread_t first;
        start_held(&held, NULL);
        CHECK_OK(pthread_create(&first, NULL, wait_for_held, &joiner));
        await_flag(&joiner.waiting);
        sleep_ms(30);
        int error = pthread_detach(held.thread);
        CHECK(error == EINVAL || error == 0, "detached under a joiner: %s", strerror(error));
        set_flag(&held.end);
        CHECK_OK(pthread_join(first, NULL));
        CHECK_EQ(joiner.error, 0);
    }
}

// Every kernel thread but main is idle, and all of them can run at once.
static void expect_listed_once(void) {
    const volatile struct thrum_cache_counters *c = counters();
    if (!c)
        return;
    CHECK_EQ(busy_threads(), 0);
    CHECK_EQ(c->live, 0);
    CHECK(c->idle > 0 && c->idle <= 64, "%d are idle", (int)c->idle);
    expect_threads_at_most((int)c->idle + 1);
    CHECK_EQ(kernel_threads(), c->idle + 1);
    uint64_t created = c->created, idle = c->idle;
    run_together((int)idle);
    CHECK_EQ(c->created, created);
    CHECK_EQ(c->idle, idle);
}

// A joiner and a detacher of a thread at its very end, at the same time: one of them gets it, the others are told so,
// and it is listed once. Rivals other than the thread's own end are undefined behaviour, so with the cache only.
enum { RACE_MS = 2000, RIVALS = 4, REFUSED = -1 };
struct race {
    pthread_barrier_t barrier;
    pthread_t thread;
    int over, spin, detach_itself, errors[RIVALS];
};

static void *end_in_race(void *p) {
    struct race *race = p;
    if (race->detach_itself)
        race->errors[3] = pthread_detach(pthread_self());
    for (volatile int i = 0; i < race->spin; i++) {
    }
    return p;
}
static void *join_in_race(void *p) {
    struct race *race = p;
    for (;;) {
        void *result = p;
        pthread_barrier_wait(&race->barrier);
        if (race->over)
            return NULL;
        race->errors[1] = pthread_join(race->thread, &result);
        CHECK(result == p, "the join gave %p", result);
        pthread_barrier_wait(&race->barrier);
    }
}
static void *detach_in_race(void *p) {
    struct race *race = p;
    for (;;) {
        pthread_barrier_wait(&race->barrier);
        if (race->over)
            return NULL;
        race->errors[2] = pthread_detach(race->thread);
        pthread_barrier_wait(&race->barrier);
    }
}
static void run_race(struct race *race, unsigned rivals) {
    CHECK_OK(pthread_create(&race->thread, NULL, end_in_race, race));
    if (rivals > 1)
        pthread_barrier_wait(&race->barrier);
    race->errors[0] = pthread_detach(race->thread);
    if (rivals > 1)
        pthread_barrier_wait(&race->barrier);
}
static void check_race(const struct race *race) {
    int winners = 0;
    for (int i = 0; i < RIVALS; i++) {
        int error = race->errors[i];
        CHECK(error == 0 || error == EINVAL || error == ESRCH || error == REFUSED, "rival %d: %s", i,
              strerror(error));
        winners += error == 0;
    }
    CHECK(winners > 0, "no rival has joined or detached the thread");
}
static void one_has_it(void) {
    // Detaching is libc's under bench/alternatives, and glibc's pthread_detach (at least to 2.36) looks at the thread again when
    // it has let it go (its bug 19951). Where many threads end, as with helpers, that memory may be gone: seen once in
    // thousands of runs.
    if (!mode_reuses())
        return;
    const unsigned rivals = under_thrum() ? 3 : 1;
    static struct race race;
    pthread_t others[2];
    begin();
    CHECK_OK(pthread_barrier_init(&race.barrier, NULL, rivals));
    if (rivals > 1) {
        CHECK_OK(pthread_create(&others[0], NULL, join_in_race, &race));
        CHECK_OK(pthread_create(&others[1], NULL, detach_in_race, &race));
    }
    int64_t end = now_ms() + RACE_MS;
    for (int round = 0; now_ms() < end; round++) {
        for (int i = 0; i < RIVALS; i++)
            race.errors[i] = REFUSED;
        race.spin = round % 32 * 100;
        race.detach_itself = rivals > 1 && round % 3 == 0;
        run_race(&race, rivals);
        wait_until_settled(rivals - 1);
        check_race(&race);
    }
    race.over = 1;
    if (rivals > 1) {
        pthread_barrier_wait(&race.barrier);
        CHECK_OK(pthread_join(others[0], NULL));
        CHECK_OK(pthread_join(others[1], NULL));
    }
    wait_until_settled(0);
    expect_listed_once();
}

// Joining what has been joined is undefined. The cache says ESRCH or EINVAL and touches no other thread.
static void joined_twice(void) {
    if (!under_thrum())
        return;
    begin();
    pthread_t first, other;
    struct held held;
    CHECK_OK(pthread_create(&first, NULL, do_nothing, NULL));
    CHECK_OK(pthread_join(first, NULL));
    int error = pthread_tryjoin_np(first, NULL);
    CHECK(error == ESRCH || error == EINVAL, "joined twice: %s", strerror(error));
    start_held(&held, &held);
    other = held.thread;
    if (!pthread_equal(first, other)) { // pthread_t values come round, too
        error = pthread_detach(first);
        CHECK(error == ESRCH || error == EINVAL, "detached after the join: %s", strerror(error));
    }
    finish_held(&held);
}

static const struct check_case cases[] = {
    {"results", results, HOLDS_WHEN_SKIPPED},
    {"main_is_joined", main_is_joined, HOLDS_WHEN_SKIPPED},
    {"busy_and_late", busy_and_late, FAILS_WHEN_SKIPPED},
    {"woken_by_the_end", woken_by_the_end, HOLDS_WHEN_SKIPPED},
    {"bad_times", bad_times, HOLDS_WHEN_SKIPPED},
    {"self_join", self_join, FAILS_WHEN_SKIPPED},
    {"mutual_join", mutual_join, FAILS_WHEN_SKIPPED},
    {"second_joiner", second_joiner, FAILS_WHEN_SKIPPED},
    {"joiner_after_timeout", joiner_after_timeout, HOLDS_WHEN_SKIPPED},
    {"joiner_cancelled", joiner_cancelled, HOLDS_WHEN_SKIPPED},
    {"detached_thread", detached_thread, FAILS_WHEN_SKIPPED},
    {"created_detached", created_detached, FAILS_WHEN_SKIPPED},
    {"detach_after_the_end", detach_after_the_end, HOLDS_WHEN_SKIPPED},
    {"detach_under_a_joiner", detach_under_a_joiner, HOLDS_WHEN_SKIPPED},
    {"one_has_it", one_has_it, FAILS_WHEN_SKIPPED},
    {"joined_twice", joined_twice, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
