// SPDX-License-Identifier: Apache-2.0
/* A program that has all keys of pthread_key_create for itself while runtimes of each mode begin and end. What needs one says so
 * by an error, and works when one is free. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>

#define EXPECT(value, expression)                                                                            \
    do {                                                                                                     \
        const int is = (expression);                                                                         \
        if (is != (value)) {                                                                                 \
            fprintf(stderr, "%d: %s: %d, not %d\n", __LINE__, #expression, is, (value));                     \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

static const enum thrum_preempt_mode modes[] = {THRUM_PREEMPT_NONE, THRUM_PREEMPT_YIELD, THRUM_PREEMPT_LEND,
                                                THRUM_PREEMPT_OWN_TLS, THRUM_PREEMPT_KLT};

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static unsigned count;

static void take_all(void) {
    while (count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[count], NULL) == 0)
        count++;
    EXPECT(EAGAIN, pthread_key_create(&keys[0], NULL));
}

static int lock_error;

static void *nothing(void *arg) {
    return arg;
}

static void *try_lock(void *arg) {
    lock_error = thrum_kthread_lock();
    return arg;
}

static void run(void *(*fn)(void *), const thrum_attr_t *attr) {
    thrum_t thread;
    void *result = NULL;
    EXPECT(0, thrum_spawn(&thread, attr, fn, &lock_error));
    EXPECT(0, thrum_join(thread, &result));
    EXPECT(1, result == &lock_error);
}

/* A new child on the block that the one before it has had. */
static void run_in_turn(void) {
    for (int i = 0; i < 3; i++)
        run(nothing, NULL);
}

static void begin(enum thrum_preempt_mode mode) {
    const struct thrum_config config = {.workers = 2, .preempt = {.mode = mode}};
    EXPECT(0, thrum_init(&config));
}

static void without(enum thrum_preempt_mode mode) {
    thrum_attr_t attr;
    thrum_t thread;
    thrum_attr_init(&attr);
    EXPECT(0, thrum_attr_set_flags(&attr, THRUM_SPAWN_OWN_KTHREAD));
    begin(mode);
    run_in_turn();
    EXPECT(EAGAIN, thrum_spawn(&thread, &attr, nothing, NULL));
    run(try_lock, NULL);
    EXPECT(EAGAIN, lock_error);
    run_in_turn();
    EXPECT(0, thrum_fini());
}

static void with(enum thrum_preempt_mode mode) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT(0, thrum_attr_set_flags(&attr, THRUM_SPAWN_OWN_KTHREAD));
    begin(mode);
    run_in_turn();
    run(nothing, &attr);
    run(try_lock, NULL);
    EXPECT(0, lock_error);
    run_in_turn();
    EXPECT(0, thrum_fini());
}

int main(void) {
    take_all();
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
        without(modes[i]);
    EXPECT(0, pthread_key_delete(keys[--count]));
    EXPECT(0, pthread_key_delete(keys[--count]));
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
        with(modes[i]);
    return 0;
}
