// SPDX-License-Identifier: Apache-2.0
//
// Row "keys": thread-specific values start as NULL in every thread; destructors run at each logical thread's end,
// PTHREAD_DESTRUCTOR_ITERATIONS rounds at most; keys may be deleted and made anew at any time. Also C11's tss_*.

#include <limits.h>
#include <threads.h>

#include "check.h"

enum { MANY = 200 }; // well beyond the 32 that glibc keeps in the thread's descriptor

static pthread_key_t key, other_key, keys[MANY];
static int calls, other_calls;
static int value, other_value;

static _Thread_local int of_the_thread;

static void *look_and_set(void *arg) {
    CHECK(pthread_getspecific(key) == NULL, "the key has the previous thread's value");
    CHECK_OK(pthread_setspecific(key, &value));
    CHECK(pthread_getspecific(key) == &value, "the value was not kept");
    return arg;
}

static void no_destructor(void) {
    CHECK_OK(pthread_key_create(&key, NULL));
    pid_t first = run_thread(look_and_set, NULL), second = run_thread(look_and_set, NULL);
    expect_reused(first, second);
}

static void count_call(void *p) {
    CHECK(p == &value, "the destructor got another value");
    CHECK(pthread_getspecific(key) == NULL, "the value is still set in its destructor");
    CHECK_EQ(of_the_thread, 5); // the thread's variables are still its own
    calls++;
}

static void *look_set_and_mark(void *arg) {
    of_the_thread = 5;
    return look_and_set(arg);
}

static void *exit_after_set(void *arg) {
    look_set_and_mark(arg);
    pthread_exit(arg);
}

static void destructor_runs_at_each_end(void) {
    CHECK_OK(pthread_key_create(&key, count_call));
    pid_t last = 0;
    for (int i = 1; i <= 6; i++) {
        pid_t tid = run_thread(i % 2 ? look_set_and_mark : exit_after_set, NULL);
        CHECK_EQ(calls, i);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
}

static void *set_and_clear(void *arg) {
    CHECK_OK(pthread_setspecific(key, &value));
    CHECK_OK(pthread_setspecific(key, NULL));
    return arg;
}

static void no_call_for_null(void) {
    CHECK_OK(pthread_key_create(&key, count_call));
    run_thread(set_and_clear, NULL);
    run_thread(do_nothing, NULL);
    CHECK_EQ(calls, 0);
}

static void set_again(void *p) {
    calls++;
    CHECK_OK(pthread_setspecific(key, p));
}

// A destructor that never gives up: so many rounds and no more, and the rest is forgotten.
static void rounds_are_limited(void) {
    CHECK_OK(pthread_key_create(&key, set_again));
    pid_t last = 0;
    for (int i = 1; i <= 3; i++) {
        pid_t tid = run_thread(look_and_set, NULL);
        CHECK_EQ(calls, i * PTHREAD_DESTRUCTOR_ITERATIONS);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
}

static void set_the_other(void *p) {
    (void)p;
    calls++;
    if (pthread_getspecific(other_key) == NULL)
        CHECK_OK(pthread_setspecific(other_key, &other_value));
}

static void count_other(void *p) {
    CHECK(p == &other_value, "wrong value");
    other_calls++;
}

static void *look_both(void *arg) {
    CHECK(pthread_getspecific(other_key) == NULL, "the other key has a value");
    return look_and_set(arg);
}

// The first key's destructor gives the second a value, whichever stands first.
static void destructor_sets_another_key(void) {
    for (int swapped = 0; swapped < 2; swapped++) {
        calls = other_calls = 0;
        if (swapped)
            CHECK_OK(pthread_key_create(&other_key, count_other));
        CHECK_OK(pthread_key_create(&key, set_the_other));
        if (!swapped)
            CHECK_OK(pthread_key_create(&other_key, count_other));
        pid_t first = run_thread(look_both, NULL), second = run_thread(look_both, NULL);
        expect_reused(first, second);
        CHECK_EQ(calls, 2);
        CHECK_EQ(other_calls, 2);
        CHECK_OK(pthread_key_delete(key));
        CHECK_OK(pthread_key_delete(other_key));
    }
}

static void leave_a_value(void *p) {
    (void)p;
    CHECK_OK(pthread_setspecific(other_key, &other_value));
}

static void *set_in_destructor(void *arg) {
    CHECK_OK(pthread_setspecific(key, &value));
    return arg;
}

static void *look_other(void *arg) {
    CHECK(pthread_getspecific(other_key) == NULL, "a value set in a destructor survived the thread");
    return arg;
}

// A value of a key without destructor, set in the last moment.
static void value_set_while_ending(void) {
    CHECK_OK(pthread_key_create(&key, leave_a_value));
    CHECK_OK(pthread_key_create(&other_key, NULL));
    pid_t first = run_thread(set_in_destructor, NULL), second = run_thread(look_other, NULL);
    expect_reused(first, second);
}

static int seen[MANY];

static void count_many(void *p) {
    seen[(int *)p - seen]++;
}

static void *use_many(void *arg) {
    for (int i = 0; i < MANY; i++) {
        CHECK(pthread_getspecific(keys[i]) == NULL, "key %d has a value", i);
        CHECK_OK(pthread_setspecific(keys[i], &seen[i]));
    }
    return arg;
}

static void many_keys(void) {
    for (int i = 0; i < MANY; i++)
        CHECK_OK(pthread_key_create(&keys[i], i % 2 ? count_many : NULL));
    pid_t first = run_thread(use_many, NULL), second = run_thread(use_many, NULL);
    expect_reused(first, second);
    for (int i = 0; i < MANY; i++)
        CHECK(seen[i] == (i % 2 ? 2 : 0), "key %d: %d calls", i, seen[i]);
}

static void *look_many(void *arg) {
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_getspecific(keys[i]) == NULL, "key %d has a value", i);
    return arg;
}

// Deleted while the kernel thread is idle: the new key of the same number is another key.
static void deleted_and_made_anew(void) {
    for (int i = 0; i < MANY; i++)
        CHECK_OK(pthread_key_create(&keys[i], NULL));
    pid_t first = run_thread(use_many, NULL);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(pthread_key_delete(keys[i]));
    for (int i = 0; i < MANY; i++)
        CHECK_OK(pthread_key_create(&keys[i], count_many));
    pid_t second = run_thread(look_many, NULL);
    expect_reused(first, second);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(seen[i], 0);
}

static void *replace_own_key(void *arg) {
    CHECK_OK(pthread_key_create(&key, set_again));
    CHECK_OK(pthread_setspecific(key, &value));
    CHECK_OK(pthread_key_delete(key));
    pthread_key_t again;
    CHECK_OK(pthread_key_create(&again, set_again));
    CHECK(pthread_getspecific(again) == NULL, "a new key has a value");
    CHECK_OK(pthread_key_delete(again));
    return arg;
}

// Deleted while it has a value: no destructor, then or later.
static void deleted_by_the_thread(void) {
    pid_t first = run_thread(replace_own_key, NULL), second = run_thread(replace_own_key, NULL);
    expect_reused(first, second);
    CHECK_EQ(calls, 0);
}

static void delete_key(void *p) {
    (void)p;
    calls++;
    CHECK_OK(pthread_key_delete(key));
    CHECK_OK(pthread_key_create(&key, NULL));
    CHECK_OK(pthread_setspecific(key, &value));
}

// The list of keys changes under the loop over it.
static void destructor_replaces_its_key(void) {
    CHECK_OK(pthread_key_create(&key, delete_key));
    pid_t first = run_thread(look_and_set, NULL);
    CHECK_EQ(calls, 1);
    pid_t second = run_thread(look_and_set, NULL);
    expect_reused(first, second);
}

// A key that a destructor creates has its own run in the same round, and a value without a destructor is gone when the
// round has come by: as libc does it.
static pthread_key_t plain_key, late_key;
static char order[32];
static void append(char what) {
    order[strlen(order)] = what;
}
static void run_each_round(void *p) {
    append('r');
    CHECK_OK(pthread_setspecific(key, p));
}
static void run_late(void *p) {
    (void)p;
    append('l');
}
static void create_late(void *p) {
    append(pthread_getspecific(plain_key) == NULL ? 'c' : '!');
    if (late_key == 0)
        CHECK_OK(pthread_key_create(&late_key, run_late));
    CHECK_OK(pthread_setspecific(late_key, p));
}
static pthread_key_t creating_key;
static void *use_three(void *arg) {
    CHECK_OK(pthread_setspecific(key, &value));
    CHECK_OK(pthread_setspecific(plain_key, &value));
    CHECK_OK(pthread_setspecific(creating_key, &value));
    return arg;
}
static void created_in_a_round(void) {
    CHECK_OK(pthread_key_create(&key, run_each_round));
    CHECK_OK(pthread_key_create(&plain_key, NULL));
    CHECK_OK(pthread_key_create(&creating_key, create_late));
    pid_t last = 0;
    for (int i = 0; i < 3; i++) {
        memset(order, 0, sizeof order);
        pid_t tid = run_thread(use_three, NULL);
        CHECK(strcmp(order, "rclrrr") == 0, "destructors ran in the order %s", order);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
}

static void errors(void) {
    CHECK_OK(pthread_key_create(&key, NULL));
    CHECK_OK(pthread_key_delete(key));
    CHECK_EQ(pthread_key_delete(key), EINVAL);
    CHECK_EQ(pthread_setspecific(key, &value), EINVAL);
    CHECK_EQ(pthread_key_delete(PTHREAD_KEYS_MAX), EINVAL);
    CHECK_EQ(pthread_setspecific(PTHREAD_KEYS_MAX + 5, &value), EINVAL);
    CHECK(pthread_getspecific(PTHREAD_KEYS_MAX + 5) == NULL, "a value out of nothing");
}

static void as_many_as_promised(void) {
    pthread_key_t all[PTHREAD_KEYS_MAX + 1];
    int made = 0, error = 0;
    while (made <= PTHREAD_KEYS_MAX && (error = pthread_key_create(&all[made], NULL)) == 0)
        made++;
    CHECK_EQ(error, EAGAIN);
    CHECK(made >= PTHREAD_KEYS_MAX - 8, "only %d keys", made);
    for (int i = 0; i < made; i++)
        CHECK_OK(pthread_setspecific(all[i], &value));
    run_thread(do_nothing, NULL);
    for (int i = 0; i < made; i++)
        CHECK(pthread_getspecific(all[i]) == &value, "main's value of key %d is lost", i);
    for (int i = 0; i < made; i++)
        CHECK_OK(pthread_key_delete(all[i]));
}

static tss_t tss;
static pid_t tss_tid;

static void tss_again(void *p) {
    calls++;
    CHECK_EQ(tss_set(tss, p), thrd_success);
}

static int use_tss(void *arg) {
    (void)arg;
    tss_tid = kernel_tid();
    CHECK(tss_get(tss) == NULL, "the previous thread's value");
    CHECK_EQ(tss_set(tss, &value), thrd_success);
    CHECK(tss_get(tss) == &value, "not kept");
    return 0;
}

static void c11_tss(void) {
    CHECK_EQ(tss_create(&tss, tss_again), thrd_success);
    pid_t last = 0;
    for (int i = 1; i <= 3; i++) {
        int64_t busy = busy_threads();
        thrd_t thread;
        CHECK_EQ(thrd_create(&thread, use_tss, NULL), thrd_success);
        CHECK_EQ(thrd_join(thread, NULL), thrd_success);
        wait_until_settled(busy);
        CHECK_EQ(calls, i * TSS_DTOR_ITERATIONS);
        if (last)
            expect_reused(last, tss_tid);
        last = tss_tid;
    }
    tss_delete(tss);
}

static void *start_another(void *arg) {
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
    CHECK_OK(pthread_join(thread, NULL));
    return arg;
}

static void start_from_destructor(void *p) {
    (void)p;
    calls++;
    start_another(NULL);
}

static void destructor_starts_a_thread(void) {
    CHECK_OK(pthread_key_create(&key, start_from_destructor));
    for (int i = 1; i <= 5; i++) {
        run_thread(look_and_set, NULL);
        CHECK_EQ(calls, i);
    }
}

static const struct check_case cases[] = {
    {"no-destructor", no_destructor, FAILS_WHEN_SKIPPED},
    {"destructor-runs-at-each-end", destructor_runs_at_each_end, FAILS_WHEN_SKIPPED},
    {"no-call-for-null", no_call_for_null, HOLDS_WHEN_SKIPPED},
    {"rounds-are-limited", rounds_are_limited, FAILS_WHEN_SKIPPED},
    {"destructor-sets-another-key", destructor_sets_another_key, FAILS_WHEN_SKIPPED},
    {"value-set-while-ending", value_set_while_ending, HOLDS_WHEN_SKIPPED},
    {"many-keys", many_keys, FAILS_WHEN_SKIPPED},
    {"deleted-and-made-anew", deleted_and_made_anew, HOLDS_WHEN_SKIPPED},
    {"deleted-by-the-thread", deleted_by_the_thread, HOLDS_WHEN_SKIPPED},
    {"destructor-replaces-its-key", destructor_replaces_its_key, FAILS_WHEN_SKIPPED},
    {"destructor-starts-a-thread", destructor_starts_a_thread, FAILS_WHEN_SKIPPED},
    {"created-in-a-round", created_in_a_round, FAILS_WHEN_SKIPPED},
    {"errors", errors, HOLDS_WHEN_SKIPPED},
    {"as-many-as-promised", as_many_as_promised, HOLDS_WHEN_SKIPPED},
    {"c11-tss", c11_tss, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
