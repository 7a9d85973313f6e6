// SPDX-License-Identifier: Apache-2.0
//
// Calls that block the kernel thread, beside the workers.
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <set>
#include <vector>

#include <thrum/pool.h>
#include <thrum/worker.h>

#include "crew.hpp"
#include "faults.hpp"
#include "pipe.hpp"
#include "ult.hpp"

extern "C" {
extern uint64_t blocking_keep_ns; // src/runtime/blocking.h
}

namespace {

// --- calls ------------------------------------------------------------------------------------------------

using Call = std::function<void *()>;

void *call(void *work) {
    return (*static_cast<const Call *>(work))();
}

void *blocking(const Call &work) {
    void *result = nullptr;
    EXPECT_EQ(thrum_blocking(call, const_cast<Call *>(&work), &result), 0);
    return result;
}

long tid() {
    return syscall(SYS_gettid);
}

void nap_ms(long milliseconds) {
    const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, nullptr);
}

class Blocking : public Ult {};

// Out of line, so that each looks up errno anew.
__attribute__((noinline)) int error_now() {
    return errno;
}
__attribute__((noinline)) void set_error(int error) {
    errno = error;
}

void expect_result_and_errno() {
    int value = 0;
    set_error(EDOM);
    EXPECT_EQ(blocking([&]() -> void * {
                  EXPECT_EQ(errno, EDOM); // as in a plain call
                  errno = ERANGE;
                  return &value;
              }),
              &value);
    EXPECT_EQ(error_now(), ERANGE);
    set_error(0);
    EXPECT_EQ(thrum_blocking([](void *) -> void * { return nullptr; }, nullptr, nullptr), 0);
    EXPECT_EQ(error_now(), 0);
}

TEST_P(Blocking, GivesResultAndErrno) {
    expect_result_and_errno();
    in_ult(expect_result_and_errno);
    External(expect_result_and_errno).join();
    thrum_pool_t pool = nullptr;
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, sched), 0);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_pool(&attr, pool);
    Light(expect_result_and_errno, &attr);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, nullptr), 0);
    EXPECT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
}

TEST_P(Blocking, IsElsewhereAndNoUlt) {
    const long own = tid();
    blocking([own]() -> void * {
        EXPECT_NE(tid(), own);
        EXPECT_EQ(thrum_self(), nullptr);
        EXPECT_EQ(thrum_worker_self(), -1);
        in_ult([] { EXPECT_GE(thrum_worker_self(), 0); }); // as an external kernel thread may
        return nullptr;
    });
    EXPECT_EQ(tid(), own); // the bound thread stays
}

TEST_P(Blocking, IsAPlainCallOnAnExternalThread) {
    External([] {
        const long own = tid();
        blocking([own]() -> void * {
            EXPECT_EQ(tid(), own);
            return nullptr;
        });
    }).join();
}

TEST_P(Blocking, OthersRunMeanwhile) {
    const Pipe there, back;
    const Light reader([&] {
        blocking([&]() -> void * {
            EXPECT_EQ(there.get(), 'a');
            return nullptr;
        });
        back.put('b');
    });
    there.put('a');
    EXPECT_EQ(blocking([&]() -> void * { return back.get() == 'b' ? &errno : nullptr; }) != nullptr, true);
}

// All of them must be on their way at once.
TEST_P(Blocking, CallsMayWaitForEachOther) {
    constexpr unsigned kCalls = 100;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, kCalls);
    std::vector<Light> lights;
    for (unsigned i = 0; i < kCalls; i++)
        lights.emplace_back([&] {
            blocking([&]() -> void * {
                pthread_barrier_wait(&barrier);
                return nullptr;
            });
        });
    lights.clear();
    pthread_barrier_destroy(&barrier);
}

class BlockingInTurn : public UltInTurn {}; // preemption makes threads, too

TEST_P(BlockingInTurn, ThreadsAreUsedAgain) {
    const std::size_t threads = threads_of_process();
    std::set<long> tids;
    for (int i = 0; i < 100; i++) {
        blocking([&]() -> void * {
            tids.insert(tid());
            return nullptr;
        });
        nap_ms(i < 5 ? 1 : 0);
    }
    EXPECT_LT(tids.size(), 10U);
    EXPECT_LE(threads_of_process(), threads + tids.size());
}

TEST_P(Blocking, BlocksSignalsButThoseOfFaults) {
    blocking([]() -> void * {
        sigset_t set;
        EXPECT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &set), 0);
        for (int signal = 1; signal <= SIGRTMAX; signal++) {
            const bool fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
                               signal == SIGILL || signal == SIGTRAP || signal == SIGSYS;
            const bool ours = signal != SIGKILL && signal != SIGSTOP && (signal < 32 || signal >= SIGRTMIN) &&
                              (!ULT_EMULATED || signal < 63); // which are the emulator's
            EXPECT_TRUE(!ours || sigismember(&set, signal) == (fault ? 0 : 1)) << "signal " << signal;
        }
        return nullptr;
    });
}

TEST_P(Blocking, HasItsCallersFloatingPointModes) {
    blocking([]() -> void * { return nullptr; }); // a thread that has been used before
    ASSERT_EQ(fesetround(FE_UPWARD), 0);
    blocking([]() -> void * {
        EXPECT_EQ(fegetround(), FE_UPWARD);
        fesetround(FE_DOWNWARD);
        return nullptr;
    });
    EXPECT_EQ(fegetround(), FE_UPWARD);
    ASSERT_EQ(fesetround(FE_TONEAREST), 0);
    blocking([]() -> void * {
        EXPECT_EQ(fegetround(), FE_TONEAREST);
        return nullptr;
    });
}

TEST_P(Blocking, IsNotForTasklets) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    Light(
        [] {
            EXPECT_EQ(thrum_blocking(
                          [](void *) -> void * {
                              ADD_FAILURE();
                              return nullptr;
                          },
                          nullptr, nullptr),
                      EPERM);
        },
        &attr);
}

TEST_P(Blocking, AlsoOnStacksOfSixteenKilobytes) {
    const thrum_attr_t attr = attr_stack(16384);
    Light([] { blocking([]() -> void * { return nullptr; }); }, &attr);
}

// While workers come and go.
TEST_P(Blocking, ManyAtOnce) {
    std::atomic<int> calls{0};
    std::atomic<bool> over{false};
    const Light changer([&] {
        while (!over) {
            unsigned number = 0;
            EXPECT_EQ(thrum_worker_add(&number), 0);
            thrum_yield();
            EXPECT_EQ(thrum_worker_stop(number), 0);
        }
    });
    crew(20, 2, [&](int i) {
        for (int k = 0; k < divided(100); k++) {
            const int number = 1000 * i + k;
            set_error(0);
            const void *result = blocking([&]() -> void * {
                if (k % 10 == 0)
                    nap_ms(1);
                calls++;
                errno = number;
                return const_cast<int *>(&number);
            });
            EXPECT_EQ(error_now(), number);
            EXPECT_EQ(result, &number);
        }
    });
    over = true;
    EXPECT_EQ(calls, 23 * divided(100));
}

// --- until a moment ---------------------------------------------------------------------------------------

// A call that reads a byte. `ends` tells which came last, the call or the caller that has given it up.
struct Reading {
    Pipe pipe;
    std::atomic<int> ends{0};
    static void *read(void *arg) {
        auto *reading = static_cast<Reading *>(arg);
        const char byte = reading->pipe.get();
        reading->ends++;
        errno = byte;
        return reading;
    }
};

void expect_given_up() {
    Reading reading;
    void *result = &result;
    const uint64_t moment = thrum_now() + 2 * THRUM_MS;
    EXPECT_EQ(thrum_blocking_until(Reading::read, &reading, &result, moment), ETIMEDOUT);
    EXPECT_GE(thrum_now(), moment);
    EXPECT_EQ(thrum_blocking_until(Reading::read, &reading, &result, 0), ETIMEDOUT);
    EXPECT_EQ(result, &result); // not touched
    EXPECT_EQ(reading.ends, 0);
    reading.pipe.put('a');
    reading.pipe.put('b'); // both were made
    EXPECT_TRUE(eventually([&] { return reading.ends == 2; }));
}

void expect_in_time() {
    Reading reading;
    void *result = nullptr;
    reading.pipe.put('a');
    set_error(0);
    EXPECT_EQ(thrum_blocking_until(Reading::read, &reading, &result, thrum_now() + 20 * THRUM_S), 0);
    EXPECT_EQ(error_now(), 'a');
    EXPECT_EQ(result, &reading);
    EXPECT_EQ(reading.ends, 1);
}

TEST_P(Blocking, IsWaitedForUntilADeadline) {
    expect_given_up();
    expect_in_time();
    in_ult(expect_given_up);
    in_ult(expect_in_time);
    External(expect_given_up).join();
    External(expect_in_time).join();
}

// Ends and deadlines at the same time: each caller has a result or none, and a thread's next call is its own.
TEST_P(Blocking, EndsMeetDeadlines) {
    std::atomic<int> made{0}, in_time{0}, late{0};
    crew(8, 2, [&](int i) {
        for (int k = 0; k < divided(200); k++) {
            const uint64_t moment = thrum_now() + static_cast<uint64_t>(i * k % 7) * 10 * THRUM_US;
            void *result = nullptr;
            const int error = thrum_blocking_until(
                [](void *arg) -> void * {
                    static_cast<std::atomic<int> *>(arg)->fetch_add(1);
                    return arg;
                },
                &made, &result, moment);
            EXPECT_TRUE(error == 0 || error == ETIMEDOUT) << error;
            EXPECT_EQ(result, error == 0 ? &made : nullptr);
            (error == 0 ? in_time : late)++;
        }
    });
    EXPECT_TRUE(eventually([&] { return made == in_time + late; }));
}

ULT_OVER_WORKERS(Blocking);
ULT_OVER_WORKERS(BlockingInTurn);

// --- life of the threads ----------------------------------------------------------------------------------

int init(unsigned workers) {
    const thrum_config config{workers, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}}; // which makes no threads later
    return thrum_init(&config);
}

class BlockingPlain : public UltPlain {
  protected:
    void SetUp() override {
        keep_ = blocking_keep_ns;
        UltPlain::SetUp();
    }
    void TearDown() override {
        blocking_keep_ns = keep_;
        faults_clear();
        UltPlain::TearDown();
    }

  private:
    uint64_t keep_ = 0;
};

void *nothing(void *) {
    return nullptr;
}

void *call_returns_itself(void *arg) {
    return arg;
}

TEST_F(BlockingPlain, WithoutARuntimeItIsAPlainCall) {
    const long own = tid();
    EXPECT_NE(blocking([&]() -> void * { return tid() == own ? const_cast<long *>(&own) : nullptr; }),
              nullptr);
    EXPECT_EQ(thrum_workers(), 0U);
}

// Only the thread itself ends, and it may be gone before its caller looks again.
TEST_F(BlockingPlain, IsWaitedForUntilADeadlineWithoutARuntime) {
    blocking_keep_ns = THRUM_MS;
    const std::size_t threads = threads_of_process();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < divided(300); i++) {
            const uint64_t moment =
                i % 3 == 0 ? 0 : thrum_now() + static_cast<uint64_t>(i % 7) * 20 * THRUM_US;
            void *result = nullptr;
            const int error = thrum_blocking_until(call_returns_itself, &result, &result, moment);
            EXPECT_TRUE(error == 0 || error == ETIMEDOUT) << error;
            if (i % 50 == 0)
                nap_ms(3); // all have ended
        }
        EXPECT_TRUE(eventually([&] { return threads_of_process() == threads; }));
        ASSERT_EQ(init(1), 0); // and what one has left is joined
        ASSERT_EQ(thrum_fini(), 0);
    }
}

TEST_F(BlockingPlain, IdleThreadsEndAfterAWhile) {
    ASSERT_EQ(init(2), 0);
    const std::size_t threads = threads_of_process();
    blocking_keep_ns = 20 * THRUM_MS;
    for (int round = 0; round < 3; round++) {
        std::atomic<std::size_t> most{0};
        std::vector<Light> lights;
        for (int i = 0; i < 10; i++)
            lights.emplace_back([&] {
                blocking([&]() -> void * {
                    most = std::max(most.load(), threads_of_process());
                    nap_ms(5);
                    return nullptr;
                });
            });
        lights.clear();
        EXPECT_GT(most, threads);
        EXPECT_TRUE(eventually([&] { return threads_of_process() == threads; }));
    }
    ASSERT_EQ(thrum_fini(), 0);
}

// Each ends, or is used once more, at about the same moment.
TEST_F(BlockingPlain, EndingMeetsUsing) {
    ASSERT_EQ(init(3), 0);
    blocking_keep_ns = 50 * THRUM_US;
    crew(8, 0, [](int i) {
        for (int k = 0; k < divided(300); k++) {
            EXPECT_EQ(thrum_blocking(nothing, nullptr, nullptr), 0);
            thrum_sleep(static_cast<uint64_t>(30 + (i * 7 + k) % 60) * THRUM_US);
        }
    });
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(BlockingPlain, IdleThreadsUseNoCpu) {
    ASSERT_EQ(init(2), 0);
    std::vector<Light> lights;
    for (int i = 0; i < 20; i++)
        lights.emplace_back([] {
            blocking([]() -> void * {
                nap_ms(5);
                return nullptr;
            });
        });
    lights.clear();
    nap_ms(50);
    timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nap_ms(300);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    EXPECT_LT((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec, 5000000);
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(BlockingPlain, WithoutAThreadItSaysSo) {
    ASSERT_EQ(init(2), 0);
    faults.create.after(0, INT_MAX, EAGAIN);
    static std::atomic<int> called;
    called = 0;
    const auto count = [](void *) -> void * {
        called++;
        return nullptr;
    };
    EXPECT_EQ(thrum_blocking(count, nullptr, nullptr), EAGAIN);
    in_ult([&] { EXPECT_EQ(thrum_blocking(count, nullptr, nullptr), EAGAIN); });
    EXPECT_EQ(called, 0);
    faults_clear();
    EXPECT_EQ(thrum_blocking(count, nullptr, nullptr), 0);
    faults.create.after(0, INT_MAX, EAGAIN);
    for (int i = 0; i < 10; i++) { // one is there: it will do, when it has come back
        EXPECT_TRUE(eventually([&] { return thrum_blocking(count, nullptr, nullptr) == 0; }));
    }
    EXPECT_EQ(called, 11);
    // It is busy: another call does not have to wait for it.
    const Pipe pipe;
    std::atomic<bool> there{false};
    Light reader([&] {
        EXPECT_TRUE(eventually([&] {
            const Call read_one = [&]() -> void * {
                there = true;
                return pipe.get() == 'x' ? nullptr : &called;
            };
            return thrum_blocking(call, const_cast<Call *>(&read_one), nullptr) == 0;
        }));
    });
    EXPECT_TRUE(eventually([&] { return there.load(); }));
    EXPECT_EQ(thrum_blocking(count, nullptr, nullptr), EAGAIN);
    pipe.put('x');
    reader.join();
    faults_clear();
    ASSERT_EQ(thrum_fini(), 0);
}

// The caller never resumes, but what it called is over, and could use the caller's stack until then.
TEST_F(BlockingPlain, TheRuntimesEndWaitsForCalls) {
    for (const unsigned workers : {1U, 2U, 8U}) {
        ASSERT_EQ(init(workers), 0);
        static std::atomic<int> begun, over;
        begun = over = 0;
        for (int i = 0; i < 5; i++)
            ASSERT_EQ(thrum_spawn(
                          nullptr, nullptr,
                          [](void *) -> void * {
                              std::array<char, 100> bytes{};
                              blocking([&]() -> void * {
                                  begun++;
                                  nap_ms(30);
                                  bytes.fill('x');
                                  over++;
                                  return nullptr;
                              });
                              return nullptr;
                          },
                          nullptr),
                      0);
        EXPECT_TRUE(eventually([] { return begun == 5; }));
        ASSERT_EQ(thrum_fini(), 0);
        EXPECT_EQ(over, 5);
    }
}

TEST_F(BlockingPlain, InAChildOfFork) {
    if (ULT_EMULATED)
        GTEST_SKIP() << "the emulator's child of a fork can start no threads";
    ASSERT_EQ(init(2), 0);
    EXPECT_EQ(thrum_blocking(nothing, nullptr, nullptr), 0); // one is idle
    const int status = in_child([] {
        const long own = tid();
        if (blocking([&]() -> void * { return tid() == own ? nullptr : const_cast<long *>(&own); }) !=
            nullptr)
            return 1; // a plain call
        if (init(2) != 0 || thrum_blocking(nothing, nullptr, nullptr) != 0)
            return 2;
        in_ult([] { EXPECT_EQ(thrum_blocking(nothing, nullptr, nullptr), 0); });
        return thrum_fini() == 0 && !HasFailure() ? 0 : 3;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    ASSERT_EQ(thrum_fini(), 0);
}

// The call forks: its return in the child ends that process, and the caller resumes in the parent alone.
TEST_F(BlockingPlain, OfAFork) {
    ASSERT_EQ(init(2), 0);
    static std::atomic<pid_t> child;
    for (int round = 0; round < 2;
         round++) { // by a thread that was made for it, and by one that was used before
        child = 0;
        blocking([]() -> void * {
            const pid_t pid = fork();
            if (pid == 0)
                alarm(20);
            else
                child = pid;
            return nullptr;
        });
        int status = 1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    ASSERT_EQ(thrum_fini(), 0);
}

} // namespace
