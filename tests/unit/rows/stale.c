// SPDX-License-Identifier: Apache-2.0
//
// Row stale: a pthread_t of a thread that has ended and was not joined yet stays harmless: signals, cancellation, names,
// affinity and priorities meant for it reach neither the thread that runs on its kernel thread now nor the idle one.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "child.h"

enum { IDLE = 3, ROUNDS = 20 };

// Which logical thread this is; signals carry the number of the one that they are for.
static __thread int me, early; // early: a signal that came before the thread had set `me`
static int wrong, right;

static void on_signal(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    int meant = info->si_code == SI_QUEUE ? info->si_value.sival_int : -1;
    if (me == 0)
        early = meant;
    if (me != 0 && (meant == -1 || meant != me))
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    else
        __atomic_fetch_add(&right, 1, __ATOMIC_RELAXED);
}

static void handle_signals(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK_SYS(sigaction(SIGUSR1, &action, NULL));
    CHECK_SYS(sigaction(SIGUSR2, &action, NULL));
}

static void allowed(int error, const char *what) {
    CHECK(error == 0 || error == ESRCH, "%s on a thread that ended: %s", what, strerror(error));
}

// ---- one thread ended, its kernel thread may be another's by now ---------------------------------------------------

struct later {
    pthread_t thread;
    int started, end;
    char name[16];
    cpu_set_t cpus;
    int policy, priority;
};
static void look(struct later *later) {
    CHECK_SYS(prctl(PR_GET_NAME, later->name, 0, 0, 0));
    CHECK_SYS(sched_getaffinity(0, sizeof later->cpus, &later->cpus));
    later->policy = sched_getscheduler(0);
    later->priority = getpriority(PRIO_PROCESS, 0);
}
static struct later of_main; // later threads are created by main and look like it

static void same(const struct later *a, const struct later *b) {
    CHECK(strcmp(a->name, b->name) == 0, "renamed from '%s' to '%s'", a->name, b->name);
    CHECK(CPU_EQUAL(&a->cpus, &b->cpus), "got another thread's affinity");
    CHECK(a->policy == b->policy && a->priority == b->priority, "got another thread's scheduling");
}
static void *run_later(void *p) {
    struct later *later = p, before = {0}, after = {0};
    me = 2;
    look(&before);
    same(&of_main, &before);
    set_flag(&later->started);
    while (!__atomic_load_n(&later->end, __ATOMIC_ACQUIRE)) {
        sleep_ms(1);
        pthread_testcancel();
    }
    look(&after);
    same(&before, &after);
    return later;
}

typedef void (*stale_call)(pthread_t ended);

// The call comes from a thread of its own: glibc 2.36 takes the tid 0 of a thread that is gone for the caller's.
struct call {
    stale_call function;
    pthread_t ended;
};
static void *call_it(void *p) {
    struct call *call = p;
    me = 3;
    call->function(call->ended);
    return NULL;
}

// Not joined, so its pthread_t is still valid; but ended, as far as others can see: the kernel knows no such thread.
// A signal sent earlier would rightly be delivered.
static void *say_tid(void *tid) {
    __atomic_store_n((pid_t *)tid, kernel_tid(), __ATOMIC_RELEASE);
    return NULL;
}
static pthread_t start_and_end(void) {
    pthread_t ended;
    static pid_t tid;
    tid = 0;
    CHECK_OK(pthread_create(&ended, NULL, say_tid, &tid));
    for (int ms = 0; __atomic_load_n(&tid, __ATOMIC_ACQUIRE) == 0 || tgkill(getpid(), tid, 0) == 0; ms++) {
        CHECK(ms < 5000, "the kernel thread of a thread that ended is still there for tgkill");
        sleep_ms(1);
    }
    CHECK_EQ(errno, ESRCH);
    return ended;
}

// With a later thread that runs, and with none but idle ones.
static void harmless(stale_call function) {
    handle_signals();
    look(&of_main);
    warm_threads(IDLE);
    for (int round = 0; round < ROUNDS; round++) {
        struct later later[IDLE] = {0};
        struct call call = {function, start_and_end()};
        pthread_t caller;
        void *result;
        int count = round % 2 ? IDLE : 0;
        for (int i = 0; i < count; i++) {
            CHECK_OK(pthread_create(&later[i].thread, NULL, run_later, &later[i]));
            await_flag(&later[i].started);
        }
        CHECK_OK(pthread_create(&caller, NULL, call_it, &call));
        CHECK_OK(pthread_join(caller, NULL));
        sleep_ms(1);
        for (int i = 0; i < count; i++) {
            set_flag(&later[i].end);
            CHECK_OK(pthread_join(later[i].thread, &result));
            CHECK(result == &later[i], "thread %d ended with %p (%s)", i, result,
                  result == PTHREAD_CANCELED ? "cancelled" : "?");
        }
        CHECK_OK(pthread_join(call.ended, &result));
        CHECK(result == NULL, "the thread that had ended before the call gave %p", result);
        for (int i = 0; i < 3; i++) {
            struct later next = {.end = 1};
            run_thread_result(run_later, &next, &result);
            CHECK(result == &next, "a later thread ended with %p", result);
        }
    }
    CHECK(wrong + right == 0, "a signal for a thread that had ended was delivered");
}

static void call_kill_0(pthread_t ended) {
    allowed(pthread_kill(ended, 0), "pthread_kill");
}
static void call_kill(pthread_t ended) {
    allowed(pthread_kill(ended, SIGUSR1), "pthread_kill");
}
static void call_sigqueue(pthread_t ended) {
    const union sigval value = {.sival_int = 1};
    allowed(pthread_sigqueue(ended, SIGUSR2, value), "pthread_sigqueue");
}
static void call_cancel(pthread_t ended) {
    allowed(pthread_cancel(ended), "pthread_cancel");
}
static void call_setname(pthread_t ended) {
    pthread_setname_np(ended, "stale");
}
static void call_getname(pthread_t ended) {
    char name[16] = "";
    pthread_getname_np(ended, name, sizeof name);
}
static void call_setaffinity(pthread_t ended) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    pthread_setaffinity_np(ended, sizeof one, &one);
}
static void call_getaffinity(pthread_t ended) {
    cpu_set_t set;
    pthread_getaffinity_np(ended, sizeof set, &set);
}
static void call_setschedparam(pthread_t ended) {
    const struct sched_param param = {0};
    pthread_setschedparam(ended, SCHED_BATCH, &param);
}
static void call_getcpuclockid(pthread_t ended) {
    clockid_t clock;
    int error = pthread_getcpuclockid(ended, &clock);
    allowed(error, "pthread_getcpuclockid");
}
static void call_bad_signal(pthread_t ended) {
    int error = pthread_kill(ended, 12345);
    CHECK(error == EINVAL || error == 0 || error == ESRCH, "pthread_kill with no signal: %s",
          strerror(error));
}

static void kill_0(void) {
    harmless(call_kill_0);
}
static void kill_usr1(void) {
    harmless(call_kill);
}
static void sigqueue_usr2(void) {
    harmless(call_sigqueue);
}
static void cancel(void) {
    harmless(call_cancel);
}
static void setname(void) {
    harmless(call_setname);
}
static void getname(void) {
    harmless(call_getname);
}
static void setaffinity(void) {
    harmless(call_setaffinity);
}
static void getaffinity(void) {
    harmless(call_getaffinity);
}
static void setschedparam(void) {
    harmless(call_setschedparam);
}
static void getcpuclockid(void) {
    harmless(call_getcpuclockid);
}
static void bad_signal(void) {
    harmless(call_bad_signal);
}

// The one call of which glibc says for certain that the thread is gone.
static void sigqueue_says_gone(void) {
    const union sigval value = {.sival_int = 1};
    handle_signals();
    warm_threads(IDLE);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t ended = start_and_end();
        CHECK_EQ(pthread_sigqueue(ended, SIGUSR1, value), ESRCH);
        CHECK_OK(pthread_join(ended, NULL));
    }
    CHECK(wrong + right == 0, "a signal for a thread that had ended was delivered");
}

// The errors are libc's: a name's length is looked at first, and then for a file that is not there.
static void names_say_gone(void) {
    char name[16];
    warm_threads(IDLE);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t ended = start_and_end();
        CHECK_EQ(pthread_setname_np(ended, "sixteen letters."), ERANGE);
        CHECK_EQ(pthread_getname_np(ended, name, 15), ERANGE);
        CHECK_EQ(pthread_setname_np(ended, "short"), ENOENT);
        CHECK_EQ(pthread_getname_np(ended, name, sizeof name), ENOENT);
        CHECK_OK(pthread_join(ended, NULL));
    }
}

// Not joined, its attributes can still be had.
static void attributes_of_ended(void) {
    pthread_attr_t attr;
    warm_threads(IDLE);
    pthread_t ended = start_and_end();
    CHECK_OK(pthread_getattr_np(ended, &attr));
    CHECK_OK(pthread_attr_destroy(&attr));
    CHECK_OK(pthread_join(ended, NULL));
}

// ---- threads that end while signals for them are on their way -------------------------------------------------------

enum { SLOTS = 6, RACE_MS = 1500 };

static void *brief(void *number) {
    me = (int)(intptr_t)number;
    if (early != 0 && early != me)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    for (volatile int i = 0; i < 2000 * (me % 8); i++) {
    }
    return number;
}

static void signals_race(void) {
    pthread_t threads[SLOTS];
    int numbers[SLOTS], next = 1;
    handle_signals();
    me = -1;
    for (int i = 0; i < SLOTS; i++) {
        numbers[i] = next++;
        CHECK_OK(pthread_create(&threads[i], NULL, brief, (void *)(intptr_t)numbers[i]));
    }
    for (int64_t end = now_ms() + RACE_MS; now_ms() < end;) {
        for (int i = 0; i < SLOTS; i++) {
            const union sigval value = {.sival_int = numbers[i]};
            int error = pthread_sigqueue(threads[i], SIGUSR1, value);
            CHECK(error == 0 || error == ESRCH || error == EAGAIN, "pthread_sigqueue: %s", strerror(error));
        }
        int slot = next % SLOTS;
        void *result;
        CHECK_OK(pthread_join(threads[slot], &result));
        CHECK_EQ((intptr_t)result, numbers[slot]);
        numbers[slot] = next++;
        CHECK_OK(pthread_create(&threads[slot], NULL, brief, (void *)(intptr_t)numbers[slot]));
    }
    for (int i = 0; i < SLOTS; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    CHECK(wrong == 0, "%d signals of %d reached another thread than the one that they were for", wrong,
          wrong + right);
}

// A running thread that a third one is joining takes each signal; no other does. The last one lets it end.
enum { KILL_ROUNDS = 60, WAYS = 4 };
struct victim {
    pthread_t thread;
    pid_t tid;
    int number, taken;
};
static struct victim *victim;

static void on_kill(int sig) {
    (void)sig;
    __atomic_fetch_add(victim && me == victim->number ? &victim->taken : &wrong, 1, __ATOMIC_ACQ_REL);
}
static int taken_by(struct victim *v) {
    return __atomic_load_n(&v->taken, __ATOMIC_ACQUIRE);
}
static void *be_victim(void *p) {
    struct victim *v = p;
    me = v->number;
    __atomic_store_n(&v->tid, kernel_tid(), __ATOMIC_RELEASE);
    while (taken_by(v) < WAYS)
        sched_yield();
    return p;
}
static void *join_victim(void *p) {
    void *result;
    CHECK_OK(pthread_join(((struct victim *)p)->thread, &result));
    CHECK(result == p, "the thread ended with %p", result);
    return NULL;
}
static void hit(struct victim *v, int way) {
    switch (way) {
    case 0: CHECK_OK(pthread_kill(v->thread, SIGUSR1)); break;
    case 1: CHECK_SYS(tgkill(getpid(), v->tid, SIGUSR1)); break;
    case 2: CHECK_SYS(syscall(SYS_tkill, v->tid, SIGUSR1)); break;
    case 3: CHECK_OK(pthread_sigqueue(v->thread, SIGUSR1, (union sigval){0})); break;
    }
    for (int ms = 0; taken_by(v) <= way; ms++) {
        CHECK(ms < 10000, "signal number %d did not arrive", way);
        sleep_ms(way % 2);
    }
}
static void kill_under_a_joiner(void) {
    signal(SIGUSR1, on_kill);
    warm_threads(IDLE);
    for (int i = 1; i <= KILL_ROUNDS; i++) {
        struct victim v = {.number = i};
        pthread_t joiner;
        victim = &v;
        CHECK_OK(pthread_create(&v.thread, NULL, be_victim, &v));
        CHECK_OK(pthread_create(&joiner, NULL, join_victim, &v));
        while (__atomic_load_n(&v.tid, __ATOMIC_ACQUIRE) == 0)
            sched_yield();
        for (int way = 0; way < WAYS; way++)
            hit(&v, way);
        CHECK_OK(pthread_join(joiner, NULL));
        CHECK_EQ(taken_by(&v), WAYS);
    }
    CHECK(wrong == 0, "%d signals reached another thread than the one that they were for", wrong);
}

// Signals that threads send to themselves, several at a time, on kernel threads that come round: each is taken at once,
// by its sender.
static __thread volatile sig_atomic_t taken;
static void on_own_signal(int sig) {
    (void)sig;
    taken++;
}
static void *signal_oneself(void *arg) {
    for (int i = 0; i < 3 * WAYS; i += WAYS) {
        CHECK_EQ(taken, i);
        CHECK_OK(raise(SIGUSR1));
        CHECK_EQ(taken, i + 1);
        CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
        CHECK_EQ(taken, i + 2);
        CHECK_SYS(tgkill(getpid(), kernel_tid(), SIGUSR1));
        CHECK_EQ(taken, i + 3);
        CHECK_SYS(syscall(SYS_tkill, kernel_tid(), SIGUSR1));
        CHECK_EQ(taken, i + 4);
    }
    return arg;
}
static void *create_self_signallers(void *arg) {
    for (int i = 0; i < KILL_ROUNDS; i++) {
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, NULL, signal_oneself, NULL));
        CHECK_OK(pthread_join(thread, NULL));
    }
    return arg;
}
static void only_oneself(void) {
    pthread_t creators[IDLE];
    signal(SIGUSR1, on_own_signal);
    for (int i = 0; i < IDLE; i++)
        CHECK_OK(pthread_create(&creators[i], NULL, create_self_signallers, NULL));
    for (int i = 0; i < IDLE; i++)
        CHECK_OK(pthread_join(creators[i], NULL));
    CHECK_EQ(taken, 0);
}

// Cancellation likewise: only the thread that it is for may end by it.
static char marks[SLOTS];
static void *live_on(void *arg) {
    for (int i = 0; i < 3; i++) {
        pthread_testcancel();
        sched_yield();
    }
    return arg;
}
static void cancel_race(void) {
    pthread_t victims[SLOTS], others[SLOTS];
    for (int64_t end = now_ms() + RACE_MS; now_ms() < end;) {
        void *result;
        for (int i = 0; i < SLOTS; i++)
            CHECK_OK(pthread_create(&victims[i], NULL, brief, (void *)(intptr_t)i));
        for (int i = 0; i < SLOTS; i++) {
            CHECK_OK(pthread_create(&others[i], NULL, live_on, &marks[i]));
            allowed(pthread_cancel(victims[i]), "pthread_cancel");
        }
        for (int i = 0; i < SLOTS; i++) {
            CHECK_OK(pthread_join(others[i], &result));
            CHECK(result == &marks[i], "a thread that nobody cancelled ended with %p", result);
            CHECK_OK(pthread_join(victims[i], &result));
            CHECK(result == (void *)(intptr_t)i || result == PTHREAD_CANCELED, "result %p", result);
        }
    }
}

static const struct check_case cases[] = {
    {"kill_0", kill_0, HOLDS_WHEN_SKIPPED},
    {"kill_usr1", kill_usr1, HOLDS_WHEN_SKIPPED}, // row sigpending helps here
    {"sigqueue_usr2", sigqueue_usr2, HOLDS_WHEN_SKIPPED},
    {"sigqueue_says_gone", sigqueue_says_gone, FAILS_WHEN_SKIPPED},
    {"cancel", cancel, HOLDS_WHEN_SKIPPED},
    {"setname", setname, HOLDS_WHEN_SKIPPED},
    {"getname", getname, HOLDS_WHEN_SKIPPED},
    {"setaffinity", setaffinity, HOLDS_WHEN_SKIPPED},
    {"getaffinity", getaffinity, HOLDS_WHEN_SKIPPED},
    {"setschedparam", setschedparam, HOLDS_WHEN_SKIPPED}, // the idle thread is then of another lineage
    {"getcpuclockid", getcpuclockid, HOLDS_WHEN_SKIPPED},
    {"bad_signal", bad_signal, HOLDS_WHEN_SKIPPED},
    {"names_say_gone", names_say_gone, FAILS_WHEN_SKIPPED},
    {"attributes_of_ended", attributes_of_ended, HOLDS_WHEN_SKIPPED},
    {"signals_race", signals_race, HOLDS_WHEN_SKIPPED}, // a race: without the row it is hit only now and then
    {"kill_under_a_joiner", kill_under_a_joiner, HOLDS_WHEN_SKIPPED},
    {"only_oneself", only_oneself, HOLDS_WHEN_SKIPPED},
    {"cancel_race", cancel_race, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
