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
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

// --- helpers -----------------------------------------------------------------------------------------

// Returns at once, as the word has another value.
static void wait_in_vain(int times) {
    static unsigned word;
    for (int i = 0; i < times; i++)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static bool in_futex(pid_t thread) {
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    FILE *file = fopen(path, "r");
    const bool got = file != NULL && fgets(text, sizeof text, file) != NULL;
    if (file != NULL)
        fclose(file);
    return got && text[0] != 'r' && atol(text) == SYS_futex;
}

static void until_waiting(_Atomic pid_t *thread) {
    while (atomic_load(thread) == 0 || !in_futex(atomic_load(thread)))
        sched_yield();
}

static pthread_t start(void *(*fn)(void *), void *arg) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, arg) != 0)
        abort();
    return thread;
}

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
    usleep(20000); // by then a wait that goes on has begun again
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

// Waits N times in main and N times in a thread, with all signals blocked; three times in handlers.
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

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "vain") == 0)
        return wait_in_vain(number), number & 0x7f;
    if (strcmp(what, "calls") == 0)
        return calls(number);
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
    if (strcmp(what, "die") == 0)
        return raise(number), 99;
    return 2;
}
