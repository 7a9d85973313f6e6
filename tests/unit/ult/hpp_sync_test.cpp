// SPDX-License-Identifier: Apache-2.0
//
// thrum::mutex and its relatives under the standard's locks, condition variables with stop tokens, semaphores, latches,
// barriers, events, once.
#include <sys/wait.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <csignal>
#include <limits>
#include <memory>
#include <shared_mutex>

#include "checked.h"
#include "hpp.hpp"

namespace {

class HppMutex : public Hpp {};

// So many threads add to an unguarded number under the mutex.
template <class Mutex, class Lock>
void add_under(Mutex &mutex, Lock lock) {
    long count = 0;
    const long each = 2000 / kStressDivisor;
    {
        std::vector<thrum::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([&] {
                for (long k = 0; k < each; k++) {
                    const auto locked = lock(mutex);
                    count++;
                }
            });
        External outside([&] {
            for (long k = 0; k < each; k++) {
                const auto locked = lock(mutex);
                count++;
            }
        });
    }
    EXPECT_EQ(count, 5 * each);
}

TEST_P(HppMutex, ExcludesUnderAllLocks) {
    thrum::mutex mutex;
    thrum::recursive_mutex recursive;
    thrum::shared_mutex shared;
    add_under(mutex, [](auto &m) { return std::unique_lock(m); });
    add_under(recursive, [](auto &m) { return std::pair(std::unique_lock(m), std::unique_lock(m)); });
    add_under(shared, [](auto &m) { return std::unique_lock(m); });
    std::pair<thrum::mutex &, thrum::shared_mutex &> both(mutex, shared);
    struct Both {
        explicit Both(std::pair<thrum::mutex &, thrum::shared_mutex &> &two) : lock(two.first, two.second) {}
        std::scoped_lock<thrum::mutex, thrum::shared_mutex> lock;
    };
    add_under(both, [](auto &two) { return Both(two); });
}

TEST_P(HppMutex, TriesAndWaitsNoLongerThan) {
    everywhere([] {
        thrum::timed_mutex mutex;
        thrum::shared_timed_mutex shared;
        mutex.lock();
        shared.lock();
        thrum::thread([&] {
            EXPECT_FALSE(mutex.try_lock());
            EXPECT_FALSE(mutex.try_lock_for(1ms));
            EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now() + 1ms));
            EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() + 1ms));
            EXPECT_FALSE(std::shared_lock(shared, std::try_to_lock).owns_lock());
            EXPECT_FALSE(std::shared_lock(shared, 1ms).owns_lock());
            EXPECT_FALSE(std::unique_lock(shared, std::chrono::system_clock::now() + 1ms).owns_lock());
        }).join();
        shared.unlock();
        mutex.unlock();
        EXPECT_TRUE(std::unique_lock(mutex, 1h).owns_lock());
        EXPECT_TRUE(std::unique_lock(shared, std::chrono::hours::max()).owns_lock());
        EXPECT_TRUE(std::shared_lock(shared, std::chrono::system_clock::now() + 1h).owns_lock());
    });
}

TEST_P(HppMutex, ReadersShare) {
    thrum::shared_mutex mutex;
    thrum::latch both(2);
    const auto read = [&] {
        const std::shared_lock lock(mutex);
        both.arrive_and_wait();
    };
    const thrum::thread one(read), two(read);
}

TEST_P(HppMutex, OnceIsOnce) {
    thrum::once_flag flag;
    std::atomic<int> calls{0}, thrown{0};
    {
        std::vector<thrum::thread> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back([&] {
                try {
                    thrum::call_once(
                        flag,
                        [&](int by) {
                            if (calls.fetch_add(by) == 0)
                                throw Thrown();
                        },
                        1);
                } catch (const Thrown &) {
                    thrown++;
                }
            });
    }
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(thrown, 1);
}

TEST_P(HppMutex, OnceIsWaitedForUntilADeadline) {
    in_ult([] {
        thrum::once_flag flag;
        thrum::event begun, end;
        thrum::thread first([&] {
            thrum::call_once(flag, [&] {
                begun.set();
                end.wait();
            });
        });
        begun.wait();
        int calls = 0;
        const auto count = [&calls](int by) { calls += by; };
        EXPECT_FALSE(thrum::call_once_for(flag, 1ms, count, 1));
        EXPECT_FALSE(thrum::call_once_until(flag, std::chrono::steady_clock::now() + 1ms, count, 1));
        EXPECT_FALSE(thrum::call_once_until(flag, std::chrono::system_clock::now() + 1ms, count, 1));
        end.set();
        EXPECT_TRUE(thrum::call_once_for(flag, 1h, count, 1));
        EXPECT_EQ(calls, 0) << "the first has called";
        thrum::once_flag another;
        EXPECT_THROW(thrum::call_once_for(another, 0s, [] { throw Thrown(); }), Thrown);
        EXPECT_TRUE(thrum::call_once_until(another, std::chrono::steady_clock::time_point::min(), count, 2));
        EXPECT_EQ(calls, 2);
    });
}

ULT_OVER_WORKERS(HppMutex);

// --- unlocking --------------------------------------------------------------------------------------------

class HppUnlock : public UltPlain {};

// Awaits the future, and tells when the coroutine is suspended.
struct Told {
    decltype(std::declval<thrum::future<void> &>().operator co_await()) inner;
    std::atomic<bool> *suspended;
    bool await_ready() { return inner.await_ready(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) {
        std::atomic<bool> *const told =
            suspended; // it may be resumed, and this object be gone, before the return
        const bool is_suspended = inner.await_suspend(coroutine);
        *told = true;
        return is_suspended;
    }
    void await_resume() { inner.await_resume(); }
};

template <class Mutex>
thrum::task<> holds_it_and_awaits(Mutex &mutex, thrum::future<void> first, std::atomic<bool> &suspended) {
    const std::lock_guard lock(mutex);
    co_await Told{first.operator co_await(), &suspended};
}

// The next new thread might get the descriptor of the thread that has locked it, and be taken for that: others are
// created first.
template <class Mutex>
int unlock_on_another_thread() {
    const thrum::runtime runtime(2);
    Mutex mutex;
    thrum::promise<void> promise;
    thrum::event never;
    std::atomic<bool> suspended{false};
    const thrum::future<void> result =
        thrum::async(holds_it_and_awaits(mutex, promise.get_future(), suspended));
    while (!suspended)
        thrum::this_thread::yield();
    std::vector<thrum::thread> others;
    for (int i = 0; i < 200; i++)
        others.emplace_back([&never] { never.wait(); });
    promise.set_value();
    result.wait();
    never.set();
    return 0;
}

template <class Mutex>
void expect_end_where_another_unlocks() {
    const std::string said = stderr_of([] {
        const int status = in_child(unlock_on_another_thread<Mutex>);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
    });
    EXPECT_NE(said.find("co_await"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(HppUnlock, ACoroutineThatIsResumedElsewhereIsTold) {
    expect_end_where_another_unlocks<thrum::recursive_mutex>();
    if (library_is_checked())
        expect_end_where_another_unlocks<thrum::mutex>();
}

// A semaphore belongs to no thread.
thrum::task<> adds_under(thrum::binary_semaphore &lock, int &number) {
    for (int i = 0; i < 50; i++) {
        lock.acquire();
        const int old = number;
        co_await thrum::async([] { thrum::this_thread::yield(); });
        number = old + 1;
        lock.release();
    }
}

TEST_F(HppUnlock, ACoroutineMayHoldASemaphore) {
    const thrum::runtime runtime(2);
    thrum::binary_semaphore lock(1);
    int number = 0;
    std::vector<thrum::future<void>> tasks;
    for (int i = 0; i < 3; i++)
        tasks.push_back(thrum::async(adds_under(lock, number)));
    for (thrum::future<void> &task : tasks)
        task.get();
    EXPECT_EQ(number, 150);
}

class HppCondition : public Hpp {};

TEST_P(HppCondition, PingPong) {
    everywhere([] {
        thrum::mutex mutex;
        thrum::condition_variable turned;
        int turn = 0;
        const auto play = [&](int mine) {
            for (int i = 0; i < 500 / kStressDivisor; i++) {
                std::unique_lock lock(mutex);
                turned.wait(lock, [&] { return turn == mine; });
                turn = 1 - mine;
                turned.notify_one();
            }
        };
        thrum::thread other([&] { play(1); });
        play(0);
    });
}

TEST_P(HppCondition, WaitsNoLongerThan) {
    everywhere([] {
        thrum::recursive_mutex mutex;
        thrum::condition_variable never;
        std::unique_lock lock(mutex);
        EXPECT_EQ(never.wait_for(lock, 1ms), thrum::cv_status::timeout);
        EXPECT_EQ(never.wait_until(lock, std::chrono::steady_clock::now() + 1ms), thrum::cv_status::timeout);
        EXPECT_EQ(never.wait_until(lock, std::chrono::system_clock::now() + 1ms), thrum::cv_status::timeout);
        EXPECT_FALSE(never.wait_for(lock, 1ms, [] { return false; }));
        EXPECT_FALSE(never.wait_until(lock, std::chrono::system_clock::now() + 1ms, [] { return false; }));
        EXPECT_TRUE(never.wait_for(lock, -1s, [] { return true; }));
        EXPECT_TRUE(lock.owns_lock());
    });
}

// It would return at once, without having waited: a loop around it would never end.
TEST_P(HppCondition, AWaitNeedsALockedLock) {
    everywhere([] {
        thrum::mutex mutex;
        thrum::condition_variable changed;
        std::unique_lock unlocked(mutex, std::defer_lock);
        std::unique_lock<thrum::mutex> none;
        for (auto *lock : {&unlocked, &none}) {
            const auto error_of = [](auto wait) {
                try {
                    wait();
                } catch (const std::system_error &error) {
                    return error.code().value();
                }
                return 0;
            };
            EXPECT_EQ(error_of([&] { changed.wait(*lock); }), EPERM);
            EXPECT_EQ(error_of([&] { changed.wait_for(*lock, 1ms); }), EPERM);
            EXPECT_EQ(error_of([&] { changed.wait_until(*lock, std::chrono::system_clock::now()); }), EPERM);
            EXPECT_EQ(error_of([&] { changed.wait(*lock, [] { return false; }); }), EPERM);
            EXPECT_EQ(error_of([&] { changed.wait_for(*lock, 1ms, [] { return false; }); }), EPERM);
            EXPECT_EQ(
                error_of([&] { changed.wait(*lock, std::stop_source().get_token(), [] { return false; }); }),
                EPERM);
        }
    });
}

TEST_P(HppCondition, IsWokenByAStopToken) {
    everywhere([] {
        for (int i = 0; i < 100 / kStressDivisor + 2; i++) {
            thrum::mutex mutex;
            thrum::condition_variable changed;
            std::atomic<bool> result{true}, waiting{false};
            thrum::thread waits([&](const std::stop_token &stop) {
                std::unique_lock lock(mutex);
                waiting = true;
                result = changed.wait(lock, stop, [] { return false; });
                EXPECT_TRUE(lock.owns_lock());
            });
            if (i % 3 != 0) { // else it may be stopped at any moment
                EXPECT_TRUE(eventually([&] { return waiting.load(); }));
            }
            if (i % 2 == 0) {
                const std::lock_guard lock(mutex); // the thread that requests the stop may hold the mutex
                waits.request_stop();
            } else {
                waits.request_stop();
            }
            waits.join();
            EXPECT_FALSE(result);
        }
    });
}

TEST_P(HppCondition, WithAStopTokenTheConditionStillCounts) {
    everywhere([] {
        thrum::mutex mutex;
        thrum::condition_variable changed;
        bool ready = false;
        thrum::thread waits([&](const std::stop_token &stop) {
            std::unique_lock lock(mutex);
            EXPECT_TRUE(changed.wait(lock, stop, [&] { return ready; }));
            EXPECT_TRUE(changed.wait_for(lock, stop, 1h, [&] { return ready; }));
            EXPECT_FALSE(changed.wait_for(lock, stop, 1ms, [] { return false; }));
            EXPECT_FALSE(
                changed.wait_until(lock, stop, std::chrono::system_clock::now() + 1ms, [] { return false; }));
            EXPECT_FALSE(changed.wait_for(lock, std::stop_token(), 1ms, [] { return false; }));
        });
        thrum::this_thread::yield();
        {
            const std::lock_guard lock(mutex);
            ready = true;
        }
        changed.notify_all();
        waits.join();
        std::stop_source stopped;
        stopped.request_stop();
        std::unique_lock lock(mutex);
        EXPECT_FALSE(changed.wait(lock, stopped.get_token(), [] { return false; }));
        EXPECT_TRUE(changed.wait(lock, stopped.get_token(), [] { return true; }));
        int asked = 0; // once it is true it is not asked again
        EXPECT_TRUE(
            changed.wait_for(lock, std::stop_source().get_token(), 1ms, [&] { return ++asked == 2; }));
        EXPECT_EQ(asked, 2);
    });
}

ULT_OVER_WORKERS(HppCondition);

class HppGates : public Hpp {};

TEST_P(HppGates, SemaphoresLetSoManyIn) {
    everywhere([] {
        thrum::counting_semaphore places(2);
        std::atomic<int> inside{0}, most{0};
        {
            std::vector<thrum::thread> threads;
            for (int i = 0; i < 8; i++)
                threads.emplace_back([&] {
                    places.acquire();
                    const int now = ++inside;
                    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);)
                        ;
                    thrum::this_thread::yield();
                    inside--;
                    places.release();
                });
        }
        EXPECT_LE(most, 2);
        thrum::binary_semaphore none(0);
        EXPECT_FALSE(none.try_acquire());
        EXPECT_FALSE(none.try_acquire_for(1ms));
        EXPECT_FALSE(none.try_acquire_until(std::chrono::system_clock::now() + 1ms));
        none.release();
        EXPECT_TRUE(none.try_acquire_for(1ms));
        EXPECT_THROW(none.release((std::ptrdiff_t{1} << 32) + 1), std::system_error);
        static_assert(thrum::counting_semaphore<5>::max() == 5);
        static_assert(!std::is_copy_assignable_v<thrum::pool> && !std::is_copy_assignable_v<thrum::runtime>);
    });
}

TEST_P(HppGates, LatchesAndEvents) {
    everywhere([] {
        thrum::latch ready(3);
        thrum::event go;
        std::atomic<int> gone{0};
        {
            std::vector<thrum::thread> threads;
            for (int i = 0; i < 3; i++)
                threads.emplace_back([&] {
                    ready.count_down();
                    go.wait();
                    gone++;
                });
            ready.wait();
            EXPECT_EQ(gone, 0);
            EXPECT_FALSE(go.wait_for(1ms));
            go.set();
        }
        EXPECT_EQ(gone, 3);
        EXPECT_TRUE(ready.try_wait());
        EXPECT_THROW(ready.count_down(), std::system_error);
        thrum::latch more(3);
        EXPECT_THROW(more.count_down(std::ptrdiff_t{1} << 32), std::system_error);
        EXPECT_FALSE(more.try_wait());
        more.count_down(3);
        EXPECT_TRUE(go.wait_until(std::chrono::system_clock::now()));
        go.reset();
        EXPECT_FALSE(go.is_set());
    });
}

TEST_P(HppGates, BarriersKeepStep) {
    constexpr int kThreads = 5;
    const int rounds = 50 / kStressDivisor + 2;
    int completed = 0;
    std::array<std::atomic<int>, kThreads> steps{};
    thrum::barrier barrier(kThreads, [&]() noexcept { completed++; });
    {
        std::vector<thrum::thread> threads;
        for (int i = 0; i < kThreads; i++)
            threads.emplace_back([&, i] {
                for (int round = 0; round < rounds; round++) {
                    steps[static_cast<std::size_t>(i)]++;
                    if (i % 2 == 0)
                        barrier.arrive_and_wait();
                    else
                        barrier.wait(barrier.arrive());
                    for (const auto &step : steps) {
                        EXPECT_GE(step, round + 1);
                        EXPECT_LE(step, round + 2);
                    }
                }
            });
    }
    EXPECT_EQ(completed, rounds);
    thrum::barrier few(2);
    few.arrive_and_drop();
    few.arrive_and_wait();
    few.arrive_and_wait(); // alone from here on
}

// The last caller gets the exception; the others are let through, and the barrier can be used again.
TEST_P(HppGates, ABarrierSurvivesACompletionThatThrows) {
    everywhere([] {
        int completed = 0;
        thrum::barrier barrier(2, [&completed] {
            if (completed++ == 0)
                throw Thrown();
        });
        std::atomic<int> thrown{0};
        const auto twice = [&] {
            for (int i = 0; i < 2; i++) {
                try {
                    barrier.arrive_and_wait();
                } catch (const Thrown &) {
                    thrown++;
                }
            }
        };
        thrum::thread other(twice);
        twice();
        other.join();
        EXPECT_EQ(thrown, 1);
        EXPECT_EQ(completed, 2);
    });
}

TEST_P(HppGates, CountsBelowZeroAreRefused) {
    const auto refuses = [](const auto &action, int error = EINVAL) {
        try {
            action();
        } catch (const std::system_error &thrown) {
            return thrown.code().value() == error;
        }
        return false;
    };
    constexpr std::ptrdiff_t kMost = THRUM_SEM_MAX;
    EXPECT_TRUE(refuses([] { thrum::counting_semaphore(-1); }));
    EXPECT_TRUE(refuses([] { thrum::counting_semaphore(PTRDIFF_MIN); }));
    EXPECT_TRUE(refuses([] { thrum::counting_semaphore(kMost + 1); }));
    EXPECT_TRUE(refuses([] { thrum::binary_semaphore(2); }));
    thrum::counting_semaphore permits(0), all(kMost);
    EXPECT_TRUE(refuses([&] { permits.release(-1); }));
    EXPECT_FALSE(permits.try_acquire());
    EXPECT_TRUE(refuses([&] { all.release(); }, EOVERFLOW));
    EXPECT_TRUE(all.try_acquire());
    EXPECT_TRUE(refuses([] { thrum::latch(-1); }));
    EXPECT_TRUE(refuses([] { thrum::latch(std::ptrdiff_t{1} << 32); }));
    thrum::latch latch(2);
    EXPECT_TRUE(refuses([&] { latch.count_down(-1); }));
    EXPECT_TRUE(refuses([&] { latch.arrive_and_wait(3); }));
    EXPECT_FALSE(latch.try_wait());
    EXPECT_TRUE(refuses([] { thrum::barrier<>(-1); }));
    thrum::barrier barrier(2);
    EXPECT_TRUE(refuses([&] { static_cast<void>(barrier.arrive(3)); }));
    EXPECT_TRUE(refuses([&] { static_cast<void>(barrier.arrive(0)); }));
    static_cast<void>(barrier.arrive(1));
    EXPECT_TRUE(refuses([&] { static_cast<void>(barrier.arrive(2)); }));
    barrier.arrive_and_wait();
}

ULT_OVER_WORKERS(HppGates);

// --- moments and spans of all kinds -----------------------------------------------------------------------

// A user's clock: its numbers may be of any type, and it goes as it is told to.
template <class Rep, class Period>
struct OwnClock {
    using rep = Rep;
    using period = Period;
    using duration = std::chrono::duration<Rep, Period>;
    using time_point = std::chrono::time_point<OwnClock>;
    static constexpr bool is_steady = false;
    static time_point now() { return time_point(duration(ticks)); }
    static inline std::atomic<Rep> ticks{};
};
using Seconds = OwnClock<double, std::ratio<1>>;
using Days = OwnClock<int, std::ratio<86400>>;
using Thirds = OwnClock<std::int64_t, std::ratio<1, 3>>;
using Unsigned = OwnClock<std::uint64_t, std::milli>;
using Small = OwnClock<signed char, std::ratio<1>>;
using Tiny = OwnClock<std::int64_t, std::atto>;
using Eras = OwnClock<std::int64_t, std::ratio<31556952LL * 1000000000>>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(HppTime, SpansSaturate) {
    using namespace std::chrono;
    using thrum::detail::nanoseconds_of;
    EXPECT_EQ(nanoseconds_of(0ns), 0U);
    EXPECT_EQ(nanoseconds_of(-1ns), 0U);
    EXPECT_EQ(nanoseconds_of(1ns), 1U);
    EXPECT_EQ(nanoseconds_of(1ms), 1000000U);
    EXPECT_EQ(nanoseconds_of(1h + 1ns), 3600000000001U);
    EXPECT_EQ(nanoseconds_of(nanoseconds::max()), static_cast<std::uint64_t>(INT64_MAX));
    EXPECT_EQ(nanoseconds_of(nanoseconds::min()), 0U);
    EXPECT_EQ(nanoseconds_of(hours::max()), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(hours::min()), 0U);
    EXPECT_EQ(nanoseconds_of(duration<std::uint64_t, std::nano>::max()), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(duration<std::uint64_t, std::milli>::max()), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(duration<signed char>(127)), 127000000000U);
    EXPECT_EQ(nanoseconds_of(Eras::duration::max()), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(Eras::duration(1)), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(Eras::duration::min()), 0U);
    EXPECT_EQ(nanoseconds_of(Tiny::duration(1)), 1U) << "rounded up";
    EXPECT_EQ(nanoseconds_of(Tiny::duration::max()), 9223372037U);
    EXPECT_EQ(nanoseconds_of(Thirds::duration(1)), 333333334U);
    EXPECT_EQ(nanoseconds_of(Thirds::duration::max()), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(duration<double>(1.5)), 1500000000U);
    EXPECT_EQ(nanoseconds_of(duration<double, std::milli>(1)), 1000000U);
    EXPECT_EQ(nanoseconds_of(duration<float, std::micro>(0.25F)), 250U);
    EXPECT_EQ(nanoseconds_of(duration<double, std::nano>(0.1)), 1U);
    EXPECT_EQ(nanoseconds_of(duration<long double>(1e300L)), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(duration<double>(kInfinity)), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(duration<double>(-kInfinity)), 0U);
    EXPECT_EQ(nanoseconds_of(duration<double>(kNan)), 0U);
    EXPECT_EQ(nanoseconds_of(duration<double>::max()), UINT64_MAX);
    EXPECT_EQ(nanoseconds_of(duration<double>::min()), 0U); // of a floating type it is negative
    EXPECT_EQ(thrum::detail::deadline_in(UINT64_MAX), UINT64_MAX);
    EXPECT_EQ(thrum::detail::deadline_in(UINT64_MAX - 1), UINT64_MAX);
}

template <class Clock, class Rep>
std::uint64_t left(Rep now, Rep end) {
    Clock::ticks = now;
    return thrum::detail::nanoseconds_until(typename Clock::time_point(typename Clock::duration(end)));
}

TEST(HppTime, DeadlinesSaturate) {
    using std::chrono::time_point;
    constexpr auto most = std::numeric_limits<std::int64_t>::max(),
                   least = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(left<Seconds>(1.0, 2.5), 1500000000U);
    EXPECT_EQ(left<Seconds>(2.5, 2.5), 0U);
    EXPECT_EQ(left<Seconds>(0.1, std::nextafter(0.1, 1)), 1U) << "it has not come";
    EXPECT_EQ(left<Seconds>(std::nextafter(0.1, 1), 0.1), 0U);
    EXPECT_EQ(left<Seconds>(1.0, kNan), 0U);
    EXPECT_EQ(left<Seconds>(1.0, kInfinity), UINT64_MAX);
    EXPECT_EQ(left<Seconds>(1.0, -kInfinity), 0U);
    EXPECT_EQ(left<Seconds>(-kInfinity, 1.0), UINT64_MAX);
    EXPECT_EQ(left<Seconds>(-1e300, 1e300), UINT64_MAX);
    constexpr int days = 700000; // since the year 1, as no number of nanoseconds is
    EXPECT_EQ(left<Days>(days, days + 1), 86400000000000U);
    EXPECT_EQ(left<Days>(days, days - 1), 0U);
    EXPECT_EQ(left<Days>(INT_MIN, INT_MAX), UINT64_MAX);
    EXPECT_EQ(left<Days>(INT_MAX, INT_MIN), 0U);
    EXPECT_EQ(left<Thirds>(most, most), 0U);
    EXPECT_EQ(left<Thirds>(least, most), UINT64_MAX);
    EXPECT_EQ(left<Thirds>(most, least), 0U);
    EXPECT_EQ(left<Thirds>(std::int64_t{0}, std::int64_t{3}), 1000000000U);
    EXPECT_EQ(left<Unsigned>(std::uint64_t{5}, std::uint64_t{4}), 0U);
    EXPECT_EQ(left<Unsigned>(std::uint64_t{0}, UINT64_MAX), UINT64_MAX);
    EXPECT_EQ(left<Unsigned>(UINT64_MAX - 1, UINT64_MAX), 1000000U);
    EXPECT_EQ((left<Small, signed char>(-128, 127)), 255000000000U);
    EXPECT_EQ(left<Tiny>(least, most), 18446744073U);
    EXPECT_EQ(left<Tiny>(std::int64_t{1}, std::int64_t{2}), 1U);
    EXPECT_EQ(left<Eras>(least, most), UINT64_MAX);
    // In other units than the clock's.
    Days::ticks = days;
    EXPECT_EQ(thrum::detail::nanoseconds_until(time_point<Days, std::chrono::nanoseconds>::max()), 0U);
    EXPECT_EQ(thrum::detail::nanoseconds_until(time_point<Days, std::chrono::hours>::max()), UINT64_MAX);
    const time_point<Days, std::chrono::milliseconds> next(24h * (days + 1));
    EXPECT_EQ(thrum::detail::nanoseconds_until(next), 86400000000000U);
}

class HppTimes : public Hpp {};

// All that can wait, with nothing to wait for.
template <class Span>
void expect_no_wait_for(const Span &span) {
    thrum::mutex mutex;
    thrum::shared_mutex shared;
    thrum::condition_variable condition;
    thrum::event event;
    thrum::counting_semaphore none(0);
    thrum::channel<int> channel;
    thrum::promise<int> promise;
    const thrum::future<int> future = promise.get_future();
    thrum::this_thread::sleep_for(span);
    const std::lock_guard held(shared);
    std::unique_lock lock(mutex);
    External([&] {
        EXPECT_FALSE(mutex.try_lock_for(span));
        EXPECT_FALSE(shared.try_lock_for(span));
        EXPECT_FALSE(shared.try_lock_shared_for(span));
    });
    EXPECT_EQ(condition.wait_for(lock, span), std::cv_status::timeout);
    EXPECT_FALSE(condition.wait_for(lock, span, [] { return false; }));
    EXPECT_FALSE(condition.wait_for(lock, std::stop_token(), span, [] { return false; }));
    EXPECT_FALSE(event.wait_for(span));
    EXPECT_FALSE(none.try_acquire_for(span));
    EXPECT_FALSE(channel.receive_for(span));
    EXPECT_FALSE(channel.send_for(1, span));
    EXPECT_EQ(future.wait_for(span), thrum::future_status::timeout);
    EXPECT_FALSE(thrum::when_any_for(span, event, none));
    EXPECT_FALSE(thrum::when_any_for(span, std::span(&event, 1)));
}

template <class Moment>
void expect_no_wait_until(const Moment &moment) {
    thrum::mutex mutex;
    thrum::shared_mutex shared;
    thrum::condition_variable condition;
    thrum::event event;
    thrum::counting_semaphore none(0);
    thrum::channel<int> channel;
    thrum::promise<int> promise;
    const thrum::future<int> future = promise.get_future();
    thrum::this_thread::sleep_until(moment);
    const std::lock_guard held(shared);
    std::unique_lock lock(mutex);
    External([&] {
        EXPECT_FALSE(mutex.try_lock_until(moment));
        EXPECT_FALSE(shared.try_lock_until(moment));
        EXPECT_FALSE(shared.try_lock_shared_until(moment));
    });
    EXPECT_EQ(condition.wait_until(lock, moment), std::cv_status::timeout);
    EXPECT_FALSE(condition.wait_until(lock, moment, [] { return false; }));
    EXPECT_FALSE(condition.wait_until(lock, std::stop_token(), moment, [] { return false; }));
    EXPECT_FALSE(event.wait_until(moment));
    EXPECT_FALSE(none.try_acquire_until(moment));
    EXPECT_FALSE(channel.receive_until(moment));
    EXPECT_FALSE(channel.send_until(1, moment));
    EXPECT_EQ(future.wait_until(moment), thrum::future_status::timeout);
    EXPECT_FALSE(thrum::when_any_until(moment, event, none));
    EXPECT_FALSE(thrum::when_any_until(moment, std::span(&event, 1)));
}

TEST_P(HppTimes, WhatIsPastIsNotWaitedFor) {
    everywhere([] {
        expect_no_wait_for(std::chrono::hours::min());
        expect_no_wait_for(std::chrono::duration<double>(kNan));
        expect_no_wait_until(std::chrono::steady_clock::time_point::min());
        expect_no_wait_until(std::chrono::system_clock::time_point::min());
    });
    Seconds::ticks = 5;
    expect_no_wait_until(Seconds::time_point(Seconds::duration(kNan)));
    expect_no_wait_until(Seconds::time_point(Seconds::duration(5)));
    expect_no_wait_until(Seconds::time_point::min());
}

// Until it comes, however far away the end of the wait is.
TEST_P(HppTimes, WhatIsFarAwayIsWaitedFor) {
    Days::ticks = INT_MIN;
    everywhere([] {
        const auto comes = [](const auto &wait) {
            thrum::event event;
            thrum::thread sets(thrum::attributes().queued(), [&] {
                thrum::this_thread::sleep_for(200us);
                event.set();
            });
            EXPECT_TRUE(wait(event));
        };
        const auto comes_for = [&](auto span) {
            comes([span](thrum::event &event) { return event.wait_for(span); });
        };
        const auto comes_until = [&](auto moment) {
            comes([moment](thrum::event &event) { return event.wait_until(moment); });
            comes([moment](thrum::event &event) { return thrum::when_any_until(moment, event).has_value(); });
        };
        comes_for(std::chrono::nanoseconds::max());
        comes_for(std::chrono::hours::max());
        comes_for(std::chrono::duration<double>(kInfinity));
        comes_for(std::chrono::duration<double>::max());
        comes_until(std::chrono::steady_clock::time_point::max());
        comes_until(std::chrono::system_clock::time_point::max());
        comes_until(std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>::max());
        comes_until(std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>>::max());
        comes_until(Days::time_point::max());
    });
}

// It is asked again as long as it says that the moment has not come: this one goes faster each time.
TEST_P(HppTimes, AClockOfTheUsersIsAsked) {
    everywhere([] {
        using Clock = OwnClock<std::int64_t, std::micro>;
        Clock::ticks = 0;
        thrum::thread goes(thrum::attributes().queued(), [] {
            for (int i = 0; i < 5; i++) {
                thrum::this_thread::sleep_for(200us);
                Clock::ticks += 100;
            }
        });
        thrum::event never;
        const Clock::time_point end(Clock::duration(500));
        EXPECT_FALSE(never.wait_until(end));
        EXPECT_GE(Clock::now(), end);
    });
}

ULT_OVER_WORKERS(HppTimes);

} // namespace
