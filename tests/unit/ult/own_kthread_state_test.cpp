// SPDX-License-Identifier: Apache-2.0
//
// Threads with a kernel thread of their own: what the kernel and the C library have of them, how they end, where they return to,
// what they are refused, and a process's fork.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <thrum/pool.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "crew.hpp"
#include "faults.hpp"
#include "modules/counted.hpp"
#include "own_kthread.hpp"

namespace {

class OwnKthreadState : public OverSettings {};

// --- what a kernel thread has -----------------------------------------------------------------------------

std::string directory() {
    std::array<char, PATH_MAX> path{};
    return getcwd(path.data(), path.size()) != nullptr ? path.data() : "";
}

sigset_t mask_now() {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return mask;
}

// It changes all of these and ends with them changed: no other thread has any of it, then or later.
TEST_P(OwnKthreadState, StateOfTheKernelIsItsOwn) {
    const std::string before = directory();
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    const thrum_attr_t attr = attr_own();
    thrum_event_t changed = THRUM_EVENT_INITIALIZER, looked = THRUM_EVENT_INITIALIZER;
    Light thread(
        [&] {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
            EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
            EXPECT_EQ(unshare(CLONE_FS), 0);
            EXPECT_EQ(chdir("/proc"), 0);
            sigset_t chosen;
            sigemptyset(&chosen);
            sigaddset(&chosen, SIGUSR2);
            EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &chosen, nullptr), 0);
            thrum_event_set(&changed);
            thrum_event_wait(&looked);
            thrum_sleep(THRUM_MS);
            cpu_set_t now;
            EXPECT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
            EXPECT_TRUE(CPU_EQUAL(&now, &one));
            EXPECT_EQ(directory(), "/proc");
            const sigset_t mask = mask_now();
            EXPECT_TRUE(sigismember(&mask, SIGUSR2));
            EXPECT_FALSE(sigismember(&mask, SIGTERM));
        },
        &attr);
    const auto look = [&] {
        for (int i = 0; i < 8; i++)
            in_ult([&] {
                cpu_set_t now;
                EXPECT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
                EXPECT_TRUE(CPU_EQUAL(&now, &all));
                EXPECT_EQ(directory(), before);
            });
    };
    thrum_event_wait(&changed);
    look();
    thrum_event_set(&looked);
    thread.join();
    look();
}

// Not atomic: the destructors have run before the thread continues.
pid_t destroyed_on;
bool was_ult;

struct Noting {
    Noting() = default;
    Noting(const Noting &) = delete;
    ~Noting() {
        nap(); // long enough for a joiner that does not wait for it
        was_ult = thrum_self() != nullptr;
        destroyed_on = tid();
    }
    static void nap() {
        const timespec time{0, 2000000};
        nanosleep(&time, nullptr);
    }
    int value = 0;
};
thread_local Noting noting;

__attribute__((noinline)) void touch_noting() {
    noting.value++;
}

pthread_key_t key_of_noting() {
    static const pthread_key_t key = [] {
        pthread_key_t made = 0;
        pthread_key_create(&made, [](void *) {
            Noting::nap();
            destroyed_on = tid();
        });
        return made;
    }();
    return key;
}

TEST_P(OwnKthreadState, ItsDestructorsRunBeforeTheThreadIsJoined) {
    const thrum_attr_t attr = attr_own();
    const int gone = Counted::gone;
    pid_t own = 0;
    destroyed_on = 0;
    Light(
        [&] {
            own = tid();
            pthread_setspecific(key_of_noting(), &own);
            counted.value++;
        },
        &attr);
    EXPECT_EQ(destroyed_on, own);
    EXPECT_EQ(Counted::gone, gone + 1);
    EXPECT_TRUE(eventually([own] { return !is_there(own); }));
}

TEST_P(OwnKthreadState, ItsDestructorsRunBeforeTheUnlockReturns) {
    if (keeps_locals())
        return; // the thread's own block goes with it
    in_ult([] {
        destroyed_on = 0;
        EXPECT_EQ(thrum_kthread_lock(), 0);
        const pid_t own = tid();
        touch_noting();
        EXPECT_EQ(destroyed_on, 0);
        EXPECT_EQ(thrum_kthread_unlock(), 0);
        EXPECT_EQ(destroyed_on, own);
        EXPECT_FALSE(was_ult);
        EXPECT_TRUE(eventually([own] { return !is_there(own); }));
    });
}

TEST_P(OwnKthreadState, ThreadLocalsForLifeGoWithIt) {
    if (!keeps_locals())
        return;
    in_ult([] {
        const pthread_t self = pthread_self();
        int *const here = local_here();
        *here = 4711;
        EXPECT_EQ(thrum_kthread_lock(), 0);
        EXPECT_EQ(pthread_self(), self);
        EXPECT_EQ(local_here(), here);
        EXPECT_EQ(*local_here(), 4711);
        thrum_sleep(THRUM_MS);
        EXPECT_EQ(*local_here(), 4711);
        EXPECT_EQ(thrum_kthread_unlock(), 0);
        EXPECT_EQ(local_here(), here);
        EXPECT_EQ(*local_here(), 4711);
    });
}

// --- its end, and its place -------------------------------------------------------------------------------

TEST_P(OwnKthreadState, IsCancelledWhereItWaits) {
    const thrum_attr_t attr = attr_own(THRUM_SPAWN_CANCELLABLE);
    struct Shared {
        thrum_event_t never = THRUM_EVENT_INITIALIZER;
        std::atomic<pid_t> own{0};
    } shared;
    const auto wait = [](void *arg) -> void * {
        auto *to = static_cast<Shared *>(arg);
        to->own = tid();
        thrum_event_wait(&to->never);
        ADD_FAILURE() << "not cancelled";
        return nullptr;
    };
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_spawn(&thread, &attr, wait, &shared), 0);
    EXPECT_TRUE(eventually([&] { return shared.own != 0; }));
    EXPECT_EQ(thrum_cancel(thread), 0);
    void *result = nullptr;
    EXPECT_EQ(thrum_join(thread, &result), 0);
    EXPECT_EQ(result, THRUM_CANCELED);
    EXPECT_TRUE(eventually([&] { return !is_there(shared.own); }));
}

void *end_within(void *arg) {
    EXPECT_EQ(thrum_kthread_lock(), 0);
    struct Last {
        std::atomic<pid_t> *to;
        ~Last() { *to = tid(); }
    } const last{static_cast<std::atomic<pid_t> *>(arg)};
    *last.to = 0;
    pthread_exit(arg);
}

TEST_P(OwnKthreadState, EndsFromWithin) {
    std::atomic<pid_t> own{0};
    thrum_t thread = nullptr;
    void *result = nullptr;
    ASSERT_EQ(thrum_spawn(&thread, nullptr, end_within, &own), 0);
    EXPECT_EQ(thrum_join(thread, &result), 0);
    EXPECT_EQ(result, &own);
    EXPECT_NE(own, 0);
    EXPECT_NE(own, tid());
    EXPECT_TRUE(eventually([&] { return !is_there(own); }));
}

TEST_P(OwnKthreadState, MayBeDetached) {
    static std::atomic<pid_t> own;
    own = 0;
    const thrum_attr_t attr = attr_own();
    const auto run = [](void *arg) -> void * {
        thrum_sleep(THRUM_MS);
        own = tid();
        return arg;
    };
    ASSERT_EQ(thrum_spawn(nullptr, &attr, run, nullptr), 0);
    EXPECT_TRUE(eventually([] { return own != 0 && !is_there(own); }));
}

TEST_P(OwnKthreadState, ARevivedThreadHasItAgain) {
    const thrum_attr_t attr = attr_own();
    const auto where = [](void *arg) -> void * {
        EXPECT_EQ(thrum_worker_self(), -1);
        *static_cast<pid_t *>(arg) = tid();
        return nullptr;
    };
    thrum_t thread = nullptr;
    pid_t first = 0, second = 0;
    ASSERT_EQ(thrum_spawn(&thread, &attr, where, &first), 0);
    EXPECT_EQ(thrum_join_keep(thread, nullptr), 0);
    EXPECT_EQ(thrum_revive(thread, where, &second), 0);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_NE(first, 0);
    EXPECT_NE(second, 0);
}

TEST_P(OwnKthreadState, ReturnsToItsWorker) {
    thrum_attr_t attr = attr_own();
    ASSERT_EQ(thrum_attr_set_worker(&attr, workers() - 1), 0);
    Light(
        [] {
            EXPECT_EQ(thrum_worker_self(), -1);
            EXPECT_EQ(thrum_migrate(thrum_self(), 0), EPERM);
            EXPECT_EQ(thrum_kthread_unlock(), 0);
            for (int i = 0; i < 3; i++) {
                EXPECT_EQ(thrum_worker_self(), static_cast<int>(workers() - 1));
                EXPECT_EQ(thrum_kthread_lock(), 0);
                EXPECT_EQ(thrum_kthread_unlock(), 0);
            }
        },
        &attr);
}

TEST_P(OwnKthreadState, ReturnsToItsPool) {
    thrum_pool_t pool = nullptr;
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, sched), 0);
    const thrum_attr_t attr = attr_pool(pool);
    Light(
        [] {
            EXPECT_EQ(thrum_worker_self(), static_cast<int>(workers() - 1));
            EXPECT_EQ(thrum_kthread_lock(), 0);
            thrum_sleep(THRUM_MS);
            EXPECT_EQ(thrum_worker_self(), -1);
            EXPECT_EQ(thrum_kthread_unlock(), 0);
            EXPECT_EQ(thrum_worker_self(), static_cast<int>(workers() - 1));
        },
        &attr);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, nullptr), 0);
    EXPECT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
}

// They are the thread's, not the kernel thread's.
TEST_P(OwnKthreadState, ExceptionsInFlightGoWithIt) {
    in_ult([] {
        try {
            throw std::runtime_error("first");
        } catch (const std::runtime_error &) {
            EXPECT_EQ(thrum_kthread_lock(), 0);
            EXPECT_EQ(std::uncaught_exceptions(), 0);
            try {
                throw; // the one that is being handled
            } catch (const std::runtime_error &error) {
                EXPECT_STREQ(error.what(), "first");
            }
            EXPECT_EQ(thrum_kthread_unlock(), 0);
            EXPECT_NE(std::current_exception(), nullptr);
        }
        EXPECT_EQ(std::current_exception(), nullptr);
    });
}

TEST_P(OwnKthreadState, IsRefusedWhereNoneCanBe) {
    EXPECT_EQ(thrum_kthread_lock(), EPERM); // the thread that called thrum_init
    EXPECT_EQ(thrum_kthread_unlock(), EPERM);
    thrum_attr_t attr = attr_own(THRUM_SPAWN_TASKLET);
    thrum_t thread = nullptr;
    const auto lock = [](void *arg) -> void * {
        *static_cast<int *>(arg) = thrum_kthread_lock();
        return nullptr;
    };
    int error = 0;
    EXPECT_EQ(thrum_spawn(&thread, &attr, lock, &error), EINVAL);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    ASSERT_EQ(thrum_spawn(&thread, &attr, lock, &error), 0);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(error, EPERM);
    in_ult([] {
        thrum_nopreempt_begin();
        EXPECT_EQ(thrum_kthread_lock(), EPERM);
        thrum_nopreempt_end();
        EXPECT_EQ(thrum_kthread_lock(), 0);
        thrum_nopreempt_begin();
        EXPECT_EQ(thrum_kthread_unlock(), EPERM);
        thrum_nopreempt_end();
        EXPECT_EQ(thrum_kthread_unlock(), 0);
    });
    External([] {
        const pid_t own = tid();
        EXPECT_EQ(thrum_kthread_lock(), 0);
        EXPECT_EQ(tid(), own);
        EXPECT_EQ(thrum_kthread_unlock(), 0);
    }).join();
}

TEST_P(OwnKthreadState, IsCountedByNoNumberOfWorkers) {
    const thrum_attr_t attr = attr_own();
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    const Light thread([&] { thrum_event_wait(&event); }, &attr);
    EXPECT_EQ(thrum_workers(), workers());
    EXPECT_EQ(in_child([] { return thrum_workers() == 0 ? 0 : 1; }), 0);
    thrum_event_set(&event);
}

TEST_P(OwnKthreadState, AChildOfItsForkIsExternal) {
    if (has_foreign_mappings())
        return; // the child of a tool has no threads
    const thrum_attr_t attr = attr_own();
    Light(
        [] {
            const Identity identity;
            EXPECT_EQ(in_child([] {
                          if (thrum_self() != nullptr || thrum_kthread_lock() != 0)
                              return 1;
                          if (thrum_kthread_unlock() != 0 || thrum_init(nullptr) != 0)
                              return 2;
                          const thrum_attr_t own = attr_own();
                          int worker = 0;
                          Light([&] { worker = thrum_worker_self(); }, &own).join();
                          if (worker != -1)
                              return 3;
                          return thrum_fini() == 0 ? 0 : 4;
                      }),
                      0);
            identity.expect_same();
        },
        &attr);
}

// A thread-local of its kernel thread's whose destructor forks. The kernel thread ends in the child, too, where the unit is not,
// and the process with it.
struct Forks {
    Forks() = default;
    Forks(const Forks &) = delete;
    ~Forks() {
        std::fflush(nullptr);
        child = fork();
        if (child == 0) {
            sigset_t none; // the kernel thread blocks SIGALRM
            sigemptyset(&none);
            pthread_sigmask(SIG_SETMASK, &none, nullptr);
            alarm(20);
            std::atexit([] { _exit(uses_runtime()); });
        }
    }
    static int uses_runtime() {
        const thrum_config config{1, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
        if (thrum_init(&config) != 0)
            return 1;
        const thrum_attr_t own = attr_own();
        int worker = 0;
        Light([&] { worker = thrum_worker_self(); }, &own).join();
        return worker == -1 && thrum_fini() == 0 ? 0 : 2;
    }
    static inline pid_t child = -1;
    int value = 0;
};

__attribute__((noinline)) void touch_forks() {
    static thread_local Forks forks;
    forks.value++;
}

TEST_P(OwnKthreadState, AChildOfItsDestructorsForkHasARuntimeOfItsOwn) {
    if (keeps_locals() || has_foreign_mappings())
        return; // it has no destructors there; the child of a tool has no threads
    Forks::child = -1;
    in_ult([] {
        EXPECT_EQ(thrum_kthread_lock(), 0);
        touch_forks();
        EXPECT_EQ(thrum_kthread_unlock(), 0);
    });
    int status = -1;
    EXPECT_EQ(waitpid(Forks::child, &status, 0), Forks::child);
    EXPECT_EQ(status, 0);
}

// Libc asks each kernel thread by a signal, whatever block that runs on.
TEST_P(OwnKthreadState, TakesPartInChangesOfIds) {
    const thrum_attr_t attr = attr_own();
    std::atomic<bool> computes{false}, over{false};
    thrum_event_t never = THRUM_EVENT_INITIALIZER;
    Light computing(
        [&] {
            const Identity identity;
            computes = true;
            while (!over) {
            }
            identity.expect_same();
        },
        &attr);
    Light waiting([&] { thrum_event_wait(&never); }, &attr);
    EXPECT_TRUE(eventually([&] { return computes.load(); }));
    EXPECT_EQ(setgid(getgid()), 0);
    over = true;
    thrum_event_set(&never);
}

// As with any thread in whose child of fork its function returns.
TEST_P(OwnKthreadState, InAChildOfItsForkTheReturnEndsTheProcess) {
    const thrum_attr_t attr = attr_own();
    static pid_t child;
    const auto split = [](void *arg) -> void * {
        std::fflush(nullptr);
        child = fork();
        if (child == 0) {
            alarm(20);
            // At its exit ASan calls a leak what only the parent's other threads know.
            if (ULT_ASAN)
                on_exit([](int status, void *) { _exit(status); }, nullptr);
        }
        return arg;
    };
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_spawn(&thread, &attr, split, nullptr), 0);
    ASSERT_EQ(thrum_join(thread, nullptr), 0);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

OWN_KTHREAD_OVER_SETTINGS(OwnKthreadState);

// --- without what it needs --------------------------------------------------------------------------------

class OwnKthreadPlain : public UltPlain {
  protected:
    void TearDown() override {
        faults_clear();
        UltPlain::TearDown();
    }
    static void start(unsigned mode = THRUM_PREEMPT_NONE) {
        const thrum_config config{2, 0, {mode, 0, 0, 0}, {}};
        ASSERT_EQ(thrum_init(&config), 0);
    }
};

void *nothing(void *arg) {
    return arg;
}

TEST_F(OwnKthreadPlain, WithoutAKernelThreadItSaysSo) {
    start();
    const thrum_attr_t attr = attr_own();
    thrum_t thread = nullptr, kept = nullptr;
    ASSERT_EQ(thrum_spawn(&kept, &attr, nothing, nullptr), 0);
    ASSERT_EQ(thrum_join_keep(kept, nullptr), 0);
    in_ult([&] {
        faults.create.after(0, INT_MAX, EAGAIN);
        EXPECT_EQ(thrum_kthread_lock(), EAGAIN);
        EXPECT_GE(thrum_worker_self(), 0);
        EXPECT_EQ(thrum_kthread_unlock(), EPERM);
        EXPECT_EQ(thrum_spawn(&thread, &attr, nothing, nullptr), EAGAIN);
        EXPECT_EQ(thrum_revive(kept, nothing, nullptr), EAGAIN);
        faults_clear();
        faults.mmap.after(0, 1, ENOMEM);
        EXPECT_EQ(thrum_kthread_lock(), EAGAIN);
        faults_clear();
        EXPECT_EQ(thrum_kthread_lock(), 0);
        EXPECT_EQ(thrum_revive(kept, nothing, nullptr), 0);
    });
    EXPECT_EQ(thrum_join(kept, nullptr), 0);
    EXPECT_EQ(thrum_fini(), 0);
}

// The kernel thread is there already when the thread turns out to be impossible.
TEST_F(OwnKthreadPlain, IsGivenBackWhereTheThreadCannotBe) {
    start();
    thrum_attr_t attr = attr_own();
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_attr_set_worker(&attr, 1000), 0);
    const std::size_t before = threads_of_process();
    EXPECT_EQ(thrum_spawn(&thread, &attr, nothing, nullptr), EINVAL);
    EXPECT_TRUE(eventually([before] { return threads_of_process() == before; }));
    EXPECT_EQ(thrum_fini(), 0);
}

// Long enough for a kernel thread that has been created to end.
void doze() {
    const timespec time{0, 30000000};
    nanosleep(&time, nullptr);
}

// It sees that no thread comes before it has waited for one the first time, and its creator wakes it much later.
TEST_F(OwnKthreadPlain, IsThereUntilItsCreatorHasGivenItBack) {
    start();
    thrum_attr_t attr = attr_own();
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_attr_set_worker(&attr, 1000), 0);
    const std::size_t before = threads_of_process();
    before_solo_wake = doze;
    EXPECT_EQ(thrum_spawn(&thread, &attr, nothing, nullptr), EINVAL);
    EXPECT_EQ(before_solo_wake, nullptr); // doze was called
    EXPECT_TRUE(eventually([before] { return threads_of_process() == before; }));
    EXPECT_EQ(thrum_fini(), 0);
}

// The same where the runtime's end wakes it meanwhile.
TEST_F(OwnKthreadPlain, IsGivenBackWhileTheRuntimeEnds) {
    start();
    static std::atomic<bool> dozes;
    dozes = false;
    const thrum_attr_t attr = attr_own();
    const auto spawn = [](void *arg) -> void * {
        thrum_attr_t impossible = attr_own();
        thrum_t thread = nullptr;
        EXPECT_EQ(thrum_attr_set_worker(&impossible, 1000), 0);
        before_solo_wake = [] {
            dozes = true;
            doze();
        };
        EXPECT_EQ(thrum_spawn(&thread, &impossible, nothing, nullptr), EINVAL);
        return arg;
    };
    ASSERT_EQ(thrum_spawn(nullptr, &attr, spawn, nullptr), 0);
    EXPECT_TRUE(eventually([] { return dozes.load(); }));
    EXPECT_EQ(thrum_fini(), 0);
}

TEST_F(OwnKthreadPlain, StartsTheDefaultRuntime) {
    EXPECT_EQ(in_child([] {
                  const thrum_attr_t attr = attr_own();
                  int worker = 0;
                  const auto note = [](void *arg) -> void * {
                      *static_cast<int *>(arg) = thrum_worker_self();
                      return nullptr;
                  };
                  thrum_t thread = nullptr;
                  if (thrum_spawn(&thread, &attr, note, &worker) != 0)
                      return 1;
                  return thrum_join(thread, nullptr) == 0 && worker == -1 ? 0 : 2;
              }),
              0);
}

// One that waits, and one that is woken by a call which returns when its kernel thread has ended.
TEST_F(OwnKthreadPlain, TheRuntimesEndLosesThoseThatWait) {
    for (const unsigned mode : {THRUM_PREEMPT_NONE, THRUM_PREEMPT_DEFAULT}) {
        start(mode);
        static std::atomic<pid_t> suspended, calling;
        suspended = calling = 0;
        const thrum_attr_t attr = attr_own();
        const auto suspend = [](void *arg) -> void * {
            suspended = tid();
            thrum_suspend();
            ADD_FAILURE() << "resumed";
            return arg;
        };
        const auto call = [](void *arg) -> void * {
            calling = tid();
            const auto outlive = [](void *unused) -> void * {
                EXPECT_TRUE(eventually([] { return !is_there(calling); }));
                return unused;
            };
            thrum_blocking(outlive, nullptr, nullptr);
            ADD_FAILURE() << "resumed";
            return arg;
        };
        ASSERT_EQ(thrum_spawn(nullptr, &attr, suspend, nullptr), 0);
        ASSERT_EQ(thrum_spawn(nullptr, &attr, call, nullptr), 0);
        EXPECT_TRUE(eventually([] { return suspended != 0 && calling != 0; }));
        EXPECT_EQ(thrum_fini(), 0);
        EXPECT_FALSE(is_there(suspended));
    }
}

TEST_F(OwnKthreadPlain, DumpsNameItsKernelThread) {
    if (!can_dump())
        GTEST_SKIP() << "no process_vm_readv here";
    start();
    const thrum_attr_t attr = attr_own();
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    std::atomic<pid_t> own{0};
    Light thread(
        [&] {
            thrum_set_name(thrum_self(), "renderer");
            own = tid();
            thrum_event_wait(&event);
        },
        &attr);
    EXPECT_TRUE(eventually([&] { return own != 0; }));
    const std::string text = stderr_of([] { EXPECT_EQ(thrum_dump(STDERR_FILENO, 0), 0); });
    const std::size_t at = text.find("renderer");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_NE(text.substr(at, text.find('\n', at) - at).find("thread " + std::to_string(own)),
              std::string::npos)
        << text;
    thrum_event_set(&event);
    thread.join();
    EXPECT_EQ(thrum_fini(), 0);
}

} // namespace
