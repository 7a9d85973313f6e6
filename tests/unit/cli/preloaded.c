// SPDX-License-Identifier: Apache-2.0
//
// What libthrum-stat.so could break in a program that is not as simple as waits.c: a mode each, for
// stat_preload_test.cpp. Each says what it saw, the same with the library and without.
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "os/syscall.h"
#include "waiting.h"

// libc's for the program and for what is loaded into it: from 2.41 on it is left to others to break off a wait that is
// cancelled (stat/cancel.c). Older ones do it themselves, and what is done besides does no harm.
const char *gnu_get_libc_version(void) {
    return "2.41";
}

static volatile double sink;

static double cpu_of_thread(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void burn(int milliseconds) {
    const double until = cpu_of_thread() + milliseconds * 1e-3;
    while (cpu_of_thread() < until)
        for (int i = 0; i < 100000; i++)
            sink = sink * 0.5 + i;
}

// --- stacks that have no room for a handler ---------------------------------------------------------------

static ucontext_t outside, inside;
static int milliseconds_inside;

static void work_inside(void) {
    wait_in_vain(10);
    burn(milliseconds_inside);
}

static long changed(const unsigned char *bytes, long size) {
    long count = 0;
    for (long i = 0; i < size; i++)
        count += bytes[i] != 0xa5;
    return count;
}

// As in runtimes that request SA_ONSTACK for all handlers: no signal's frame is that small. Below the stack is other
// code's memory.
static int small_stack(int milliseconds) {
    enum { BELOW = 32 << 10, SIZE = 1024, ALTERNATE = 256 << 10 };
    static unsigned char area[BELOW + SIZE] __attribute__((aligned(64)));
    const stack_t alternate = {.ss_sp = malloc(ALTERNATE), .ss_size = ALTERNATE};
    milliseconds_inside = 0;
    work_inside(); // the dynamic linker takes much of a stack at the first call of a function
    milliseconds_inside = milliseconds;
    memset(area, 0xa5, sizeof area);
    if (sigaltstack(&alternate, NULL) != 0 || getcontext(&inside) != 0)
        return 1;
    inside.uc_stack.ss_sp = area + BELOW;
    inside.uc_stack.ss_size = SIZE;
    inside.uc_link = &outside;
    makecontext(&inside, work_inside, 0);
    if (swapcontext(&outside, &inside) != 0)
        return 1;
    printf("changed below the stack: %ld bytes\n", changed(area, BELOW));
    return 0;
}

// --- cancellation, after a child with the same memory -------------------------------------------------------

static sem_t semaphore, ready;
static _Atomic pid_t waiter;

static void *wait_for_semaphore(void *arg) {
    waiter = (pid_t)syscall(SYS_gettid);
    sem_wait(&semaphore);
    return arg;
}

static void *wait_with_alternate_stack(void *arg) {
    enum { SIZE = 64 << 10 };
    const stack_t alternate = {.ss_sp = malloc(SIZE), .ss_size = SIZE};
    sigaltstack(&alternate, NULL);
    return wait_for_semaphore(arg);
}

static void cancel_one(void *(*fn)(void *), const char *when) {
    void *result;
    waiter = 0;
    pthread_t thread = start(fn, NULL);
    until_waiting(&waiter);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%s: cancelled %d\n", when, result == PTHREAD_CANCELED);
}

static int cancel(void) {
    cancel_one(wait_for_semaphore, "before");
    cancel_one(wait_with_alternate_stack, "on an alternate stack");
    fflush(stdout);
    if (system("exit 0") != 0)
        return 1;
    cancel_one(wait_for_semaphore, "after");
    return 0;
}

// --- a mask that a handler changes ----------------------------------------------------------------------------

static void block_more(int number, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    (void)number;
    (void)info;
    sigaddset(&context->uc_sigmask, SIGUSR2);
    sigaddset(&context->uc_sigmask, SIGSYS);
}

static void *wait_and_say_mask(void *arg) {
    sigset_t now;
    waiter = (pid_t)syscall(SYS_gettid);
    const int error = sem_wait(&semaphore) == 0 ? 0 : errno;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    printf("interrupted %d, blocked: SIGUSR1 %d SIGUSR2 %d SIGSYS %d\n", error == EINTR,
           sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2), sigismember(&now, SIGSYS));
    wait_in_vain(3);
    return arg;
}

static int handler_mask(void) {
    struct sigaction action = {.sa_sigaction = block_more, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t thread = start(wait_and_say_mask, NULL);
    until_waiting(&waiter);
    pthread_kill(thread, SIGUSR1);
    return pthread_join(thread, NULL);
}

// --- system calls of its own --------------------------------------------------------------------------------

static void *block_all_and_end(void *arg) {
    const uint64_t all = ~UINT64_C(0);
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, sizeof all);
    return arg; // libc's calls at a thread's end are trapped
}

static int own_calls(void) {
    wait_in_vain(5);
    const int error = pthread_join(start(block_all_and_end, NULL), NULL);
    printf("joined: %d\n", error);
    return error;
}

// --- a filter that ends it at any call that it does not need -------------------------------------------------

static void *work_confined(void *arg) {
    wait_in_vain(5);
    return arg;
}

static bool confine(void) {
    static const unsigned needed[] = {
        SYS_futex,         SYS_write,       SYS_exit_group,
        SYS_exit,          SYS_mmap,        SYS_munmap,
        SYS_brk,           SYS_mprotect,    SYS_madvise,
        SYS_clone,         SYS_clone3,      SYS_rt_sigprocmask,
        SYS_fstat,         SYS_newfstatat,  SYS_rt_sigaction,
        SYS_rt_sigreturn,  SYS_sched_yield, SYS_set_robust_list,
        SYS_rseq,          SYS_getrandom,   SYS_restart_syscall,
        SYS_clock_gettime,
    };
    enum { COUNT = sizeof needed / sizeof *needed };
    struct sock_filter code[COUNT + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (unsigned i = 0; i < COUNT; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, needed[i], COUNT - i, 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {COUNT + 3, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *be_there_before(void *arg) {
    sem_post(&ready);
    sem_wait(&semaphore);
    wait_in_vain(5);
    return arg;
}

static int confined(int milliseconds) {
    sem_init(&ready, 0, 0);
    pthread_t before = start(be_there_before, NULL);
    sem_wait(&ready);
    if (!confine())
        return 1;
    pthread_t after = start(work_confined, NULL);
    wait_in_vain(5);
    burn(milliseconds);
    sem_post(&semaphore);
    printf("joined: %d\n", pthread_join(before, NULL) + pthread_join(after, NULL));
    return 0;
}

static int asked_for; // milliseconds

static void *burn_some(void *arg) {
    burn(asked_for);
    return arg;
}

// Asks whether there are filters, and has a child that shares its memory promise something, but is free itself.
static int unconfined(int milliseconds) {
    int status = 0;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == 0)
        return 1;
    const pid_t child = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); // NOLINT(clang-analyzer-unix.Vfork)
        _exit(0);
    }
    waitpid(child, &status, 0);
    asked_for = milliseconds;
    printf("joined: %d\n", pthread_join(start(burn_some, NULL), NULL) + status);
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    sem_init(&semaphore, 0, 0);
    if (strcmp(what, "small-stack") == 0)
        return small_stack(number);
    if (strcmp(what, "cancel") == 0)
        return cancel();
    if (strcmp(what, "handler-mask") == 0)
        return handler_mask();
    if (strcmp(what, "confined") == 0)
        return confined(number);
    if (strcmp(what, "unconfined") == 0)
        return unconfined(number);
    if (strcmp(what, "own-calls") == 0)
        return own_calls();
    return 2;
}
