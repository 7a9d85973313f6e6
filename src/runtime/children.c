// SPDX-License-Identifier: Apache-2.0
/* See children.h.
 *
 * exec is enough for what vfork and fork start: the child changes its mask, not the worker. For posix_spawn libc sets the mask
 * in the child. system and popen of libc call a posix_spawn that cannot be replaced; so a ULT's are made here, by that.
 *
 * system() blocks SIGCHLD while it waits: else a handler of the program's may take the child's end. On a worker it is blocked
 * anyway, unless that is the kernel thread that called thrum_init. There the unit says that it blocks one signal more than its
 * worker (unit.h), so that a tick that finds this mask takes it for the thread and not for a handler of the program's: it is
 * preempted, and others run with the worker's mask meanwhile. */
#include "runtime/children.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/lock.h"
#include "os/thread.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

#define PUBLIC __attribute__((visibility("default")))

extern char **environ;

typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                     char *const[], char *const[]);
typedef int exec_fn(const char *, char *const[], char *const[]);

/* Libc's own. r/o after the constructor; functions of other libraries' constructors may come before. */
static struct {
    spawn_fn *posix_spawn, *posix_spawnp;
    exec_fn *execve, *execvpe;
    int (*fexecve)(int, char *const[], char *const[]);
    int (*execveat)(int, const char *, char *const[], char *const[], int);
    int (*system)(const char *);
    FILE *(*popen)(const char *, const char *);
    int (*pclose)(FILE *);
    pid_t (*fork_alone)(void); /* _Fork */
} libc;

static struct {
    int32_t tid; /* r/o while there is a runtime, as the next */
    sigbits mask;
    struct lock lock;
    uint32_t waiting;                 /* under lock: calls of system() that wait */
    struct sigaction interrupt, quit; /* ... what was there before the first of them */
    struct stream *streams;           /* under lock */
} children;

static void find(void **fn, const char *name) {
    *fn = dlsym(RTLD_NEXT, name);
}

/* Not when the first is called: that may be in a child of vfork, or with libc's locks held. */
static __attribute__((constructor)) void find_all(void) {
    if (libc.posix_spawn != NULL)
        return;
    find((void **)&libc.posix_spawnp, "posix_spawnp");
    find((void **)&libc.execve, "execve");
    find((void **)&libc.execvpe, "execvpe");
    find((void **)&libc.fexecve, "fexecve");
    find((void **)&libc.execveat, "execveat"); /* since glibc 2.34 */
    find((void **)&libc.system, "system");
    find((void **)&libc.popen, "popen");
    find((void **)&libc.pclose, "pclose");
    find((void **)&libc.fork_alone, "_Fork");        /* since glibc 2.34 */
    find((void **)&libc.posix_spawn, "posix_spawn"); /* last: the others are there */
}

ENTERS static void lock(void) {
    enter();
    lock_acquire(&children.lock);
}

LEAVES static void unlock(void) {
    lock_release(&children.lock);
    leave();
}

/* --- masks -------------------------------------------------------------------------------------------- */

void children_start(int32_t tid, sigbits mask) {
    children.tid = tid;
    children.mask = mask;
}

static bool is_quiet_thread(const struct worker *worker) {
    return worker != NULL && load_relaxed(&worker->tid) != children.tid;
}

/* A thread on a worker that has unblocked single signals has the rest from the worker. A thread that blocks what
 * workers do not, or unblocks most, has set its mask as a whole. */
static bool is_chosen(sigbits mask) {
    sigbits quiet = thread_quiet_mask(), by_kernel = signals_bit(SIGKILL) | signals_bit(SIGSTOP);
    return (mask & ~quiet & ~SIGBITS_LIBC & ~by_kernel) != 0 ||
           __builtin_popcountll(mask & quiet) < __builtin_popcountll(quiet) / 2;
}

/* The mask for a child of the caller, which blocks `mask`. */
static sigbits mask_for_child(const struct worker *worker, sigbits mask) {
    if (!is_quiet_thread(worker) || is_chosen(mask))
        return mask;
    return mask & (children.mask | ~thread_quiet_mask());
}

void children_let_signals_in(const struct worker *worker) {
    signals_mask_set(mask_for_child(worker, signals_mask_get()));
}

/* The same, and whether it is another than the caller's. */
static bool childs_mask_differs(sigbits *mask) {
    const struct worker *worker = enter();
    sigbits own = signals_mask_get();
    *mask = mask_for_child(worker, own);
    leave();
    return *mask != own;
}

static bool is_same(sigbits a, sigbits b) {
    sigbits either = signals_bit(SIGKILL) | signals_bit(SIGSTOP); /* the kernel blocks neither */
    if (preempt.on)
        either |= signals_bit(preempt.settings.signal);
    return (a | either) == (b | either);
}

/* With the signal of the ticks blocked it is no worker's. */
static bool may_be_workers(sigbits mask) {
    return !preempt.on || (mask & signals_bit(preempt.settings.signal)) == 0;
}

bool children_workers_mask(sigbits mask, sigbits *workers) {
    const struct worker *worker = enter();
    bool is_quiet = is_same(mask, thread_quiet_mask()), is_programs = is_same(mask, children.mask);
    bool is_one = worker != NULL && may_be_workers(mask) && (is_quiet || is_programs);
    if (is_one && (is_quiet_thread(worker) ? is_quiet : is_programs))
        *workers = mask; /* also where the thread has changed its own meanwhile, and ticks have seen that */
    else if (is_one && preempt.on)
        *workers = worker->tick.thread.mask;
    else if (is_one)
        *workers = is_quiet_thread(worker) ? thread_quiet_mask() : children.mask;
    leave();
    return is_one;
}

bool children_mask_for_program(sigbits mask, sigbits *programs) {
    const struct worker *worker = enter();
    bool is_workers = worker != NULL && !is_quiet_thread(worker) && may_be_workers(mask) &&
                      (preempt.on ? !is_chosen(mask) : is_same(mask, thread_quiet_mask()));
    if (is_workers)
        *programs = (preempt.on ? worker->tick.thread.mask : children.mask) & (mask | ~thread_quiet_mask());
    leave();
    return is_workers;
}

static bool is_on_worker(void) {
    bool is = enter() != NULL;
    leave();
    return is;
}

static void to_set(sigbits bits, sigset_t *set) {
    sigemptyset(set);
    memcpy(set, &bits, sizeof bits);
}

/* --- exec --------------------------------------------------------------------------------------------- */

/* What it unblocks may come at once, and then as in a program without the library. */
static sigbits before_exec(bool *changed) {
    sigbits mask;
    *changed = childs_mask_differs(&mask);
    return *changed ? signals_mask_set(mask) : 0;
}

static int exec_failed(sigbits mask, bool changed) {
    if (changed)
        signals_mask_set(mask); /* leaves errno as it is */
    return -1;
}

PUBLIC int execve(const char *path, char *const argv[], char *const envp[]) {
    bool changed;
    sigbits mask = before_exec(&changed);
    find_all();
    libc.execve(path, argv, envp);
    return exec_failed(mask, changed);
}

PUBLIC int execvpe(const char *file, char *const argv[], char *const envp[]) {
    bool changed;
    sigbits mask = before_exec(&changed);
    find_all();
    libc.execvpe(file, argv, envp);
    return exec_failed(mask, changed);
}

PUBLIC int fexecve(int fd, char *const argv[], char *const envp[]) {
    bool changed;
    sigbits mask = before_exec(&changed);
    find_all();
    libc.fexecve(fd, argv, envp);
    return exec_failed(mask, changed);
}

PUBLIC int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags) {
    bool changed;
    sigbits mask = before_exec(&changed);
    find_all();
    if (libc.execveat != NULL) {
        libc.execveat(fd, path, argv, envp, flags);
    } else {
        long error = sys(SYS_execveat, fd, path, argv, envp, flags);
        errno = (int)-error;
    }
    return exec_failed(mask, changed);
}

PUBLIC int execv(const char *path, char *const argv[]) {
    return execve(path, argv, environ);
}

PUBLIC int execvp(const char *file, char *const argv[]) {
    return execvpe(file, argv, environ);
}

/* The arguments from `first` on with the NULL at the end, on the stack, as these may be called in a signal handler; `list` is
 * behind them. */
#define LIST_ARGUMENTS(argv, first, list)                                                                    \
    va_list list;                                                                                            \
    size_t list##_count = 1;                                                                                 \
    va_start(list, first);                                                                                   \
    while (va_arg(list, char *) != NULL)                                                                     \
        list##_count++;                                                                                      \
    va_end(list);                                                                                            \
    char **argv = __builtin_alloca((list##_count + 1) * sizeof(char *));                                     \
    argv[0] = (char *)(uintptr_t)first;                                                                      \
    va_start(list, first);                                                                                   \
    for (size_t list##_i = 1; list##_i <= list##_count; list##_i++)                                          \
    argv[list##_i] = va_arg(list, char *)

PUBLIC int execl(const char *path, const char *first, ...) {
    LIST_ARGUMENTS(argv, first, list);
    va_end(list);
    return execve(path, argv, environ);
}

PUBLIC int execlp(const char *file, const char *first, ...) {
    LIST_ARGUMENTS(argv, first, list);
    va_end(list);
    return execvpe(file, argv, environ);
}

PUBLIC int execle(const char *path, const char *first, ...) {
    LIST_ARGUMENTS(argv, first, list);
    char *const *envp = va_arg(list, char *const *);
    va_end(list);
    return execve(path, argv, envp);
}

/* --- _Fork -------------------------------------------------------------------------------------------- */

#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 34)
/* A fork without the handlers of pthread_atfork, which see to the mask elsewhere (init.c). Nothing but the mask: the child may
 * only call what a signal handler may. */
PUBLIC pid_t _Fork(void) {
    find_all();
    pid_t pid = libc.fork_alone();
    if (pid == 0)
        children_let_signals_in(worker_here());
    return pid;
}
#endif

/* --- posix_spawn -------------------------------------------------------------------------------------- */

/* With the program's mask, unless it asks for another. */
static int spawn_with(spawn_fn *spawn, pid_t *pid, const char *path,
                      const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
                      char *const argv[], char *const envp[]) {
    short flags = 0;
    sigbits bits;
    if (attr != NULL)
        posix_spawnattr_getflags(attr, &flags);
    if ((flags & POSIX_SPAWN_SETSIGMASK) || !childs_mask_differs(&bits))
        return spawn(pid, path, actions, attr, argv, envp);
    posix_spawnattr_t with_mask;
    sigset_t mask;
    if (attr != NULL)
        with_mask = *attr;
    else
        posix_spawnattr_init(&with_mask);
    to_set(bits, &mask);
    posix_spawnattr_setsigmask(&with_mask, &mask);
    posix_spawnattr_setflags(&with_mask, (short)(flags | POSIX_SPAWN_SETSIGMASK));
    return spawn(pid, path, actions, &with_mask, argv, envp); /* there is nothing to destroy in glibc */
}

PUBLIC int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) {
    find_all();
    return spawn_with(libc.posix_spawn, pid, path, actions, attr, argv, envp);
}

PUBLIC int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) {
    find_all();
    return spawn_with(libc.posix_spawnp, pid, file, actions, attr, argv, envp);
}

#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 39)
PUBLIC int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) {
    static spawn_fn *spawn;
    find((void **)&spawn, "pidfd_spawn");
    return spawn_with(spawn, pidfd, path, actions, attr, argv, envp);
}

PUBLIC int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) {
    static spawn_fn *spawn;
    find((void **)&spawn, "pidfd_spawnp");
    return spawn_with(spawn, pidfd, file, actions, attr, argv, envp);
}
#endif

static int spawn_shell(pid_t *pid, const char *command, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attr) {
    char *const argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)command,
                          NULL};
    return posix_spawn(pid, _PATH_BSHELL, actions, attr, argv, environ);
}

static int wait_for_end_of(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR)
            return -1;
    return status;
}

/* --- system ------------------------------------------------------------------------------------------- */

/* The process ignores both while a call waits, as POSIX requires. `defaults`: those that the child gets with their
 * default action. */
static void ignore_keys(sigset_t *defaults) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    lock();
    if (children.waiting++ == 0) {
        sigaction(SIGINT, &ignore, &children.interrupt);
        sigaction(SIGQUIT, &ignore, &children.quit);
    }
    sigemptyset(defaults);
    if (children.interrupt.sa_handler != SIG_IGN)
        sigaddset(defaults, SIGINT);
    if (children.quit.sa_handler != SIG_IGN)
        sigaddset(defaults, SIGQUIT);
    unlock();
}

static void heed_keys(void) {
    lock();
    if (--children.waiting == 0) {
        sigaction(SIGINT, &children.interrupt, NULL);
        sigaction(SIGQUIT, &children.quit, NULL);
    }
    unlock();
}

/* Returns the mask for a child. False in *blocks: the caller blocks the signal itself. */
static sigbits block_child_signal(bool *blocks) {
    struct worker *worker = enter();
    sigbits mask = signals_mask_get();
    *blocks = worker != NULL && (is_quiet_thread(worker) || !(mask & signals_bit(SIGCHLD)));
    if (*blocks) {
        signals_block(signals_bit(SIGCHLD));
        unit_self(worker)->blocks_sigchld = true;
    }
    mask = mask_for_child(worker, mask);
    leave();
    return mask;
}

/* Perhaps on another worker than where it was blocked: the caller has the worker's mask from here on. */
static void unblock_child_signal(void) {
    struct worker *worker = enter();
    unit_self(worker)->blocks_sigchld = false;
    if (!is_quiet_thread(worker) && !(preempt.on && worker->tick.thread.mask & signals_bit(SIGCHLD)))
        signals_unblock(signals_bit(SIGCHLD));
    leave();
}

static int run_shell(const char *command) {
    pid_t pid;
    sigset_t set;
    bool blocks;
    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    ignore_keys(&set);
    posix_spawnattr_setsigdefault(&attr, &set);
    to_set(block_child_signal(&blocks), &set);
    posix_spawnattr_setsigmask(&attr, &set);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int error = spawn_shell(&pid, command, NULL, &attr);
    int status = error == 0 ? wait_for_end_of(pid) : 127 << 8; /* as if the shell had said so */
    int saved = error != 0 ? error : errno;
    heed_keys();
    if (blocks)
        unblock_child_signal();
    posix_spawnattr_destroy(&attr);
    if (error != 0 || status == -1)
        errno = saved;
    return status;
}

PUBLIC int system(const char *command) {
    find_all();
    if (!is_on_worker())
        return libc.system(command);
    return command != NULL ? run_shell(command) : run_shell("exit 0") == 0;
}

/* --- popen -------------------------------------------------------------------------------------------- */

struct stream {
    struct stream *next;
    FILE *file;
    pid_t pid;
};

static struct stream *take_stream(const FILE *file) {
    lock();
    struct stream **at = &children.streams;
    while (*at != NULL && (*at)->file != file)
        at = &(*at)->next;
    struct stream *stream = *at;
    if (stream != NULL)
        *at = stream->next;
    unlock();
    return stream;
}

static void put_stream(struct stream *stream) {
    lock();
    stream->next = children.streams;
    children.streams = stream;
    unlock();
}

/* "r" or "w", and perhaps "e", which all are. False: something else, for libc to refuse. */
static bool read_mode(const char *mode, bool *reads) {
    bool writes = strchr(mode, 'w') != NULL;
    *reads = strchr(mode, 'r') != NULL;
    return *reads != writes && mode[strspn(mode, "rwe")] == '\0';
}

/* The child has its end alone: all ends are closed on exec, its own until it is duplicated. */
static int spawn_on_pipe(pid_t *pid, const char *command, int end, int as) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, end, as);
    if (error == 0)
        error = spawn_shell(pid, command, &actions, NULL);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static FILE *open_stream(struct stream *stream, const char *command, bool reads) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    int mine = ends[reads ? 0 : 1], childs = ends[reads ? 1 : 0];
    stream->file = fdopen(mine, reads ? "r" : "w");
    int error = stream->file == NULL ? errno : spawn_on_pipe(&stream->pid, command, childs, reads ? 1 : 0);
    close(childs);
    if (error == 0)
        return stream->file;
    if (stream->file != NULL)
        fclose(stream->file);
    else
        close(mine);
    errno = error;
    return NULL;
}

PUBLIC FILE *popen(const char *command, const char *mode) {
    bool reads;
    find_all();
    if (!is_on_worker() || !read_mode(mode, &reads)) {
        FILE *file = libc.popen(command, mode);
        free(file != NULL ? take_stream(file) : NULL); /* of one that fclose() has closed */
        return file;
    }
    struct stream *stream = malloc(sizeof *stream);
    FILE *file = stream != NULL ? open_stream(stream, command, reads) : NULL;
    if (file == NULL) {
        int error = errno;
        free(stream);
        errno = error;
        return NULL;
    }
    free(take_stream(file));
    put_stream(stream);
    return file;
}

PUBLIC int pclose(FILE *file) {
    find_all();
    struct stream *stream = take_stream(file);
    if (stream == NULL)
        return libc.pclose(file);
    pid_t pid = stream->pid;
    free(stream);
    fclose(file);
    return wait_for_end_of(pid);
}

/* --- a child of fork ---------------------------------------------------------------------------------- */

void children_fork_child(void) {
    lock_reset(&children.lock);
}
