// SPDX-License-Identifier: Apache-2.0
//
// What the tests of libthrum-stat.so look at: programs that wait for futexes a known number of times, or that do what a
// system-call filter with a signal handler could easily break. Each says what it saw, the same with the library and
// without.
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "waiting.h"

extern char **environ;

// --- helpers -----------------------------------------------------------------------------------------

static const char *name_of(int error) {
    return error == 0            ? "success"
           : error == EINTR      ? "EINTR"
           : error == ETIMEDOUT  ? "ETIMEDOUT"
           : error == EOWNERDEAD ? "EOWNERDEAD"
                                 : strerror(error);
}

// Other system calls: so many of each kind.
static int calls(int times) {
    static unsigned word;
    for (int i = 0; i < times; i++) {
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        sched_yield();
        syscall(SYS_gettid);
    }
    return times & 0x7f;
}

// --- memory --------------------------------------------------------------------------------------------

enum { TABLE = 200 };

__attribute__((noinline)) static void *make_table(void) {
    void *made = malloc(TABLE);
    __asm__ volatile("" : : "r"(made) : "memory"); // so that this call is none's last one
    return made;
}

__attribute__((noinline)) static void *make_row(void) {
    void *made = malloc(TABLE - 1); // or the compiler makes one function of both
    __asm__ volatile("" : : "r"(made) : "memory");
    return made;
}

// One block that had another owner before, and one that another owner has in a child. Says where they are.
static int allocate(void) {
    void *before = make_table();
    free(before);
    void *row = make_row(), *table = make_table();
    for (size_t i = 0; i < 100000; i++)
        free(malloc(i % 1000 + 1000));
    const pid_t child = fork();
    if (child == 0) {
        free(table);
        _exit(make_row() == table ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    printf("%p %p\n", row, table);
    return row == before && status == 0 ? 0 : 1;
}

// --- a lock that is waited for once a round -------------------------------------------------------------

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t waiter;
static _Atomic int turn, rounds_done;

static void *lock_often(void *arg) {
    const int rounds = *(int *)arg;
    for (int i = 0; i < rounds; i++) {
        while (turn != i + 1)
            sched_yield();
        waiter = (pid_t)syscall(SYS_gettid);
        pthread_mutex_lock(&contended);
        pthread_mutex_unlock(&contended);
        waiter = 0;
        rounds_done = i + 1;
    }
    return NULL;
}

static int lock(int rounds) {
    pthread_t thread = start(lock_often, &rounds);
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&contended);
        turn = i + 1;
        until_waiting(&waiter);
        pthread_mutex_unlock(&contended);
        while (rounds_done != i + 1)
            sched_yield();
    }
    printf("%p\n", (void *)&contended);
    return pthread_join(thread, NULL);
}

// --- signals -----------------------------------------------------------------------------------------

static sem_t semaphore;
static _Atomic int handled;

static void count(int number) {
    (void)number;
    handled++;
}

static void *interrupt(void *arg) {
    static _Atomic pid_t target;
    target = getpid();
    until_waiting(&target);
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    while (handled == 0)
        sched_yield();
    usleep(20000); // by then a restarted wait has begun again
    sem_post(&semaphore);
    return NULL;
}

static void wait_with(int flags, const char *name) {
    struct sigaction action = {.sa_handler = count, .sa_flags = flags};
    sigfillset(&action.sa_mask);
    pthread_t self = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    handled = 0;
    pthread_t thread = start(interrupt, &self);
    const int error = sem_wait(&semaphore) == 0 ? 0 : errno;
    printf("%s: %s after %d signals\n", name, name_of(error), handled);
    if (error != 0)
        while (sem_wait(&semaphore) != 0)
            continue;
    pthread_join(thread, NULL);
}

static int signals(void) {
    sem_init(&semaphore, 0, 0);
    wait_with(0, "plain");
    wait_with(SA_RESTART, "restarting");
    return 0;
}

// --- masks -------------------------------------------------------------------------------------------

static void say_mask(const char *when) {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    printf("%s: SIGSYS %d SIGUSR1 %d SIGTERM %d\n", when, sigismember(&set, SIGSYS),
           sigismember(&set, SIGUSR1), sigismember(&set, SIGTERM));
}

static void *wait_blocked(void *arg) {
    say_mask("in a thread");
    wait_in_vain(*(int *)arg);
    return NULL;
}

static void wait_in_handler(int number) {
    (void)number;
    wait_in_vain(1);
}

// Waits N times in main and N times in a thread, with all signals blocked; four times in handlers.
static int masks(int times) {
    sigset_t all, before, none;
    sigfillset(&all);
    sigemptyset(&none);
    struct sigaction action = {.sa_handler = wait_in_handler, .sa_mask = all}, old;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigprocmask(SIG_SETMASK, &all, &before);
    say_mask("blocked");
    wait_in_vain(times);
    pthread_join(start(wait_blocked, &times), NULL);
    raise(SIGUSR1);
    sigset_t but_one = all;
    sigdelset(&but_one, SIGUSR1);
    const int answer = sigsuspend(&but_one);
    printf("sigsuspend: %d %s\n", answer, name_of(errno));
    raise(SIGUSR1);
    const struct timespec soon = {1, 0};
    const int polled = ppoll(NULL, 0, &soon, &but_one);
    printf("ppoll: %d %s\n", polled, name_of(errno));
    raise(SIGUSR1);
    struct epoll_event event;
    enum { EPOLL_PWAIT2 = 441 };
    const size_t size = 8; /* of a mask; an int might have anything beside it where arguments are words */
    const long events = syscall(EPOLL_PWAIT2, epoll_create1(0), &event, 1, &soon, &but_one, size);
    printf("epoll_pwait2: %ld %s\n", events, name_of(errno));
    sigprocmask(SIG_SETMASK, &before, NULL);
    say_mask("as before");
    action.sa_handler = count;
    action.sa_mask = none;
    sigaction(SIGSYS, &action, &old);
    printf("SIGSYS was default: %d\n", old.sa_handler == SIG_DFL);
    raise(SIGSYS);
    sigaction(SIGSYS, &old, &action);
    printf("SIGSYS handled: %d, by its handler: %d\n", handled, action.sa_handler == count);
    return 0;
}

// --- time, cancellation, other kinds of mutexes -----------------------------------------------------------

static struct timespec in_future(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += 30000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *lock_in_time(void *arg) {
    const struct timespec until = in_future(CLOCK_REALTIME);
    printf("lock: %s\n", name_of(pthread_mutex_timedlock(arg, &until)));
    return NULL;
}

static int timed(void) {
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    const struct timespec real = in_future(CLOCK_REALTIME), monotonic = in_future(CLOCK_MONOTONIC);
    printf("condition: %s\n", name_of(pthread_cond_timedwait(&condition, &mutex, &real)));
    const int error = pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &monotonic);
    printf("condition, monotonic: %s\n", name_of(error));
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const bool in_time =
        now.tv_sec < monotonic.tv_sec || (now.tv_sec == monotonic.tv_sec && now.tv_nsec < monotonic.tv_nsec);
    printf("too early: %d\n", in_time);
    pthread_join(start(lock_in_time, &mutex), NULL);
    return 0;
}

struct cancelled {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    sem_t semaphore;
    _Atomic pid_t thread;
    _Atomic int cleaned;
};

static void clean(void *arg) {
    ((struct cancelled *)arg)->cleaned++;
}

static void *wait_for_condition(void *arg) {
    struct cancelled *c = arg;
    pthread_mutex_lock(&c->mutex);
    pthread_cleanup_push(clean, c);
    c->thread = (pid_t)syscall(SYS_gettid);
    for (;;)
        pthread_cond_wait(&c->condition, &c->mutex);
    pthread_cleanup_pop(0);
}

static void *wait_for_semaphore(void *arg) {
    struct cancelled *c = arg;
    pthread_cleanup_push(clean, c);
    c->thread = (pid_t)syscall(SYS_gettid);
    while (sem_wait(&c->semaphore) != 0)
        continue;
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel_one(void *(*fn)(void *), const char *name) {
    struct cancelled c = {.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
    void *result;
    sem_init(&c.semaphore, 0, 0);
    pthread_t thread = start(fn, &c);
    until_waiting(&c.thread);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%s: cancelled %d, cleaned up %d, mutex held %d\n", name, result == PTHREAD_CANCELED, c.cleaned,
           pthread_mutex_trylock(&c.mutex) != 0);
}

static int cancel(void) {
    for (int i = 0; i < 20; i++) {
        cancel_one(wait_for_condition, "condition");
        cancel_one(wait_for_semaphore, "semaphore");
    }
    return 0;
}

static pthread_mutex_t special;
static _Atomic pid_t special_waiter;

static void *lock_special(void *arg) {
    special_waiter = (pid_t)syscall(SYS_gettid);
    const int error = pthread_mutex_lock(&special);
    printf("%s: %s\n", (const char *)arg, name_of(error));
    if (error == EOWNERDEAD)
        pthread_mutex_consistent(&special);
    pthread_mutex_unlock(&special);
    return NULL;
}

static pthread_t special_thread;

static void *lock_and_end(void *arg) {
    pthread_mutex_lock(&special);
    special_thread = start(lock_special, arg);
    until_waiting(&special_waiter);
    return NULL;
}

static int kinds(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&special, &attributes);
    pthread_mutex_lock(&special);
    static char inheriting[] = "priority inheritance";
    pthread_t thread = start(lock_special, inheriting);
    until_waiting(&special_waiter);
    pthread_mutex_unlock(&special);
    pthread_join(thread, NULL);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&special, &attributes);
    special_waiter = 0;
    static char robust[] = "robust";
    pthread_join(start(lock_and_end, robust), NULL);
    return pthread_join(special_thread, NULL);
}

// --- many threads -----------------------------------------------------------------------------------------

static _Atomic int arrived;
static sem_t release;

static void *arrive(void *arg) {
    arrived++;
    while (sem_wait(&release) != 0)
        continue;
    return arg;
}

static int threads(int number) {
    pthread_t *all = calloc((size_t)number, sizeof *all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    sem_init(&release, 0, 0);
    for (int i = 0; i < number; i++)
        if (pthread_create(&all[i], &attributes, arrive, NULL) != 0)
            return 1;
    while (arrived < number)
        sched_yield();
    for (int i = 0; i < number; i++)
        sem_post(&release);
    for (int i = 0; i < number; i++)
        pthread_join(all[i], NULL);
    printf("%d\n", arrived);
    free(all);
    return 0;
}

// --- CPU time -----------------------------------------------------------------------------------------------

extern const char __start_burning[], __stop_burning[];
static volatile double sink;

static double cpu_of_thread(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

__attribute__((noinline, section("burning"))) static void burn_here(void) {
    for (int i = 0; i < 2000000; i++)
        sink = sink * 0.5 + i;
}

static void *burn_for(void *arg) {
    const double until = cpu_of_thread() + *(int *)arg * 1e-3;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (cpu_of_thread() < until)
        burn_here();
    return NULL;
}

static int burn(int milliseconds) {
    printf("%p %p\n", (const void *)__start_burning, (const void *)__stop_burning);
    pthread_t thread = start(burn_for, &milliseconds);
    burn_for(&milliseconds);
    return pthread_join(thread, NULL);
}

// Short waits that no signal of the program's interrupts, while it uses much CPU time in the kernel.
static int no_interrupts(int milliseconds) {
    const double until = cpu_of_thread() + milliseconds * 1e-3;
    const struct timespec little = {0, 1000};
    int broken = 0;
    while (cpu_of_thread() < until) {
        for (int i = 0; i < 200; i++) {
            broken += poll(NULL, 0, 0) < 0;
            broken += nanosleep(&little, NULL) != 0;
        }
    }
    printf("%d\n", broken);
    return 0;
}

static void burn_in_handler(int number) {
    (void)number;
    const double until = cpu_of_thread() + 0.1;
    while (cpu_of_thread() < until)
        burn_here();
}

static void *interrupt_polling(void *arg) {
    static _Atomic pid_t target;
    target = getpid();
    (void)arg;
    until_in(&target, SYS_poll);
    kill(getpid(), SIGUSR1);
    return NULL;
}

// Waits that a signal of the program's interrupts, with all others blocked.
static int interrupts(int times) {
    struct sigaction action = {.sa_handler = burn_in_handler};
    sigset_t one;
    int broken = 0;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    for (int i = 0; i < times; i++) {
        pthread_sigmask(SIG_BLOCK, &one, NULL);
        pthread_t thread = start(interrupt_polling, NULL);
        pthread_sigmask(SIG_UNBLOCK, &one, NULL);
        broken += poll(NULL, 0, 60000) < 0;
        pthread_join(thread, NULL);
    }
    printf("%d\n", broken);
    return 0;
}

// --- a filter of the program's own -------------------------------------------------------------------------

static void answer(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
#if defined(__x86_64__)
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 42;
#else
    ((ucontext_t *)context)->uc_mcontext.regs[0] = 42;
#endif
}

// Traps getppid, and from then on all that traps is the program's affair.
static int sandbox(int times) {
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    wait_in_vain(times);
    sigaction(SIGSYS, &action, NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 1;
    printf("%ld\n", syscall(SYS_getppid));
    wait_in_vain(times);
    return 0;
}

// --- a stack that libc knows nothing of -------------------------------------------------------------------

static ucontext_t outside, inside;
static int waits_inside;

static void wait_inside(void) {
    wait_in_vain(waits_inside);
}

// With nothing behind its end.
static int coroutine(int times) {
    enum { SIZE = 64 << 10 };
    char *area = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || mprotect(area, SIZE, PROT_READ | PROT_WRITE) != 0 || getcontext(&inside) != 0)
        return 1;
    waits_inside = times;
    inside.uc_stack.ss_sp = area;
    inside.uc_stack.ss_size = SIZE;
    inside.uc_link = &outside;
    makecontext(&inside, wait_inside, 0);
    return swapcontext(&outside, &inside);
}

// --- other programs ---------------------------------------------------------------------------------------

static int fork_and_wait(int times) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        wait_in_vain(times);
        _exit(5);
    }
    int status = 0;
    waitpid(child, &status, 0);
    wait_in_vain(times);
    printf("%d\n", WEXITSTATUS(status));
    return 0;
}

// PROGRAM ARGUMENT, once spawned, once by system, in the end executed in our place; without any variable if `bare`.
static int execute(char **words, bool bare) {
    char *none[] = {NULL}, **environment = bare ? none : environ;
    int status;
    pid_t child;
    wait_in_vain(7);
    if (posix_spawn(&child, words[0], NULL, NULL, words, environment) != 0)
        return 1;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    printf("%d\n", WEXITSTATUS(system("exit 3")));
    fflush(stdout);
    execve(words[0], words, environment);
    return 1;
}

// PROGRAM ARGUMENT, executed at once; without any variable if `bare`.
static int become(char **words, bool bare) {
    char *none[] = {NULL};
    wait_in_vain(7);
    printf("before\n");
    fflush(stdout);
    execve("/nowhere", words, environ);
    execve(words[0], words, bare ? none : environ);
    return 1;
}

static void *no_work(void *unused) {
    return unused;
}

// The next program has none of these threads.
static int become_with_threads(char **words) {
    for (int i = 0; i < 3; i++)
        pthread_join(start(no_work, NULL), NULL);
    execv(words[0], words);
    return 1;
}

// All from one place; the last one sleeps for 0.1 s.
static int wait_mostly_in_vain(int times) {
    static unsigned word;
    const struct timespec while_asleep = {0, 100000000};
    for (int i = 0; i <= times; i++)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, i < times ? 1 : 0, &while_asleep);
    printf("done\n");
    return 0;
}

// By a child that has no handlers, as posix_spawn() makes it from glibc 2.38 on, where the kernel has a call for that.
static int spawn(char **words) {
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } wanted = {.flags = UINT64_C(0x100000000) | 0x4000, .exit_signal = SIGCHLD}; // CLEAR_SIGHAND, VFORK
    int status = 0;
    fflush(stdout);
    pid_t child = (pid_t)syscall(SYS_clone3, &wanted, sizeof wanted);
    if (child < 0)
        child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execv(words[0], words);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("exit code %d, signal %d\n", WEXITSTATUS(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}

// The executed program has the mask of its caller.
static int mask_of_other(char *self) {
    char mode[] = "say-mask", *words[] = {self, mode, NULL};
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    fflush(stdout);
    execv(self, words);
    return 1;
}

// --- waits that do not end ----------------------------------------------------------------------------------

static double seconds_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *wait_for_ever(void *arg) {
    (void)arg;
    waiter = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(&contended);
    return NULL;
}

static sigjmp_buf way_out;

static void leave(int number) {
    (void)number;
    siglongjmp(way_out, 1);
}

// Twice from the same place.
static void *leave_wait(void *arg) {
    struct timespec pause = {0, *(int *)arg * 1000000L};
    struct sigaction action = {.sa_handler = leave};
    sigaction(SIGUSR1, &action, NULL);
    for (volatile int i = 0; i < 2; i++)
        if (sigsetjmp(way_out, 1) == 0) {
            waiter = (pid_t)syscall(SYS_gettid);
            sem_wait(&semaphore);
        }
    nanosleep(&pause, NULL);
    wait_in_vain(1);
    return NULL;
}

static void interrupt_waiter(pthread_t thread) {
    until_waiting(&waiter);
    waiter = 0;
    pthread_kill(thread, SIGUSR1);
}

// For so many milliseconds, and then the program ends in some way, executes another one, or the thread ends.
static int left(const char *how, int milliseconds, char **words) {
    char *none[] = {NULL};
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    sem_init(&semaphore, 0, 0);
    pthread_mutex_lock(&contended);
    if (strcmp(how, "leave") == 0) {
        pthread_t thread = start(leave_wait, &milliseconds);
        interrupt_waiter(thread);
        interrupt_waiter(thread);
        return pthread_join(thread, NULL);
    }
    const double begin = seconds_now();
    struct cancelled c = {.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
    const bool is_cancelled = strcmp(how, "cancel") == 0;
    pthread_t thread = is_cancelled ? start(wait_for_condition, &c) : start(wait_for_ever, NULL);
    until_waiting(is_cancelled ? &c.thread : &waiter);
    const double waiting = seconds_now();
    nanosleep(&pause, NULL);
    printf("%.9f ", seconds_now() - waiting); // at least, and at most
    if (is_cancelled) {
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    printf("%.9f\n", seconds_now() - begin);
    fflush(stdout);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "execute") == 0)
        execve(words[0], words, none);
    if (is_cancelled) // which is not waited for any more
        nanosleep(&pause, NULL);
    return 3;
}

// --- pointers that lead nowhere --------------------------------------------------------------------------------

static void say_answer(const char *what, long answer) {
    printf("%s: %s\n", what, answer == 0 ? "success" : strerror(errno));
}

static int pointers(void) {
    enum { PAGE = 4096, MASK = 8 };
    char *area = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || munmap(area + PAGE, PAGE) != 0)
        return 1;
    char *nowhere = area + PAGE, *last = area + PAGE - MASK, *over = area + PAGE - MASK / 2;
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {SIG_DFL, 0, NULL, 0};
    const struct timespec none = {0, 0};
    const int numbers[] = {SIGUSR1, SIGSYS};
    for (int how = 0; how < 4; how++) {
        say_answer("mask", syscall(SYS_rt_sigprocmask, how, nowhere, NULL, MASK));
        say_answer("mask over the end", syscall(SYS_rt_sigprocmask, how, over, NULL, MASK));
        say_answer("mask at the end", syscall(SYS_rt_sigprocmask, how, last, last, MASK));
        say_answer("old mask", syscall(SYS_rt_sigprocmask, how, NULL, nowhere, MASK));
        say_answer("old mask over the end", syscall(SYS_rt_sigprocmask, how, NULL, over, MASK));
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    say_answer("mask and nowhere for the old one",
               syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, nowhere, MASK));
    say_mask("is set all the same");
    for (int i = 0; i < 2; i++) {
        say_answer("action", syscall(SYS_rt_sigaction, numbers[i], nowhere, NULL, MASK));
        say_answer("action over the end", syscall(SYS_rt_sigaction, numbers[i], last, NULL, MASK));
        say_answer("old action", syscall(SYS_rt_sigaction, numbers[i], NULL, nowhere, MASK));
        say_answer("old action over the end", syscall(SYS_rt_sigaction, numbers[i], &action, last, MASK));
    }
    say_answer("ppoll", syscall(SYS_ppoll, NULL, 0, &none, nowhere, MASK));
    say_answer("sigsuspend", syscall(SYS_rt_sigsuspend, nowhere, MASK));
    say_answer("epoll_pwait", syscall(SYS_epoll_pwait, epoll_create1(0), area, 1, 0, over, MASK));
    say_answer("pselect", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &none, nowhere));
    *(uint64_t *)(void *)area = (uintptr_t)nowhere;
    *(uint64_t *)(void *)(area + MASK) = MASK;
    say_answer("pselect's mask", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &none, area));
    say_answer("sigtimedwait", sigtimedwait((const sigset_t *)(void *)nowhere, NULL, &none));
    say_answer("sigwaitinfo", sigwaitinfo((const sigset_t *)(void *)nowhere, NULL));
    say_answer("program", syscall(SYS_execve, nowhere, NULL, NULL));
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "vain") == 0)
        return wait_in_vain(number), number & 0x7f;
    if (strcmp(what, "calls") == 0)
        return calls(number);
    if (strcmp(what, "allocate") == 0)
        return allocate();
    if (strcmp(what, "lock") == 0)
        return lock(number);
    if (strcmp(what, "signals") == 0)
        return signals();
    if (strcmp(what, "masks") == 0)
        return masks(number);
    if (strcmp(what, "timed") == 0)
        return timed();
    if (strcmp(what, "cancel") == 0)
        return cancel();
    if (strcmp(what, "kinds") == 0)
        return kinds();
    if (strcmp(what, "threads") == 0)
        return threads(number);
    if (strcmp(what, "burn") == 0)
        return burn(number);
    if (strcmp(what, "interrupts") == 0)
        return interrupts(number);
    if (strcmp(what, "no-interrupts") == 0)
        return no_interrupts(number);
    if (strcmp(what, "sandbox") == 0)
        return sandbox(number);
    if (strcmp(what, "coroutine") == 0)
        return coroutine(number);
    if (strcmp(what, "fork") == 0)
        return fork_and_wait(number);
    if (strcmp(what, "exec") == 0 || strcmp(what, "bare-exec") == 0)
        return execute(argv + 2, what[0] == 'b');
    if (strcmp(what, "become") == 0 || strcmp(what, "bare-become") == 0)
        return become(argv + 2, what[0] == 'b' && what[1] == 'a');
    if (strcmp(what, "mostly-vain") == 0)
        return wait_mostly_in_vain(number);
    if (strcmp(what, "become-with-threads") == 0)
        return become_with_threads(argv + 2);
    if (strcmp(what, "spawn") == 0)
        return spawn(argv + 2);
    if (strcmp(what, "mask-of-other") == 0)
        return mask_of_other(argv[0]);
    if (strcmp(what, "say-mask") == 0)
        return say_mask("executed"), 0;
    if (strcmp(what, "pointers") == 0)
        return pointers();
    if (strcmp(what, "left") == 0 && argc > 3)
        return left(argv[2], atoi(argv[3]), argv + 4);
    if (strcmp(what, "die") == 0)
        return raise(number), 99;
    return 2;
}
