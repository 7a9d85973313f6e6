// SPDX-License-Identifier: Apache-2.0
//
// Row stale, by kernel id: the id of a thread that has ended stands for no thread, in every call that takes one. Each
// call is made in three ways: after a join, before it, and after a detached thread has ended; and on a thread that
// runs, where it answers as ever.
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "child.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

enum { IDLE = 2 };

struct target {
    pid_t tid;
    clockid_t clock;
    int told, end;
};

static void *tell(void *p) {
    struct target *target = p;
    target->tid = kernel_tid();
    CHECK_OK(pthread_getcpuclockid(pthread_self(), &target->clock));
    set_flag(&target->told);
    await_flag(&target->end);
    return NULL;
}

// The kernel does not know a thread of this process by that id any more, and says so. Of another process's it may be by
// now: where pid_max is small and others create threads all the time, ids come round within a second.
static int is_ours(pid_t tid) {
    return syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}
static void await_gone(pid_t tid) {
    int64_t end = now_ms() + patience_ms(10);
    while (is_ours(tid) && now_ms() < end)
        sleep_ms(1);
    CHECK(!is_ours(tid) && errno == ESRCH, "thread %d is still there", (int)tid);
}
static int is_of_others(pid_t tid) {
    return syscall(SYS_tkill, tid, 0) == 0 && !is_ours(tid);
}

// ---- the calls --------------------------------------------------------------------------------------------------

// 0, or errno. Those that a running thread refuses for another reason have `alive` set to that.
struct call {
    const char *name;
    int (*make)(const struct target *target);
    int gone, alive;
};

static int result(long answer) {
    return answer == -1 ? errno : 0;
}

#define TID_CALL(name, call)                                                                                 \
    static int name(const struct target *target) {                                                           \
        pid_t tid = target->tid;                                                                             \
        (void)tid;                                                                                           \
        return result((long)(call));                                                                         \
    }

static struct sched_param param;
static struct timespec moment;
static struct rlimit limit;
static cpu_set_t cpus;
static char bytes[8], others[8];
static struct iovec local = {bytes, sizeof bytes}, remote = {others, sizeof others};
static timer_t timer;
static int made_timer;

TID_CALL(call_kill, kill(tid, 0))
TID_CALL(call_tgkill, tgkill(getpid(), tid, 0))
TID_CALL(call_sigqueue, sigqueue(tid, 0, (union sigval){0}))
TID_CALL(call_getscheduler, sched_getscheduler(tid))
TID_CALL(call_getparam, sched_getparam(tid, &param))
TID_CALL(call_setscheduler, sched_setscheduler(tid, SCHED_OTHER, &param))
TID_CALL(call_setparam, sched_setparam(tid, &param))
TID_CALL(call_getaffinity, sched_getaffinity(tid, sizeof cpus, &cpus))
TID_CALL(call_setaffinity, sched_setaffinity(tid, sizeof cpus, &cpus))
TID_CALL(call_rr_interval, sched_rr_get_interval(tid, &moment))
TID_CALL(call_getpriority, (errno = 0, getpriority(PRIO_PROCESS, (id_t)tid)))
TID_CALL(call_setpriority, setpriority(PRIO_PROCESS, (id_t)tid, 5))
TID_CALL(call_prlimit, prlimit(tid, RLIMIT_NOFILE, NULL, &limit))
TID_CALL(call_getpgid, getpgid(tid))
TID_CALL(call_getsid, getsid(tid))
TID_CALL(call_setpgid, setpgid(tid, 0))
TID_CALL(call_vm_readv, process_vm_readv(tid, &local, 1, &remote, 1, 0))
TID_CALL(call_vm_writev, process_vm_writev(tid, &local, 1, &remote, 1, 0))
TID_CALL(call_attach, ptrace(PTRACE_ATTACH, tid, NULL, NULL))

TID_CALL(sys_kill, syscall(SYS_kill, tid, 0))
TID_CALL(sys_tkill, syscall(SYS_tkill, tid, 0))
TID_CALL(sys_tgkill, syscall(SYS_tgkill, getpid(), tid, 0))
TID_CALL(sys_getscheduler, syscall(SYS_sched_getscheduler, tid))
TID_CALL(sys_setscheduler, syscall(SYS_sched_setscheduler, tid, SCHED_OTHER, &param))
TID_CALL(sys_getaffinity, syscall(SYS_sched_getaffinity, tid, sizeof cpus, &cpus))
TID_CALL(sys_getpriority, syscall(SYS_getpriority, PRIO_PROCESS, tid))
TID_CALL(sys_setpriority, syscall(SYS_setpriority, PRIO_PROCESS, tid, 5))
TID_CALL(sys_ioprio_get, syscall(SYS_ioprio_get, 1, tid))
TID_CALL(sys_ioprio_set, syscall(SYS_ioprio_set, 1, tid, 2 << 13 | 4))
TID_CALL(sys_prlimit, syscall(SYS_prlimit64, tid, RLIMIT_NOFILE, NULL, &limit))
TID_CALL(sys_getsid, syscall(SYS_getsid, tid))

static int sys_getattr(const struct target *target) {
    uint32_t attributes[14] = {sizeof attributes};
    return result(syscall(SYS_sched_getattr, target->tid, attributes, sizeof attributes, 0));
}
static int sys_setattr(const struct target *target) {
    uint32_t attributes[12] = {sizeof attributes};
    return result(syscall(SYS_sched_setattr, target->tid, attributes, 0));
}
static int sys_robust_list(const struct target *target) {
    void *head;
    size_t size;
    return result(syscall(SYS_get_robust_list, target->tid, &head, &size));
}
static int sys_capget(const struct target *target) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, target->tid};
    struct __user_cap_data_struct data[2];
    int error = result(syscall(SYS_capget, &header, data));
    CHECK_EQ(header.pid, target->tid);
    return error;
}
static int sys_rt_sigqueueinfo(const struct target *target) {
    siginfo_t info = {.si_code = SI_QUEUE};
    info.si_pid = getpid();
    return result(syscall(SYS_rt_sigqueueinfo, target->tid, 0, &info));
}
static int sys_rt_tgsigqueueinfo(const struct target *target) {
    siginfo_t info = {.si_code = SI_QUEUE};
    info.si_pid = getpid();
    return result(syscall(SYS_rt_tgsigqueueinfo, getpid(), target->tid, 0, &info));
}

static int owner(const struct target *target, int type) {
    int ends[2];
    CHECK_SYS(pipe(ends));
    struct f_owner_ex owner = {type, target->tid};
    int error = result(fcntl(ends[0], F_SETOWN_EX, &owner));
    CHECK_EQ(owner.pid, target->tid);
    close(ends[0]);
    close(ends[1]);
    return error;
}
static int owner_thread(const struct target *target) {
    return owner(target, F_OWNER_TID);
}
static int owner_process(const struct target *target) {
    return owner(target, F_OWNER_PID);
}
static int owner_plain(const struct target *target) {
    int ends[2];
    CHECK_SYS(pipe(ends));
    int error = result(fcntl(ends[0], F_SETOWN, target->tid));
    close(ends[0]);
    close(ends[1]);
    return error;
}

static int clock_time(const struct target *target) {
    return result(clock_gettime(target->clock, &moment));
}
static int clock_resolution(const struct target *target) {
    return result(clock_getres(target->clock, &moment));
}
static int clock_set(const struct target *target) {
    return result(clock_settime(target->clock, &moment));
}
static int clock_sleep(const struct target *target) {
    return clock_nanosleep(target->clock, 0, &(struct timespec){0, 1}, NULL);
}
static int sys_clock_time(const struct target *target) {
    return result(syscall(SYS_clock_gettime, target->clock, &moment));
}
static int sys_clock_resolution(const struct target *target) {
    return result(syscall(SYS_clock_getres, target->clock, &moment));
}
static int sys_clock_sleep(const struct target *target) {
    return result(syscall(SYS_clock_nanosleep, target->clock, 0, &(struct timespec){0, 1}, NULL));
}

static int timer_on(clockid_t clock, struct sigevent *event) {
    int error = result(timer_create(clock, event, &timer));
    if (error == 0)
        CHECK_SYS(timer_delete(timer));
    return error;
}
static struct sigevent event_for(const struct target *target) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = target->tid;
    return event;
}
static int timer_for_thread(const struct target *target) {
    struct sigevent event = event_for(target);
    int error = timer_on(CLOCK_MONOTONIC, &event);
    CHECK_EQ(event._sigev_un._tid, target->tid);
    return error;
}
static int timer_on_clock(const struct target *target) {
    return timer_on(target->clock, NULL);
}
static int sys_timer(const struct target *target) {
    struct sigevent event = event_for(target);
    int error = result(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &made_timer));
    if (error == 0)
        CHECK_SYS(syscall(SYS_timer_delete, made_timer));
    return error;
}

static const struct call tid_calls[] = {
    {"kill", call_kill, ESRCH, 0},
    {"tgkill", call_tgkill, ESRCH, 0},
    {"sigqueue", call_sigqueue, ESRCH, 0},
    {"sched_getscheduler", call_getscheduler, ESRCH, 0},
    {"sched_getparam", call_getparam, ESRCH, 0},
    {"sched_setscheduler", call_setscheduler, ESRCH, 0},
    {"sched_setparam", call_setparam, ESRCH, 0},
    {"sched_getaffinity", call_getaffinity, ESRCH, 0},
    {"sched_setaffinity", call_setaffinity, ESRCH, 0},
    {"sched_rr_get_interval", call_rr_interval, ESRCH, 0},
    {"getpriority", call_getpriority, ESRCH, 0},
    {"setpriority", call_setpriority, ESRCH, 0},
    {"prlimit", call_prlimit, ESRCH, 0},
    {"getpgid", call_getpgid, ESRCH, 0},
    {"getsid", call_getsid, ESRCH, 0},
    {"setpgid", call_setpgid, ESRCH, EINVAL},
    {"process_vm_readv", call_vm_readv, ESRCH, 0},
    {"process_vm_writev", call_vm_writev, ESRCH, 0},
    {"ptrace", call_attach, ESRCH, EPERM},
    {"F_SETOWN_EX for a thread", owner_thread, ESRCH, 0},
    {"F_SETOWN_EX for a process", owner_process, ESRCH, 0},
    {"F_SETOWN", owner_plain, ESRCH, 0},
};

static const struct call system_calls[] = {
    {"kill", sys_kill, ESRCH, 0},
    {"tkill", sys_tkill, ESRCH, 0},
    {"tgkill", sys_tgkill, ESRCH, 0},
    {"rt_sigqueueinfo", sys_rt_sigqueueinfo, ESRCH, 0},
    {"rt_tgsigqueueinfo", sys_rt_tgsigqueueinfo, ESRCH, 0},
    {"sched_getscheduler", sys_getscheduler, ESRCH, 0},
    {"sched_setscheduler", sys_setscheduler, ESRCH, 0},
    {"sched_getattr", sys_getattr, ESRCH, 0},
    {"sched_setattr", sys_setattr, ESRCH, 0},
    {"sched_getaffinity", sys_getaffinity, ESRCH, 0},
    {"getpriority", sys_getpriority, ESRCH, 0},
    {"setpriority", sys_setpriority, ESRCH, 0},
    {"ioprio_get", sys_ioprio_get, ESRCH, 0},
    {"ioprio_set", sys_ioprio_set, ESRCH, 0},
    {"prlimit64", sys_prlimit, ESRCH, 0},
    {"getsid", sys_getsid, ESRCH, 0},
    {"get_robust_list", sys_robust_list, ESRCH, 0},
    {"capget", sys_capget, ESRCH, 0},
    {"clock_gettime", sys_clock_time, EINVAL, 0},
    {"clock_getres", sys_clock_resolution, EINVAL, 0},
    {"clock_nanosleep", sys_clock_sleep, EINVAL, -1},
    {"timer_create", sys_timer, EINVAL, 0},
};

static const struct call clock_calls[] = {
    {"clock_gettime", clock_time, EINVAL, 0},    {"clock_getres", clock_resolution, EINVAL, 0},
    {"clock_settime", clock_set, EINVAL, EPERM}, {"clock_nanosleep", clock_sleep, EINVAL, -1},
    {"timer_create", timer_on_clock, EINVAL, 0}, {"SIGEV_THREAD_ID", timer_for_thread, EINVAL, 0},
};

// ---- on threads that have ended, and on one that runs ------------------------------------------------------------

enum way { JOINED, NOT_JOINED, DETACHED, WAYS };

static struct target start(pthread_t *thread, struct target *target) {
    *target = (struct target){0};
    CHECK_OK(pthread_create(thread, NULL, tell, target));
    await_flag(&target->told);
    return *target;
}

static struct target ended(enum way way, pthread_t *thread) {
    static struct target shared;
    struct target target = start(thread, &shared);
    if (way == DETACHED)
        CHECK_OK(pthread_detach(*thread));
    set_flag(&shared.end);
    if (way == JOINED)
        CHECK_OK(pthread_join(*thread, NULL));
    await_gone(target.tid);
    return target;
}

static void expect_gone(const struct call *calls, size_t count) {
    sched_getaffinity(0, sizeof cpus, &cpus);
    warm_threads(IDLE);
    for (enum way way = JOINED; way < WAYS; way++) {
        pthread_t thread;
        for (size_t i = 0; i < count; i++) {
            struct target target = ended(way, &thread);
            int error = is_of_others(target.tid) ? calls[i].gone : calls[i].make(&target);
            CHECK(error == calls[i].gone || is_of_others(target.tid),
                  "%s on a thread that ended (way %d): %s", calls[i].name, way,
                  error ? strerror(error) : "success");
            if (way == NOT_JOINED)
                CHECK_OK(pthread_join(thread, NULL));
        }
    }
}

// A sleep on its clock would last until it has used that much: it uses none.
static void expect_alive(const struct call *calls, size_t count) {
    pthread_t thread;
    static struct target shared;
    sched_getaffinity(0, sizeof cpus, &cpus);
    run_thread(do_nothing, NULL);
    struct target target = start(&thread, &shared);
    for (size_t i = 0; i < count; i++) {
        int error = calls[i].alive == -1 ? -1 : calls[i].make(&target);
        CHECK(error == calls[i].alive, "%s on a thread that runs: %s", calls[i].name, strerror(error));
    }
    set_flag(&shared.end);
    CHECK_OK(pthread_join(thread, NULL));
}

#define COUNT(array) sizeof(array) / sizeof *(array)

static void functions_gone(void) {
    expect_gone(tid_calls, COUNT(tid_calls));
}
static void system_calls_gone(void) {
    expect_gone(system_calls, COUNT(system_calls));
}
static void clocks_gone(void) {
    expect_gone(clock_calls, COUNT(clock_calls));
}
static void functions_alive(void) {
    expect_alive(tid_calls, COUNT(tid_calls));
}
static void system_calls_alive(void) {
    expect_alive(system_calls, COUNT(system_calls));
}
static void clocks_alive(void) {
    expect_alive(clock_calls, COUNT(clock_calls));
}

// ---- what is changed -----------------------------------------------------------------------------------------------

static void *own_priority(void *arg) {
    (void)arg;
    errno = 0;
    return (void *)(intptr_t)getpriority(PRIO_PROCESS, 0);
}

// A nice value for a thread that ended has no effect, also where its kernel thread has another job by now.
static void change_reaches_none(void) {
    pthread_t thread;
    static struct target later;
    void *seen;
    int usual = getpriority(PRIO_PROCESS, 0);
    warm_threads(IDLE);
    for (int i = 0; i < 20; i++) {
        struct target gone = ended(JOINED, &thread);
        struct target other = start(&thread, &later);
        if (other.tid != gone.tid && !is_of_others(gone.tid))
            CHECK(setpriority(PRIO_PROCESS, (id_t)gone.tid, 7) == -1 && errno == ESRCH, "thread %d has ended",
                  (int)gone.tid);
        errno = 0;
        CHECK_EQ(getpriority(PRIO_PROCESS, (id_t)other.tid), usual);
        set_flag(&later.end);
        CHECK_OK(pthread_join(thread, NULL));
        run_thread_result(own_priority, NULL, &seen);
        CHECK_EQ((intptr_t)seen, usual);
    }
}

// ---- descriptors of threads ------------------------------------------------------------------------------------------

static int open_thread(pid_t tid) {
    return (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);
}

static void pidfd_of_gone(void) {
    pthread_t thread;
    int own = open_thread(kernel_tid());
    if (own == -1)
        CANNOT("no pidfd of a thread: %s", strerror(errno));
    warm_threads(IDLE);
    struct target target = ended(JOINED, &thread);
    CHECK(open_thread(target.tid) == -1 && errno == ESRCH, "a thread that ended was opened");
}

static void *open_oneself(void *fd) {
    *(int *)fd = open_thread(kernel_tid());
    return NULL;
}

// The descriptor of a thread that runs says when it has ended, whether it or another thread opened it.
static void expect_readable(int fd) {
    struct pollfd poll_it = {fd, POLLIN, 0};
    CHECK(poll(&poll_it, 1, patience_ms(10)) == 1,
          "the thread has ended, and its descriptor does not say so");
    CHECK_SYS(close(fd));
}
static void pidfd_of_running(void) {
    pthread_t thread;
    static struct target shared;
    int fd;
    if (open_thread(kernel_tid()) == -1)
        CANNOT("no pidfd of a thread: %s", strerror(errno));
    warm_threads(IDLE);
    struct target target = start(&thread, &shared);
    fd = open_thread(target.tid);
    CHECK_SYS(fd);
    set_flag(&shared.end);
    CHECK_OK(pthread_join(thread, NULL));
    expect_readable(fd);
    run_thread(open_oneself, &fd);
    CHECK_SYS(fd);
    expect_readable(fd);
}

static const struct check_case cases[] = {
    {"functions_gone", functions_gone, FAILS_WHEN_SKIPPED},
    {"system_calls_gone", system_calls_gone, FAILS_WHEN_SKIPPED},
    {"clocks_gone", clocks_gone, FAILS_WHEN_SKIPPED},
    {"functions_alive", functions_alive, HOLDS_WHEN_SKIPPED},
    {"system_calls_alive", system_calls_alive, HOLDS_WHEN_SKIPPED},
    {"clocks_alive", clocks_alive, HOLDS_WHEN_SKIPPED},
    {"change_reaches_none", change_reaches_none, HOLDS_WHEN_SKIPPED},
    {"pidfd_of_gone", pidfd_of_gone, FAILS_WHEN_SKIPPED},
    {"pidfd_of_running", pidfd_of_running, HOLDS_WHEN_SKIPPED}, // a tie
};
CHECK_MAIN(cases)
