// SPDX-License-Identifier: Apache-2.0
/* Making processes. A child hangs on the kernel thread that made it: its parent-death signal is sent when that
 * thread dies, a wait for it may be for that thread's children only, a tracer is a thread. So a thread that made
 * a child retires at its end. And where a limit on threads stands in the way of a child, idle threads go first.
 * Rows fork, kernel-ties, eagain. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include "cache.h"
#include "os/syscall.h"

/* --- fork --------------------------------------------------------------------------------------------- */

/* Between the handlers before and after a fork. */
static __thread bool forked_by_main;
static __thread sigbits fork_mask;

static void before(void) {
    fork_mask = signals_mask_set(SIGBITS_ALL); /* a handler that forks must not come between */
    tls_fork_before();
    forked_by_main = cache_in_main();
}

static void in_parent(void) {
    tls_fork_parent();
    signals_mask_set(fork_mask);
    kthread_tie_sigsafe_by(RETIRE_CHILD, because_name("fork"));
}

void process_child_begins(bool by_main) {
    cache_fork_child();
    create_fork_child();
    clock_fork_child();
    inherit_fork_child();
    kthread_fork_child(by_main);
}

static void in_child(void) {
    process_child_begins(forked_by_main);
    signals_mask_set(fork_mask);
}

/* Also for those that libc forks from within (forkpty, daemon). */
bool process_watch_forks(void) {
    return pthread_atfork(before, in_parent, in_child) == 0;
}

/* Handlers of other libraries, whose constructors may run before ours, come after ours: in the child they may
 * create threads. */
INTERPOSE int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso) {
    cache_early();
    return REAL(__register_atfork)(prepare, parent, child, dso);
}

bool process_make_room(void) {
    int saved = errno;
    bool made = !skipped(ROW_EAGAIN) && kthread_cull() > 0;
    errno = saved;
    return made;
}

INTERPOSE pid_t fork(void) {
    pid_t pid = REAL(fork)();
    if (pid == -1 && errno == EAGAIN && process_make_room())
        pid = REAL(fork)();
    return pid;
}

/* Runs no handlers, and its child may only make calls that a signal handler may make; it is set right all the
 * same, so that it can end like any process. */
INTERPOSE pid_t _Fork(void) {
    before();
    pid_t pid = REAL(_Fork)();
    int error = errno;
    if (pid == 0)
        in_child();
    else
        in_parent();
    errno = error;
    return pid;
}

bool process_is_sharing(void) {
    return cache_pid() != 0 && sys(SYS_getpid) != cache_pid();
}

/* The call copies its second argument before it refuses its first; libc makes it, too, so a filter lets it through. */
static bool can_read_word(const char *at) {
    enum { NO_SUCH_CHANGE = -1 };
    return sys(SYS_rt_sigprocmask, NO_SUCH_CHANGE, at, NULL, sizeof(uint64_t)) != -EFAULT;
}

bool process_can_read(const void *memory, size_t size) {
    const char *at = memory;
    return at != NULL && can_read_word(at) && can_read_word(at + size - sizeof(uint64_t));
}

/* --- the others --------------------------------------------------------------------------------------- */

/* vfork itself is in jump.S: its caller's frame must not have one of ours below it. */
void cache_before_vfork(void) __attribute__((visibility("hidden")));
void cache_before_vfork(void) {
    kthread_tie_sigsafe_by(RETIRE_CHILD, because_name("vfork"));
}

/* True if it is worth another try. Sets errno otherwise. */
bool cache_vfork_failed(long error) __attribute__((visibility("hidden")));
bool cache_vfork_failed(long error) {
    if (error == -EAGAIN && process_make_room())
        return true;
    errno = (int)-error;
    return false;
}

INTERPOSE int posix_spawn(pid_t *restrict pid, const char *restrict path,
                          const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                          char *const envp[restrict]) {
    kthread_tie_sigsafe(RETIRE_CHILD);
    int error = REAL(posix_spawn)(pid, path, actions, attributes, argv, envp);
    if (error == EAGAIN && process_make_room())
        error = REAL(posix_spawn)(pid, path, actions, attributes, argv, envp);
    return error;
}

INTERPOSE int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                           const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                           char *const envp[restrict]) {
    kthread_tie_sigsafe(RETIRE_CHILD);
    int error = REAL(posix_spawnp)(pid, file, actions, attributes, argv, envp);
    if (error == EAGAIN && process_make_room())
        error = REAL(posix_spawnp)(pid, file, actions, attributes, argv, envp);
    return error;
}

INTERPOSE int system(const char *command) {
    kthread_tie_sigsafe(RETIRE_CHILD);
    int saved = errno;
    errno = 0;
    int status = REAL(system)(command);
    int unmade =
        command != NULL ? 127 << 8 : 0; /* libc says: a command that was not found, or: no shell; newer: -1 */
    if ((status == unmade || status == -1) && errno == EAGAIN && process_make_room()) {
        errno = 0;
        status = REAL(system)(command);
    }
    if (errno == 0)
        errno = saved;
    return status;
}

INTERPOSE FILE *popen(const char *command, const char *type) {
    kthread_tie_sigsafe(RETIRE_CHILD);
    FILE *stream = REAL(popen)(command, type);
    if (stream == NULL && (errno == EAGAIN || errno == ENOMEM) &&
        process_make_room()) /* libc says ENOMEM for both */
        stream = REAL(popen)(command, type);
    return stream;
}

/* The child of a clone that does not share memory is one like fork's; the descriptor is in its copy of the memory. */
struct copied {
    int (*fn)(void *);
    void *arg;
    bool by_main;
};

static int start_copied(void *argument) {
    const struct copied *copied = argument;
    process_child_begins(copied->by_main);
    return copied->fn(copied->arg);
}

INTERPOSE int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...) {
    va_list list;
    va_start(list, arg);
    pid_t *parent_tid = va_arg(list, pid_t *);
    void *tls = va_arg(list, void *);
    pid_t *child_tid = va_arg(list, pid_t *);
    va_end(list);
    kthread_tie_sigsafe(RETIRE_CHILD);
    if (flags & CLONE_VM)
        return REAL(clone)(fn, stack, flags, arg, parent_tid, tls, child_tid);
    struct copied copied = {fn, arg, cache_in_main()};
    kthread_before_copy();
    int answer = REAL(clone)(start_copied, stack, flags, &copied, parent_tid, tls, child_tid);
    kthread_after_copy();
    return answer;
}

/* --- other ties to the kernel thread ------------------------------------------------------------------- */

/* What was traced is let go when its tracer, a thread, dies. */
INTERPOSE long ptrace(enum __ptrace_request request, ...) {
    va_list list;
    va_start(list, request);
    pid_t pid = va_arg(list, pid_t);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    kthread_tie_sigsafe(RETIRE_TIES);
    struct reach traced; /* of ours only where the tracer is a process that shares this memory */
    reach_begin(&traced, pid);
    if (traced.thread != NULL)
        reach_tie(&traced);
    reach_end(&traced);
    return REAL(ptrace)(request, traced.tid, address, data);
}

/* Signals about a file may be asked for by thread: it retires then. Also where the id is taken for a process's, which
 * the kernel lets pass for any thread's. */
struct owner {
    bool named;
    struct reach reach;
    struct f_owner_ex copy;
};

static void *owner_begin(struct owner *owner, int command, void *argument) {
    const struct f_owner_ex *given = argument;
    bool extended =
        command == F_SETOWN_EX && process_can_read(given, sizeof *given) && given->type != F_OWNER_PGRP;
    owner->named = extended || (command == F_SETOWN && (int)(intptr_t)argument > 0);
    if (!owner->named)
        return argument;
    reach_begin(&owner->reach, extended ? given->pid : (pid_t)(intptr_t)argument);
    if (!extended)
        return (void *)(intptr_t)owner->reach.tid;
    owner->copy = (struct f_owner_ex){given->type, owner->reach.tid};
    return &owner->copy;
}

/* These make the caller the owner, if the file has none yet. */
static bool owns_by_itself(int command, const void *argument) {
    const int value = (int)(intptr_t)argument;
    switch (command) {
    case F_NOTIFY: return value != 0;
    case F_SETLEASE: return value != F_UNLCK;
    case F_SETFL: return (value & O_ASYNC) != 0;
    default: return false;
    }
}

static void owner_end(struct owner *owner, int command, const void *argument, int answer) {
    if (answer != -1 && owns_by_itself(command, argument))
        kthread_tie_sigsafe_by(RETIRE_TIES, because_name("fcntl"));
    if (!owner->named)
        return;
    bool by_thread = command == F_SETOWN_EX && owner->copy.type == F_OWNER_TID;
    if (answer != -1 && (by_thread || owner->reach.thread != NULL))
        reach_tie_by(&owner->reach, because_name("fcntl"));
    reach_end(&owner->reach);
}

INTERPOSE int fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    struct owner owner;
    argument = owner_begin(&owner, command, argument);
    int answer = REAL(fcntl)(fd, command, argument);
    owner_end(&owner, command, argument, answer);
    return answer;
}

INTERPOSE int fcntl64(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    struct owner owner;
    argument = owner_begin(&owner, command, argument);
    int answer = REAL(fcntl64)(fd, command, argument);
    owner_end(&owner, command, argument, answer);
    return answer;
}
