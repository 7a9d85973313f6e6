// SPDX-License-Identifier: Apache-2.0
//
// Row lineage: what a thread may do. no_new_privs, seccomp, landlock, capabilities, securebits, user and group ids set
// for one thread only, keyrings. None of it may leak into a later thread, and none may be escaped by creating one.
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stddef.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "lineage.h"

static int as_error(long result) {
    return result == -1 ? errno : 0;
}

static long look_no_new_privs(void) {
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}
static int change_no_new_privs(void) {
    return as_error(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}
LINEAGE(no_new_privs, change_no_new_privs, look_no_new_privs, INHERITED)

// A filter under which getppid fails with an error of its own.
enum { FILTERED = EXFULL };

static const struct sock_fprog *filter(void) {
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | FILTERED),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    static struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return &program;
}

static long look_seccomp(void) {
    return syscall(SYS_getppid) == -1 && errno == FILTERED;
}
static int change_seccomp_by_prctl(void) {
    int error = change_no_new_privs();
    return error ? error : as_error(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter(), 0, 0));
}
static int change_seccomp(void) {
    int error = change_no_new_privs();
    return error ? error : as_error(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter()));
}
LINEAGE(seccomp_prctl, change_seccomp_by_prctl, look_seccomp, INHERITED)
LINEAGE(seccomp, change_seccomp, look_seccomp, INHERITED)

// A filter for all threads (TSYNC) can be set although a thread that had one of its own has ended: a thread that is
// kept must not stand in the way, as one that is gone would not.
static void *filter_itself(void *arg) {
    lineage_change(&seccomp_lineage);
    run_thread(do_nothing, NULL);
    return arg;
}

static void seccomp_for_all(void) {
    warm_threads(LINEAGE_IDLE);
    run_thread(filter_itself, NULL);
    CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, filter()), 0);
    lineage_expect(&seccomp_lineage, 1, "main, after all threads were filtered");
}

// landlock(7): the calling thread may make no FIFO any more.
static long look_landlock(void) {
    char fifo[64];
    snprintf(fifo, sizeof fifo, "/tmp/thrum-row-%d", (int)kernel_tid());
    if (mkfifo(fifo, 0600) == -1)
        return errno;
    unlink(fifo);
    return 0;
}
static int change_landlock(void) {
    enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, MAKE_FIFO = 1 << 10 };
    uint64_t handled = MAKE_FIFO;
    int error = change_no_new_privs();
    if (error)
        return error;
    long ruleset = syscall(CREATE_RULESET, &handled, sizeof handled, 0);
    if (ruleset == -1)
        return errno;
    error = as_error(syscall(RESTRICT_SELF, (int)ruleset, 0));
    close((int)ruleset);
    return error;
}
LINEAGE(landlock, change_landlock, look_landlock, INHERITED)

// The raw system calls: glibc's setresuid would be for all threads.
enum { OTHER_ID = 47123 };
static long look_uid(void) {
    return syscall(SYS_geteuid);
}
static int change_uid(void) {
    return as_error(syscall(SYS_setresuid, -1, OTHER_ID, -1));
}
static long look_gid(void) {
    return syscall(SYS_getegid);
}
static int change_gid(void) {
    return as_error(syscall(SYS_setresgid, -1, OTHER_ID, -1));
}
static long look_groups(void) {
    gid_t groups[64];
    long count = syscall(SYS_getgroups, 64, groups);
    return count == 1 && groups[0] == OTHER_ID;
}
static int change_groups(void) {
    const gid_t group = OTHER_ID;
    return as_error(syscall(SYS_setgroups, 1, &group));
}
static long look_fsuid(void) {
    return setfsuid((uid_t)-1);
}
static int change_fsuid(void) {
    if (geteuid() != 0)
        return EPERM;
    setfsuid(OTHER_ID);
    return 0;
}
static long look_fsgid(void) {
    return setfsgid((gid_t)-1);
}
static int change_fsgid(void) {
    if (geteuid() != 0)
        return EPERM;
    setfsgid(OTHER_ID);
    return 0;
}
LINEAGE(raw_setresuid, change_uid, look_uid, INHERITED)
LINEAGE(raw_setresgid, change_gid, look_gid, INHERITED)
LINEAGE(raw_setgroups, change_groups, look_groups, INHERITED)
LINEAGE(setfsuid, change_fsuid, look_fsuid, INHERITED)
LINEAGE(setfsgid, change_fsgid, look_fsgid, INHERITED)

// Capabilities: drops one of those that the thread has.
enum { DROPPED = CAP_SYS_TTY_CONFIG };
int capset(cap_user_header_t header, const cap_user_data_t data);

static long look_capability(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK_SYS(syscall(SYS_capget, &header, data));
    return data[0].effective >> DROPPED & 1;
}
static int drop_capability(int by_syscall) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK_SYS(syscall(SYS_capget, &header, data));
    if (!(data[0].effective >> DROPPED & 1))
        return EPERM;
    data[0].effective &= ~(1U << DROPPED);
    return as_error(by_syscall ? syscall(SYS_capset, &header, data) : capset(&header, data));
}
static int change_capability(void) {
    return drop_capability(0);
}
static int change_capability_by_syscall(void) {
    return drop_capability(1);
}
LINEAGE(capset, change_capability, look_capability, INHERITED)
LINEAGE(syscall_capset, change_capability_by_syscall, look_capability, INHERITED)

static long look_bounding(void) {
    return prctl(PR_CAPBSET_READ, DROPPED, 0, 0, 0);
}
static int change_bounding(void) {
    return as_error(prctl(PR_CAPBSET_DROP, DROPPED, 0, 0, 0));
}
LINEAGE(capability_bounding_set, change_bounding, look_bounding, INHERITED)

static long look_securebits(void) {
    return prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
}
static int change_securebits(void) {
    return as_error(prctl(PR_SET_SECUREBITS, look_securebits() | SECBIT_NO_SETUID_FIXUP, 0, 0, 0));
}
LINEAGE(securebits, change_securebits, look_securebits, INHERITED)

static long look_keepcaps(void) {
    return prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0);
}
static int change_keepcaps(void) {
    return as_error(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
}
LINEAGE(keepcaps, change_keepcaps, look_keepcaps, INHERITED)

static long look_session_keyring(void) {
    return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}
static int change_session_keyring(void) {
    return as_error(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
}
LINEAGE(session_keyring, change_session_keyring, look_session_keyring, INHERITED)

// A thread's own keyring ends with it. Where the creator has one, the kernel gives the new thread one as well.
static long look_thread_keyring(void) {
    return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_THREAD_KEYRING, 0) != -1;
}
static int change_thread_keyring(void) {
    return as_error(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_THREAD_KEYRING, 1));
}
LINEAGE(thread_keyring, change_thread_keyring, look_thread_keyring, INHERITED)

static const struct check_case cases[] = {
    LINEAGE_CASES(no_new_privs),
    LINEAGE_CASES(seccomp_prctl),
    LINEAGE_CASES(seccomp),
    {"seccomp_for_all", seccomp_for_all, FAILS_WHEN_SKIPPED},
    LINEAGE_CASES(landlock),
    LINEAGE_CASES(raw_setresuid),
    LINEAGE_CASES(raw_setresgid),
    LINEAGE_CASES(raw_setgroups),
    LINEAGE_CASES(setfsuid),
    LINEAGE_CASES(setfsgid),
    LINEAGE_CASES(capset),
    LINEAGE_CASES(syscall_capset),
    LINEAGE_CASES(capability_bounding_set),
    LINEAGE_CASES(securebits),
    LINEAGE_CASES(keepcaps),
    LINEAGE_CASES(session_keyring),
    LINEAGE_CASES(thread_keyring),
};
CHECK_MAIN(cases)
