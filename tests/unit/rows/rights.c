// SPDX-License-Identifier: Apache-2.0
//
// Row rights: when the main thread, whose threads have ended, gives up rights by a call that concerns itself alone, no
// kernel thread may be left that still has them.
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

#include "child.h"

enum { IDLE = 4, NOBODY = 65534 };

static int as_error(long result) {
    return result == -1 ? errno : 0;
}

static int set_no_new_privs(void) {
    return as_error(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}
static int set_no_new_privs_by_number(void) {
    return as_error(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}
static int drop_bounding(void) {
    return as_error(prctl(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0));
}
static int clear_ambient(void) {
    return as_error(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
}
static int set_securebits(void) {
    return as_error(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0));
}

int capset(void *header, const void *data);
static int no_capabilities(int (*set)(struct __user_cap_header_struct *, struct __user_cap_data_struct *)) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    return as_error(set(&header, none));
}
static int by_function(struct __user_cap_header_struct *header, struct __user_cap_data_struct *data) {
    return capset(header, data);
}
static int by_number(struct __user_cap_header_struct *header, struct __user_cap_data_struct *data) {
    return (int)syscall(SYS_capset, header, data);
}
static int drop_capabilities(void) {
    return no_capabilities(by_function);
}
static int drop_capabilities_by_number(void) {
    return no_capabilities(by_number);
}

static int set_own_uid(void) {
    return as_error(syscall(SYS_setresuid, -1, NOBODY, -1));
}
static int set_own_groups(void) {
    return as_error(syscall(SYS_setgroups, 0, NULL));
}
static int set_file_uid(void) {
    setfsuid(NOBODY);
    return (uid_t)setfsuid((uid_t)-1) == NOBODY ? 0 : EPERM;
}
static int restrict_self(void) {
    struct landlock_ruleset_attr rules = {.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
    long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (fd == -1)
        return errno;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    run_together(IDLE); // once more: the call above has ended those that were there
    int error = as_error(syscall(SYS_landlock_restrict_self, fd, 0));
    return error;
}
static int join_session_keyring(void) {
    return as_error(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
}
static int new_network(void) {
    return as_error(unshare(CLONE_NEWNET));
}

static void give_up(int (*change)(void)) {
    int error = change();
    if (error)
        CANNOT("%s", strerror(error));
}

static void none_is_left(int (*change)(void)) {
    warm_threads(IDLE);
    give_up(change);
    CHECK_EQ(kernel_threads(), 1);
    run_together(IDLE);
}

#define NONE_IS_LEFT(change)                                                                                 \
    static void after_##change(void) {                                                                       \
        none_is_left(change);                                                                                \
    }
NONE_IS_LEFT(set_no_new_privs)
NONE_IS_LEFT(set_no_new_privs_by_number)
NONE_IS_LEFT(drop_bounding)
NONE_IS_LEFT(clear_ambient)
NONE_IS_LEFT(set_securebits)
NONE_IS_LEFT(drop_capabilities)
NONE_IS_LEFT(drop_capabilities_by_number)
NONE_IS_LEFT(set_own_uid)
NONE_IS_LEFT(set_own_groups)
NONE_IS_LEFT(set_file_uid)
NONE_IS_LEFT(restrict_self)
NONE_IS_LEFT(join_session_keyring)
NONE_IS_LEFT(new_network)

// Threads that have ended and are not joined yet are no threads to the kernel either. Their results are still there.
static void ended_not_joined(int (*change)(void)) {
    pthread_t threads[IDLE];
    for (intptr_t i = 0; i < IDLE; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, do_nothing, (void *)(i + 1)));
    sleep_ms(50);
    give_up(change);
    expect_threads_at_most(1);
    for (intptr_t i = 0; i < IDLE; i++) {
        void *result;
        CHECK_OK(pthread_join(threads[i], &result));
        CHECK_EQ((intptr_t)result, i + 1);
    }
}
static void ended_threads_have_no_rights(void) {
    ended_not_joined(set_no_new_privs);
}
static int new_user(void) {
    return as_error(unshare(CLONE_NEWUSER));
}
static void ended_threads_do_not_count(void) {
    ended_not_joined(new_user);
}

// A busy thread keeps its rights, as without thrum, until it ends.
static void *wait_for_flag(void *flag) {
    await_flag(flag);
    return NULL;
}
static void at_work(void) {
    pthread_t joinable, detached;
    int flag = 0;
    CHECK_OK(pthread_create(&joinable, NULL, wait_for_flag, &flag));
    CHECK_OK(pthread_create(&detached, NULL, wait_for_flag, &flag));
    CHECK_OK(pthread_detach(detached));
    give_up(set_no_new_privs);
    CHECK_EQ(kernel_threads(), 3);
    set_flag(&flag);
    CHECK_OK(pthread_join(joinable, NULL));
    expect_threads_at_most(1);
}

// Nor what such a thread has created, even where it has changed something else of its own.
static void *create_after(void *flag) {
    await_flag(flag);
    CHECK_SYS(prctl(PR_SET_TIMERSLACK, 12345, 0, 0, 0));
    run_together(2);
    return NULL;
}
static void children_of_one_at_work(void) {
    pthread_t thread;
    int flag = 0;
    CHECK_OK(pthread_create(&thread, NULL, create_after, &flag));
    give_up(set_no_new_privs);
    set_flag(&flag);
    CHECK_OK(pthread_join(thread, NULL));
    expect_threads_at_most(1);
}

// What is created afterwards has the new rights, and is reused.
static void *own_privs(void *arg) {
    (void)arg;
    return (void *)(intptr_t)prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}
static void reused_afterwards(void) {
    void *seen;
    warm_threads(IDLE);
    give_up(set_no_new_privs);
    pid_t first = run_thread_result(own_privs, NULL, &seen);
    CHECK_EQ((intptr_t)seen, 1);
    expect_reused(first, run_thread_result(own_privs, NULL, &seen));
    CHECK_EQ((intptr_t)seen, 1);
}

// A thread other than main that changes its own rights, again and again, as file servers do, does not cost main its
// idle threads: they may do no more than main.
static void *change_own(void *arg) {
    for (int i = 0; i < 10; i++) {
        setfsuid(NOBODY);
        setfsuid(0);
    }
    return arg;
}
static void other_thread_changes_its_own(void) {
    warm_threads(IDLE);
    run_thread(change_own, NULL);
    const volatile struct thrum_cache_counters *c = counters();
    PREMISE(!c || c->idle >= IDLE - 1, "%d are idle", (int)c->idle);
}

// No file id is -1: programs only ask with it.
static void *ask_for_file_ids(void *arg) {
    setfsuid((uid_t)-1);
    setfsgid((gid_t)-1);
    syscall(SYS_setfsuid, -1);
    syscall(SYS_setfsgid, -1);
    return arg;
}
static void asking_changes_nothing(void) {
    warm_threads(IDLE);
    pid_t first = run_thread(ask_for_file_ids, NULL);
    expect_reused(first, run_thread(do_nothing, NULL));
    const volatile struct thrum_cache_counters *c = counters();
    int idle = c ? (int)c->idle : 0;
    ask_for_file_ids(NULL);
    if (c)
        CHECK_EQ((int)c->idle, idle);
}

#define CASE(name)                                                                                           \
    { #name, name, FAILS_WHEN_SKIPPED }
static const struct check_case cases[] = {
    CASE(after_set_no_new_privs),
    CASE(after_set_no_new_privs_by_number),
    CASE(after_drop_bounding),
    CASE(after_clear_ambient),
    CASE(after_set_securebits),
    CASE(after_drop_capabilities),
    CASE(after_drop_capabilities_by_number),
    CASE(after_set_own_uid),
    CASE(after_set_own_groups),
    CASE(after_set_file_uid),
    CASE(after_restrict_self),
    CASE(after_join_session_keyring),
    {"after_new_network", after_new_network, HOLDS_WHEN_SKIPPED}, // row lineage, too
    CASE(ended_threads_have_no_rights),
    {"ended_threads_do_not_count", ended_threads_do_not_count, HOLDS_WHEN_SKIPPED}, // likewise
    CASE(at_work),
    CASE(children_of_one_at_work),
    {"reused_afterwards", reused_afterwards, HOLDS_WHEN_SKIPPED},
    {"other_thread_changes_its_own", other_thread_changes_its_own, HOLDS_WHEN_SKIPPED},
    {"asking_changes_nothing", asking_changes_nothing, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
