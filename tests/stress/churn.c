// SPDX-License-Identifier: Apache-2.0
//
// Threads created, joined, detached, cancelled and signalled at random by several creators at once, each thread with
// keys, thread-locals, errno, names and cleanup handlers of its own: whatever a thread can see of another one that ran
// before it is an error. Runs a few seconds in ctest, as long as asked with --seconds N (make soak-tests); the seed of a run is
// printed, --seed N takes it again.
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CREATORS = 4, SLOTS = 6, KEYS = 3, STALL_SECONDS = 30, SMALL_STACK = 256 * 1024 };

static unsigned seed = 0;
static int seconds = 3;
static atomic_int over;
static atomic_ulong started, ended, keys_set, keys_destroyed, cleanups_pushed, cleanups_run, progress;

#define CHECK(condition, ...)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #condition);                          \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fprintf(stderr, " (seed %u)\n", seed);                                                           \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
#define OK(call)                                                                                             \
    do {                                                                                                     \
        int error_ = (call);                                                                                 \
        CHECK(error_ == 0, "%s: %s", #call, strerror(error_));                                               \
    } while (0)

// ---- what a thread is told to do, and what came of it ------------------------------------------------------------------

enum ending { BY_RETURN, BY_EXIT, BY_CANCEL, ENDINGS };

struct job {
    unsigned number, seed;
    enum ending ending;
    int detached, freed_by_thread;
    void *result;
    pthread_t creator;
    pid_t creator_tid;
    sigset_t mask;
    cpu_set_t cpus;
};

static pthread_key_t keys[KEYS];
static _Thread_local unsigned tls_number;
static _Thread_local char tls_block[3000];
static _Thread_local struct { long a, b; } tls_initial = {17, 4};

// Signals carry the number of the thread that they are for.
static void on_signal(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    unsigned meant = (unsigned)info->si_value.sival_int;
    if (tls_number != 0 && tls_number != meant) {
        static const char text[] = "churn: a signal reached another thread than the one that it was for\n";
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        _exit(1);
    }
}

static void destroy(void *value) {
    CHECK((uintptr_t)value == tls_number, "a key's destructor got %zu in thread %u", (size_t)value,
          tls_number);
    atomic_fetch_add(&keys_destroyed, 1);
}

static void clean_up(void *number) {
    CHECK((uintptr_t)number == tls_number, "the cleanup handler of %zu ran in thread %u", (size_t)number,
          tls_number);
    atomic_fetch_add(&cleanups_run, 1);
}

// Everything that must be new in a new thread.
static void check_fresh(const struct job *job) {
    CHECK(errno == 0, "errno is %d", errno);
    CHECK(tls_number == 0, "thread-local of thread %u in %u", tls_number, job->number);
    CHECK(tls_initial.a == 17 && tls_initial.b == 4, "an initialized thread-local was changed");
    for (size_t i = 0; i < sizeof tls_block; i += 100)
        CHECK(tls_block[i] == 0, "a thread-local block was used before");
    for (int i = 0; i < KEYS; i++)
        CHECK(pthread_getspecific(keys[i]) == NULL, "a key has a value");

    int state, type;
    OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state));
    OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type));
    CHECK(state == PTHREAD_CANCEL_ENABLE && type == PTHREAD_CANCEL_DEFERRED, "cancellation state or type");

    sigset_t mask;
    OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
    for (int sig = 1; sig < SIGRTMAX; sig++) {
        if (sig == SIGKILL || sig == SIGSTOP || (sig >= 32 && sig < SIGRTMIN))
            continue;
        CHECK(sigismember(&mask, sig) == sigismember(&job->mask, sig), "signal %d: not as the creator had it",
              sig);
    }
    stack_t stack;
    CHECK(sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_DISABLE), "an alternate signal stack");
    cpu_set_t cpus;
    CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_EQUAL(&cpus, &job->cpus), "the affinity");
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    CHECK(used.tv_sec == 0, "%ld s of CPU time used already", (long)used.tv_sec);

    pthread_attr_t attr;
    int detach_state;
    OK(pthread_getattr_np(pthread_self(), &attr));
    OK(pthread_attr_getdetachstate(&attr, &detach_state));
    OK(pthread_attr_destroy(&attr));
    if (job->freed_by_thread)
        CHECK(detach_state == PTHREAD_CREATE_DETACHED, "not detached");
}

// Leaves its mark on everything that it can.
static void make_dirty(const struct job *job, unsigned *random) {
    tls_number = job->number;
    memset(tls_block, (int)job->number | 1, sizeof tls_block);
    tls_initial.a = job->number;
    errno = (int)(job->number % 100) + 1;
    for (int i = 0; i < KEYS; i++) {
        if (rand_r(random) % 2)
            continue;
        OK(pthread_setspecific(keys[i], (void *)(uintptr_t)job->number));
        atomic_fetch_add(&keys_set, 1);
    }
    if (rand_r(random) % 8 == 0) {
        sigset_t all;
        sigfillset(&all);
        OK(pthread_sigmask(SIG_BLOCK, &all, NULL));
    }
    if (rand_r(random) % 8 == 0)
        OK(pthread_setname_np(pthread_self(), "dirty"));
    if (rand_r(random) % 16 == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    if (rand_r(random) % 16 == 0) {
        static _Thread_local char memory[16384];
        const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
        CHECK(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    }
    if (rand_r(random) % 64 == 0)
        CHECK(prctl(PR_SET_TIMERSLACK, 70000) == 0, "timer slack");
}

static void work(struct job *job, unsigned *random) {
    for (volatile int i = rand_r(random) % 4 * 2000; i > 0; i--) {
    }
    if (rand_r(random) % 16 == 0)
        sched_yield();
    free(malloc((size_t)(rand_r(random) % 5000)));
    if (rand_r(random) % 512 == 0) {
        pid_t pid = fork();
        if (pid == 0)
            _exit((int)(job->number & 63));
        int status = 0;
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "fork or waitpid: %s", strerror(errno));
        CHECK(WEXITSTATUS(status) == (int)(job->number & 63), "the child's exit code");
    }
}

static void finish(struct job *job) {
    atomic_fetch_add(&ended, 1);
    atomic_fetch_add(&progress, 1);
    if (job->freed_by_thread)
        free(job);
}

static void finish_cancelled(void *job) {
    finish(job);
}

// A second of CPU time in one thread is more than any of them uses, so check_fresh can tell a clock that was not
// reset.
static void *run_job(void *p) {
    struct job *job = p;
    unsigned random = job->seed, number = job->number;
    enum ending ending = job->ending;
    void *result = job->result;
    atomic_fetch_add(&started, 1);
    check_fresh(job);
    make_dirty(job, &random);
    if (ending == BY_CANCEL) {
        // Ends only by cancellation, whose handlers run in the reverse order of their being pushed.
        pthread_cleanup_push(finish_cancelled, job);
        pthread_cleanup_push(clean_up, (void *)(uintptr_t)number);
        atomic_fetch_add(&cleanups_pushed, 1);
        for (;;) {
            const struct timespec brief = {0, 200000};
            nanosleep(&brief, NULL);
        }
        pthread_cleanup_pop(0);
        pthread_cleanup_pop(0);
    }
    work(job, &random);
    pthread_cleanup_push(clean_up, (void *)(uintptr_t)number);
    atomic_fetch_add(&cleanups_pushed, 1);
    finish(job);
    if (ending == BY_EXIT)
        pthread_exit(result);
    pthread_cleanup_pop(1);
    return result;
}

// ---- a creator ----------------------------------------------------------------------------------------------------------

struct slot {
    struct job *job;
    pthread_t thread;
};

static atomic_uint next_number = 1;

static struct job *make_job(unsigned *random) {
    struct job *job = calloc(1, sizeof *job);
    CHECK(job, "no memory");
    job->number = atomic_fetch_add(&next_number, 1) & 0x3fffffff;
    job->seed = (unsigned)rand_r(random);
    job->ending = rand_r(random) % 16 == 0 ? BY_CANCEL : rand_r(random) % 2 ? BY_EXIT : BY_RETURN;
    job->result = (void *)(uintptr_t)(job->number * 3 + 1);
    job->freed_by_thread = job->ending != BY_CANCEL && rand_r(random) % 5 == 0;
    OK(pthread_sigmask(SIG_BLOCK, NULL, &job->mask));
    CHECK(sched_getaffinity(0, sizeof job->cpus, &job->cpus) == 0, "sched_getaffinity");
    return job;
}

static void create(struct slot *slot, unsigned *random) {
    pthread_attr_t attr;
    struct job *job = make_job(random);
    int detached = job->freed_by_thread;
    OK(pthread_attr_init(&attr));
    if (rand_r(random) % 4 == 0)
        OK(pthread_attr_setstacksize(&attr, SMALL_STACK));
    if (detached)
        OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    OK(pthread_create(&slot->thread, &attr, run_job, job));
    OK(pthread_attr_destroy(&attr));
    slot->job = detached ? NULL : job;
}

static void disturb(const struct slot *slot, unsigned *random) {
    const union sigval value = {.sival_int = (int)slot->job->number};
    int error = 0;
    switch (rand_r(random) % 4) {
    case 0: error = pthread_sigqueue(slot->thread, SIGUSR1, value); break;
    case 1: error = pthread_kill(slot->thread, 0); break;
    default: return;
    }
    CHECK(error == 0 || error == ESRCH || error == EAGAIN, "signal: %s", strerror(error));
}

static void join(struct slot *slot, unsigned *random) {
    void *result = NULL;
    struct job *job = slot->job;
    if (job->ending == BY_CANCEL)
        OK(pthread_cancel(slot->thread));
    if (rand_r(random) % 4 == 0) {
        int error = pthread_tryjoin_np(slot->thread, &result);
        CHECK(error == 0 || error == EBUSY, "tryjoin: %s", strerror(error));
        if (error == EBUSY)
            OK(pthread_join(slot->thread, &result));
    } else {
        OK(pthread_join(slot->thread, &result));
    }
    if (job->ending == BY_CANCEL)
        CHECK(result == PTHREAD_CANCELED, "cancelled, but the result is %p", result);
    else
        CHECK(result == job->result, "thread %u gave %p instead of %p", job->number, result, job->result);
    free(job);
    slot->job = NULL;
}

// Creators differ in what their threads inherit.
static void differ(unsigned id) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, id % 2 ? SIGUSR2 : SIGHUP);
    OK(pthread_sigmask(SIG_BLOCK, &mask, NULL));
    if (id % 4 == 3) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
}

static void *be_creator(void *p) {
    unsigned id = (unsigned)(uintptr_t)p, random = seed * 31 + id;
    struct slot slots[SLOTS] = {{0}};
    differ(id);
    while (!atomic_load(&over)) {
        struct slot *slot = &slots[rand_r(&random) % SLOTS];
        if (!slot->job)
            create(slot, &random);
        else if (rand_r(&random) % 3 == 0)
            disturb(slot, &random);
        else
            join(slot, &random);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].job)
            join(&slots[i], &random);
    return NULL;
}

// ---- the whole ------------------------------------------------------------------------------------------------------------

// Ends the process where nothing happens any more.
static void watch(int for_seconds) {
    unsigned long last = 0;
    for (int i = 0, still = 0; i < for_seconds; i++) {
        const struct timespec second = {1, 0};
        struct timespec left = second;
        while (nanosleep(&left, &left) == -1) {
        }
        unsigned long now = atomic_load(&progress);
        still = now == last ? still + 1 : 0;
        last = now;
        CHECK(still < STALL_SECONDS, "no thread ended for %d s", STALL_SECONDS);
    }
}

static void parse(int argc, char **argv) {
    seed = (unsigned)time(NULL) ^ (unsigned)getpid() << 8;
    for (int i = 1; i < argc; i += 2) {
        char *end = NULL;
        long value = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : -1;
        int good = value > 0 && value < 1000000000 && end && *end == 0;
        if (good && strcmp(argv[i], "--seconds") == 0) {
            seconds = (int)value;
        } else if (good && strcmp(argv[i], "--seed") == 0) {
            seed = (unsigned)value;
        } else {
            fprintf(stderr, "usage: %s [--seconds N] [--seed N]\n", argv[0]);
            exit(2);
        }
    }
    seed &= 0x3fffffff;
}

int main(int argc, char **argv) {
    pthread_t creators[CREATORS];
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    parse(argc, argv);
    printf("churn: seed %u, %d s\n", seed, seconds);
    fflush(stdout);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < KEYS; i++)
        OK(pthread_key_create(&keys[i], destroy));
    for (int i = 0; i < CREATORS; i++)
        OK(pthread_create(&creators[i], NULL, be_creator, (void *)(uintptr_t)i));
    watch(seconds);
    atomic_store(&over, 1);
    alarm(STALL_SECONDS);
    for (int i = 0; i < CREATORS; i++)
        OK(pthread_join(creators[i], NULL));

    // Detached ones may still be on their way out.
    for (int i = 0;
         i < 5000 && (ended < started || cleanups_run < cleanups_pushed || keys_destroyed < keys_set); i++)
        usleep(1000);
    CHECK(ended == started, "%lu started, %lu ended", started, ended);
    CHECK(keys_destroyed == keys_set, "%lu key values set, %lu destroyed", keys_set, keys_destroyed);
    CHECK(cleanups_run == cleanups_pushed, "%lu cleanup handlers pushed, %lu run", cleanups_pushed,
          cleanups_run);
    printf("churn: %lu threads, %lu key values, %lu cleanup handlers\n", started, keys_set, cleanups_run);
    return 0;
}
