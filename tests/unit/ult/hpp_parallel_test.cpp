// SPDX-License-Identifier: Apache-2.0
//
// thrum::branch, task_group, and the loops and sums made of them.
#include <array>
#include <climits>
#include <memory>
#include <numeric>

#include "faults.hpp"
#include "hpp.hpp"

namespace {

class HppBranch : public Hpp {};

int fib(int n) {
    if (n < 2)
        return n;
    thrum::branch one([n] { return fib(n - 1); });
    const int two = fib(n - 2);
    return one.join() + two;
}

TEST_P(HppBranch, ForksAndJoins) {
    everywhere([] { EXPECT_EQ(fib(ULT_TSAN ? 10 : 15), ULT_TSAN ? 55 : 610); });
}

TEST_P(HppBranch, ReturnsWhatItsFunctionDoes) {
    everywhere([] {
        thrum::branch moved([held = Counted(5)]() mutable { return std::move(held); });
        EXPECT_EQ(moved.join().value(), 5);
        int place = 0;
        thrum::branch reference([&place]() -> int & { return place; });
        EXPECT_EQ(&reference.join(), &place);
        thrum::branch throws([]() -> int { throw Thrown("in a branch"); });
        thrum::event end;
        thrum::branch waits([&end] {
            end.wait();
            return 8;
        });
        EXPECT_FALSE(waits.wait_for(1ms));
        EXPECT_FALSE(waits.wait_until(std::chrono::system_clock::now() + 1ms));
        end.set();
        EXPECT_TRUE(waits.wait_for(1h));
        EXPECT_TRUE(waits.wait_until(std::chrono::steady_clock::time_point::min())) << "it has ended";
        EXPECT_EQ(waits.join(), 8);
        EXPECT_TRUE(waits.wait_for(0s)) << "it was joined";
        EXPECT_THROW(throws.join(), Thrown);
        {
            const thrum::branch forgotten([] { throw Thrown(); });
        }
        thrum::branch ends_within([held = Counted()] { thrum_exit(nullptr); });
        EXPECT_THROW(ends_within.join(), thrum::future_error);
    });
}

TEST_P(HppBranch, BothAtATime) {
    everywhere([] {
        thrum::latch both(2);
        thrum::parallel_invoke([&] { both.arrive_and_wait(); }, [&] { both.arrive_and_wait(); });
        bool ended = false;
        EXPECT_THROW(thrum::parallel_invoke([] { throw Thrown(); }, [&] { ended = true; }), Thrown);
        EXPECT_TRUE(ended);
        ended = false;
        EXPECT_THROW(thrum::parallel_invoke(
                         [&] {
                             thrum::this_thread::sleep_for(1ms);
                             ended = true;
                         },
                         [] { throw Thrown(); }),
                     Thrown);
        EXPECT_TRUE(ended);
    });
}

// Its function is not called again.
TEST_P(HppBranch, IsJoinedOnce) {
    everywhere([] {
        std::atomic<int> calls{0};
        const auto error_of = [](auto &branch) {
            try {
                branch.join();
            } catch (const std::system_error &error) {
                return error.code().value();
            }
            return 0;
        };
        thrum::branch one([&] { calls++; });
        thrum::branch other(std::nothrow, [&] {
            calls++;
            throw Thrown();
        });
        EXPECT_EQ(error_of(one), 0);
        EXPECT_THROW(other.join(), Thrown);
        EXPECT_EQ(error_of(one), EINVAL);
        EXPECT_EQ(error_of(other), EINVAL);
        EXPECT_EQ(calls, 2);
    });
}

ULT_OVER_WORKERS(HppBranch);

class HppTaskGroup : public Hpp {};

TEST_P(HppTaskGroup, WaitsForAll) {
    everywhere([] {
        thrum::task_group group;
        std::atomic<int> ended{0};
        for (int round = 1; round <= 3; round++) {
            for (int i = 0; i < 50; i++)
                group.run([&ended, held = Counted()] {
                    if (held.value() == 0)
                        thrum::this_thread::yield();
                    ended++;
                });
            group.wait();
            EXPECT_EQ(ended, 50 * round);
        }
    });
}

TEST_P(HppTaskGroup, ItsThreadsMayRunMore) {
    everywhere([] {
        std::atomic<int> ended{0};
        struct Tree {
            thrum::task_group &group;
            std::atomic<int> &ended;
            void grow(int depth) const {
                ended++;
                for (int i = 0; depth > 0 && i < 2; i++)
                    group.run([this, depth] { grow(depth - 1); });
            }
        };
        {
            thrum::task_group group;
            const Tree tree{group, ended};
            tree.grow(7);
            group.wait();
            EXPECT_EQ(ended, 255);
            tree.grow(3); // the destructor waits as well
            group.wait();
        }
        EXPECT_EQ(ended, 270);
    });
}

TEST_P(HppTaskGroup, ThrowsTheFirstException) {
    everywhere([] {
        thrum::task_group group;
        std::atomic<int> ended{0};
        for (int i = 0; i < 20; i++)
            group.run([&, i] {
                ended++;
                if (i % 2 == 0)
                    throw Thrown(std::to_string(i));
            });
        EXPECT_THROW(group.wait(), Thrown);
        EXPECT_EQ(ended, 20);
        group.wait(); // it is as new
        EXPECT_FALSE(group.stopping());
        group.run([] { throw Thrown(); });
        EXPECT_TRUE(eventually([&] { return group.stopping(); }));
        group.run([held = Counted()] { thrum_exit(nullptr); });
    });
}

// Those that look at their token, at once; by whichever of the two ways.
TEST_P(HppTaskGroup, StopsItsThreads) {
    everywhere([] {
        thrum::task_group group;
        std::atomic<int> stopped{0};
        for (const bool throws : {true, false}) {
            stopped = 0;
            for (int i = 0; i < 10; i++)
                group.run([&stopped, held = Counted()](const std::stop_token &stop) {
                    EXPECT_FALSE(thrum::this_thread::sleep_for(stop, 1h));
                    stopped++;
                });
            if (throws) {
                group.run([] { throw Thrown(); });
                EXPECT_THROW(group.wait(), Thrown);
            } else {
                group.request_stop();
                EXPECT_TRUE(group.stopping());
                group.run([&](const std::stop_token &stop) { stopped += stop.stop_requested() ? 1 : 0; });
                group.wait();
            }
            EXPECT_EQ(stopped, throws ? 10 : 11);
            EXPECT_FALSE(group.stopping()) << "it is as new";
            EXPECT_FALSE(group.get_stop_token().stop_requested());
        }
    });
}

// A request before there is a token, by an exception.
TEST_P(HppTaskGroup, ATokenMadeLateIsTold) {
    thrum::task_group group;
    group.run([] { throw Thrown(); });
    EXPECT_TRUE(eventually([&] { return group.stopping(); }));
    EXPECT_TRUE(group.get_stop_token().stop_requested());
    EXPECT_THROW(group.wait(), Thrown);
}

TEST_P(HppTaskGroup, IsWaitedForInTime) {
    everywhere([] {
        thrum::task_group group;
        EXPECT_TRUE(group.wait_for(0s));
        thrum::event go;
        std::atomic<int> ended{0};
        for (int i = 0; i < 10; i++)
            group.run([&] {
                go.wait();
                ended++;
                if (ended == 10)
                    throw Thrown();
            });
        EXPECT_FALSE(group.wait_for(100us));
        EXPECT_FALSE(group.wait_until(std::chrono::system_clock::now()));
        go.set();
        EXPECT_THROW(group.wait_for(1h), Thrown);
        EXPECT_EQ(ended, 10);
        EXPECT_TRUE(group.wait_until(std::chrono::steady_clock::time_point::max()));
    });
}

TEST_P(HppTaskGroup, WithAttributes) {
    thrum::pool pool;
    thrum::scheduler all([&] { return pool.pop(); }, pool);
    all.run_on(workers() - 1);
    std::atomic<int> ended{0};
    thrum::task_group group(thrum::attributes().pool(pool));
    for (int i = 0; i < 20; i++)
        group.run([&] { ended++; });
    group.wait();
    EXPECT_EQ(ended, 20);
}

ULT_OVER_WORKERS(HppTaskGroup);

class HppParallel : public Hpp {};

TEST_P(HppParallel, ForEach) {
    everywhere([] {
        for (const std::size_t count : {0, 1, 2, 7, 100, 1001})
            for (const std::size_t grain : {0, 1, 3, 5000}) {
                std::vector<std::atomic<int>> seen(count);
                thrum::for_each(
                    seen, [](std::atomic<int> &one) { one++; }, grain);
                thrum::for_each(
                    std::size_t{0}, count, [&](std::size_t i) { seen[i]++; }, grain);
                thrum::for_each(
                    seen.begin(), seen.end(), [](auto &one) { one++; }, grain);
                EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](auto &one) { return one == 3; }))
                    << count << ", " << grain;
            }
        int array[] = {1, 2, 3};
        thrum::for_each(array, [](int &one) { one *= 2; });
        EXPECT_EQ(array[2], 6);
        std::atomic<int> sum{0};
        thrum::for_each(
            -5, 6, [&](int i) { sum += i * i; }, 2);
        EXPECT_EQ(sum, 110);
        thrum::for_each(6, -5, [&](int) { sum = 0; });
        EXPECT_EQ(sum, 110);
    });
}

// As in for_each(0, numbers.size(), f).
TEST_P(HppParallel, BoundsOfTwoTypes) {
    everywhere([] {
        std::vector<std::atomic<int>> seen(100);
        thrum::for_each(0, seen.size(), [&](auto i) {
            static_assert(std::is_same_v<decltype(i), std::size_t>);
            seen[i]++;
        });
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](auto &one) { return one == 1; }));
        EXPECT_EQ(thrum::reduce(0, seen.size(), std::size_t{0}), 4950U);
        EXPECT_EQ(thrum::reduce(-10, std::int64_t{11}, std::int64_t{0}), 0);
        EXPECT_THROW(thrum::for_each(-1, seen.size(), [&](std::size_t i) { seen[i % 100]++; }),
                     std::out_of_range);
        EXPECT_THROW(thrum::reduce(seen.size(), -1, std::size_t{0}), std::out_of_range);
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](auto &one) { return one == 1; }));
    });
}

TEST_P(HppParallel, InvokesMany) {
    everywhere([] {
        thrum::latch all(4);
        std::atomic<int> ended{0};
        const auto meet = [&] {
            all.arrive_and_wait();
            ended++;
        };
        thrum::parallel_invoke(meet, meet, meet, meet);
        EXPECT_EQ(ended, 4);
        thrum::parallel_invoke([&] { ended++; }, [&, held = Counted()]() mutable { ended++; },
                               [&] { ended++; });
        EXPECT_EQ(ended, 7);
        try {
            thrum::parallel_invoke([&] { ended++; }, [] { throw Thrown("second"); },
                                   [] { throw Thrown("third"); });
            ADD_FAILURE();
        } catch (const Thrown &thrown) {
            EXPECT_STREQ(thrown.what(), "second");
        }
        EXPECT_EQ(ended, 8);
    });
}

// Moves only, and is compared by what it holds.
struct Held {
    std::unique_ptr<unsigned> number;
    bool operator<(const Held &other) const { return *number < *other.number; }
};

TEST_P(HppParallel, Sorts) {
    everywhere([] {
        for (const std::size_t count : {0, 1, 2, 3, 100, 3001})
            for (const std::size_t grain : {0, 1, 10}) {
                std::vector<unsigned> numbers(count);
                std::generate(numbers.begin(), numbers.end(),
                              [x = 1U]() mutable { return x = x * 48271U % 1009U; });
                std::vector<unsigned> expected = numbers;
                std::sort(expected.begin(), expected.end());
                std::vector<Held> held;
                for (const unsigned number : numbers)
                    held.push_back({std::make_unique<unsigned>(number)});
                thrum::sort(held.begin(), held.end(), std::less(), grain);
                EXPECT_TRUE(
                    std::equal(held.begin(), held.end(), expected.begin(), expected.end(),
                               [](const Held &one, unsigned number) { return *one.number == number; }));
                thrum::sort(numbers, std::greater(), grain);
                EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), expected.rbegin(), expected.rend()));
            }
        std::vector<int> numbers(1000);
        std::iota(numbers.rbegin(), numbers.rend(), 0);
        std::atomic<int> compared{0};
        EXPECT_THROW(thrum::sort(numbers,
                                 [&](int a, int b) {
                                     if (++compared == 2000)
                                         throw Thrown();
                                     return a < b;
                                 }),
                     Thrown);
        EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 499500);
    });
}

// Numbers of all types, from the first to the last that there are.
TEST_P(HppParallel, ForEachNumberOfAType) {
    std::atomic<long> count{0}, sum{0};
    const auto add = [&](auto i) {
        count++;
        sum += i;
    };
    thrum::for_each(std::int8_t{-128}, std::int8_t{127}, add);
    EXPECT_EQ(count, 255);
    EXPECT_EQ(sum, -255);
    count = sum = 0;
    thrum::for_each(INT_MAX - 10, INT_MAX, add);
    EXPECT_EQ(count, 10);
    EXPECT_EQ(
        thrum::reduce(INT64_MAX - 3, INT64_MAX, std::uint64_t{0}, std::plus<>(), [](long) { return 1U; }),
        3U);
    EXPECT_EQ(thrum::detail::count(INT_MIN, INT_MAX), UINT_MAX);
    EXPECT_EQ(thrum::detail::element(INT_MIN, UINT_MAX), INT_MAX);
    EXPECT_EQ(thrum::detail::element(INT_MIN, std::size_t{1} << 31), 0);
}

TEST_P(HppParallel, Reduce) {
    everywhere([] {
        std::vector<long> numbers(1000);
        std::iota(numbers.begin(), numbers.end(), 1L);
        EXPECT_EQ(thrum::reduce(numbers.begin(), numbers.end(), 0L), 500500);
        EXPECT_EQ(thrum::reduce(
                      1, 1001, 5L, std::plus(), [](long i) { return i; }, 7),
                  500505);
        EXPECT_EQ(thrum::reduce(numbers.begin(), numbers.begin(), 3L), 3);
        // Not commutative, and of what is not trivial.
        std::string expected;
        for (int i = 0; i < 200; i++)
            expected += std::to_string(i);
        EXPECT_EQ(thrum::reduce(
                      0, 200, std::string(), std::plus(), [](int i) { return std::to_string(i); }, 3),
                  expected);
    });
}

// The first in order, and no part is still running.
TEST_P(HppParallel, ReducesARange) {
    const std::vector<int> numbers{1, 2, 3, 4, 5};
    EXPECT_EQ(thrum::reduce(numbers, 10), 25);
    EXPECT_EQ(thrum::reduce(
                  numbers, 1L, std::multiplies(), [](int i) { return 2L * i; }, 1),
              120 * 32);
}

// Of all sizes about that of a part; in place, too; the operation is not commutative.
TEST_P(HppParallel, Scans) {
    for (const std::size_t count : {0U, 1U, 2U, 7U, 8U, 9U, 16U, 100U, 1000U}) {
        std::vector<std::string> letters(count), expected(count), found(count);
        for (std::size_t i = 0; i < count; i++)
            letters[i] = static_cast<char>('a' + i % 26);
        std::inclusive_scan(letters.begin(), letters.end(), expected.begin());
        EXPECT_EQ(thrum::inclusive_scan(letters.begin(), letters.end(), found.begin()), found.end());
        EXPECT_EQ(found, expected) << count;
        const std::string init = "init";
        for (const std::size_t grain : {0U, 1U, 8U}) {
            std::inclusive_scan(letters.begin(), letters.end(), expected.begin(), std::plus(), init);
            found = letters;
            thrum::inclusive_scan(found.begin(), found.end(), found.begin(), std::plus(), init, grain);
            EXPECT_EQ(found, expected) << count;
            std::exclusive_scan(letters.begin(), letters.end(), expected.begin(), init);
            found = letters;
            thrum::exclusive_scan(found.begin(), found.end(), found.begin(), init, std::plus(), grain);
            EXPECT_EQ(found, expected) << count;
        }
    }
    std::vector<long> squares(100);
    thrum::exclusive_scan(0, 100, squares.begin(), 0L, [](long sum, long i) { return sum + i; });
    EXPECT_EQ(squares[99], 98 * 99 / 2);
    EXPECT_THROW(thrum::inclusive_scan(0, 100, squares.begin(),
                                       [](int a, int b) {
                                           if (b == 50)
                                               throw Thrown();
                                           return a + b;
                                       }),
                 Thrown);
}

TEST_P(HppParallel, ThrowsTheFirstException) {
    everywhere([] {
        std::atomic<int> running{0};
        for (int round = 0; round < 10; round++) {
            try {
                thrum::for_each(
                    0, 64,
                    [&](int i) {
                        running++;
                        thrum::this_thread::yield();
                        running--;
                        if (i % 10 == 5)
                            throw Thrown(std::to_string(i));
                    },
                    1);
                ADD_FAILURE() << "nothing was thrown";
            } catch (const Thrown &thrown) {
                EXPECT_STREQ(thrown.what(), "5");
            }
            EXPECT_EQ(running, 0);
            EXPECT_THROW(thrum::reduce(
                             0, 64, 0, std::plus(), [](int i) { return i == 40 ? throw Thrown() : i; }, 1),
                         Thrown);
        }
    });
}

// With no memory for threads the caller does it all.
TEST_P(HppParallel, WithoutMemoryForThreads) {
    thrum::event go;
    std::vector<thrum::thread> threads;
    faults.mmap.after(0, 1 << 30, ENOMEM);
    try {
        for (int i = 0; i < 100000; i++)
            threads.emplace_back([&] { go.wait(); });
        ADD_FAILURE() << "there was always memory";
    } catch (const std::system_error &error) {
        EXPECT_EQ(error.code(), std::errc::resource_unavailable_try_again);
    }
    const auto never = [](Counted) -> thrum::task<> { co_return; };
    EXPECT_THROW(static_cast<void>(thrum::async([] {})), std::system_error);
    EXPECT_THROW(static_cast<void>(thrum::async(never(Counted()))), std::system_error);
    EXPECT_THROW(thrum::branch([] {}).join(), std::system_error);
    thrum::task_group group;
    EXPECT_THROW(group.run([held = Counted()] {}), std::system_error);
    group.wait();
    thrum::branch alone(std::nothrow, [] { return 5; });
    EXPECT_EQ(alone.join(), 5);
    EXPECT_EQ(thrum::reduce(0, 1000, 0, std::plus(), std::identity(), 1), 499500);
    go.set();
    threads.clear();
    faults_clear();
}

ULT_OVER_WORKERS(HppParallel);

} // namespace
