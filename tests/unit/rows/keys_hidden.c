// SPDX-License-Identifier: Apache-2.0
//
// Row keys: keys that were created by libc's own function, past any preloaded library, as by a module that has its own
// libraries searched first. Destructors run, and a new thread finds NULL.
#include "child.h"

static int (*create_key)(pthread_key_t *, void (*)(void *));
static int destroyed;
static pthread_key_t key;

static void destroy(void *value) {
    (void)value;
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
}

static void make_key(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    PREMISE(libc != NULL, "%s", dlerror());
    create_key = (int (*)(pthread_key_t *, void (*)(void *)))dlsym(libc, "pthread_key_create");
    PREMISE(create_key != NULL && (!under_thrum() || create_key != pthread_key_create), "not libc's own");
    CHECK_OK(create_key(&key, destroy));
}

static void *use(void *value) {
    CHECK_OK(pthread_setspecific(key, value));
    return NULL;
}
static void *look(void *arg) {
    (void)arg;
    return pthread_getspecific(key);
}

static void destructor_runs(void) {
    make_key();
    for (int i = 1; i < 4; i++) {
        run_thread(use, &key);
        CHECK_EQ(destroyed, i);
    }
}
static void next_finds_null(void) {
    void *seen;
    make_key();
    pid_t first = run_thread(use, &key);
    pid_t second = run_thread_result(look, NULL, &seen);
    CHECK(seen == NULL, "a value that another thread has set");
    expect_reused(first, second);
}
// Deleted and created again it is another key.
static void deleted(void) {
    void *seen;
    make_key();
    run_thread(use, &key);
    CHECK_OK(pthread_key_delete(key));
    CHECK_OK(create_key(&key, destroy));
    run_thread_result(look, NULL, &seen);
    CHECK(seen == NULL, "a value of a deleted key");
    CHECK_EQ(destroyed, 1);
}
static void *use_and_delete(void *value) {
    use(value);
    CHECK_OK(pthread_key_delete(key));
    return NULL;
}
static void deleted_by_user(void) {
    make_key();
    run_thread(use_and_delete, &key);
    CHECK_EQ(destroyed, 0);
}

static const struct check_case cases[] = {
    {"destructor_runs", destructor_runs, FAILS_WHEN_SKIPPED},
    {"next_finds_null", next_finds_null, FAILS_WHEN_SKIPPED},
    {"deleted", deleted, FAILS_WHEN_SKIPPED},
    {"deleted_by_user", deleted_by_user, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
