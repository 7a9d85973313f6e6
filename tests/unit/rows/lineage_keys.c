// SPDX-License-Identifier: Apache-2.0
//
// Row lineage: keyrings. A thread's own is made by the first call that names it, goes with the thread, and is not
// inherited: a thread that is created by one that has a keyring has an empty one of its own.
#include <linux/keyctl.h>

#include "lineage.h"
#include "raw.h"

static int as_error(long result) {
    return result == -1 ? errno : 0;
}

// Looked at by the program's own instruction, so that looking changes nothing for the cache.
static long own_keyring(long which) {
    return raw_call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, which, 0, 0, 0, 0);
}
static long look_thread(void) {
    return own_keyring(KEY_SPEC_THREAD_KEYRING) > 0;
}
static int change_by_add_key(void) {
    return as_error(syscall(SYS_add_key, "user", "thrum:row", "secret", 6L, (long)KEY_SPEC_THREAD_KEYRING));
}
static int change_by_keyctl(void) {
    return as_error(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, (long)KEY_SPEC_THREAD_KEYRING, 1L));
}
LINEAGE(add_key, change_by_add_key, look_thread, INHERITED)
LINEAGE(keyctl, change_by_keyctl, look_thread, INHERITED)

// request_key finds a key in the session's keyring, and links it into the one that is named.
static int change_by_request_key(void) {
    if (syscall(SYS_add_key, "user", "thrum:shared", "known", 5L, (long)KEY_SPEC_USER_KEYRING) == -1)
        return errno;
    return as_error(syscall(SYS_request_key, "user", "thrum:shared", NULL, (long)KEY_SPEC_THREAD_KEYRING));
}
LINEAGE(request_key, change_by_request_key, look_thread, INHERITED)

static void *find_secret(void *arg) {
    (void)arg;
    return (void *)raw_call(SYS_request_key, (long)"user", (long)"thrum:row", 0, 0, 0, 0);
}
static void *keep_secret(void *arg) {
    int error = change_by_add_key();
    if (error)
        CANNOT("add_key: %s", strerror(error));
    return arg;
}
static void secret_of_ended_thread(void) {
    void *found;
    warm_threads(LINEAGE_IDLE);
    run_thread(keep_secret, NULL);
    for (int i = 0; i < LINEAGE_LOOKS; i++) {
        run_thread_result(find_secret, NULL, &found);
        CHECK((long)found < 0, "a thread finds the key of one that has ended");
    }
}

static const struct check_case cases[] = {
    LINEAGE_CASES(add_key),
    LINEAGE_CASES(keyctl),
    LINEAGE_CASES(request_key),
    {"secret_of_ended_thread", secret_of_ended_thread, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
