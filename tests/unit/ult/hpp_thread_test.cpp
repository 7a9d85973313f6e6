// SPDX-License-Identifier: Apache-2.0
//
// thrum::thread and thrum::this_thread: std::jthread's shape.
#include <sys/wait.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <set>
#include <sstream>

#include "hpp.hpp"

namespace {

class HppThread : public Hpp {};

TEST_P(HppThread, RunsWhatFitsAPointerAndWhatDoesNot) {
    everywhere([] {
        int result = 0;
        thrum::thread([&result] { result = 1; }).join();
        EXPECT_EQ(result, 1);
        const std::array numbers = {20, 300, 4000};
        thrum::thread([&result, numbers] { result = numbers[0] + numbers[1] + numbers[2]; }).join();
        EXPECT_EQ(result, 4320);
        static int called;
        called = 0;
        thrum::thread([] { called = 5; }).join();
        EXPECT_EQ(called, 5);
    });
}

TEST_P(HppThread, TakesMoveOnlyFunctionsAndArguments) {
    everywhere([] {
        int result = 0;
        thrum::thread([held = Counted(7), &result] { result = held.value(); }).join();
        EXPECT_EQ(result, 7);
        thrum::thread([&](Counted held, int &by) { by += held.value(); }, Counted(3), std::ref(result))
            .join();
        EXPECT_EQ(result, 10);
        struct Adder {
            int sum = 0;
            void add(int a, int b) { sum = a + b; }
        } adder;
        thrum::thread(&Adder::add, &adder, 1, 2).join();
        EXPECT_EQ(adder.sum, 3);
    });
}

// The maker's frame is overwritten at once, and what the thread has must be its own.
TEST_P(HppThread, OwnsItsFunctionWhenItsMakerGoesOn) {
    std::atomic<int> wrong{0};
    everywhere([&] {
        for (int round = 0; round < 200 / kStressDivisor + 1; round++) {
            std::vector<thrum::thread> threads;
            for (int i = 0; i < 20; i++) {
                std::array<int, 16> numbers;
                numbers.fill(i);
                threads.emplace_back([&wrong, numbers, i, held = Counted(i)] {
                    thrum_yield();
                    for (const int number : numbers)
                        wrong += number != i || held.value() != i;
                });
            }
        }
    });
    EXPECT_EQ(wrong, 0);
}

TEST_P(HppThread, JoinsAndStopsAtItsEnd) {
    everywhere([] {
        bool stopped = false;
        {
            const thrum::thread thread([&](const std::stop_token &stop) {
                while (!stop.stop_requested())
                    thrum::this_thread::sleep_for(100us);
                stopped = true;
            });
        }
        EXPECT_TRUE(stopped);
        thrum::thread first(
            [&](const std::stop_token &stop, int) {
                while (!stop.stop_requested())
                    thrum::this_thread::yield();
            },
            1);
        first = thrum::thread([] {}); // what was there is stopped and joined
        thrum::thread second(std::move(first));
        EXPECT_FALSE(first.joinable());
        EXPECT_TRUE(second.joinable());
        swap(first, second);
        EXPECT_TRUE(first.joinable());
    });
}

TEST_P(HppThread, HasAStopSourceWhenAskedForIt) {
    everywhere([] {
        thrum::event go;
        thrum::thread thread([&] { go.wait(); });
        const std::stop_token token = thread.get_stop_token();
        EXPECT_TRUE(token.stop_possible());
        const std::stop_callback on_stop(token, [&]() noexcept { go.set(); });
        EXPECT_TRUE(thread.request_stop());
        EXPECT_FALSE(thread.request_stop());
        thread.join();
        EXPECT_TRUE(token.stop_requested());
        EXPECT_FALSE(thrum::thread().get_stop_token().stop_possible());
    });
}

TEST_P(HppThread, ErrorsAreTheStandards) {
    const auto code_of = [](auto action) {
        try {
            action();
        } catch (const std::system_error &error) {
            return error.code();
        }
        return std::error_code();
    };
    thrum::thread nothing;
    EXPECT_EQ(code_of([&] { nothing.join(); }), std::errc::invalid_argument);
    EXPECT_EQ(code_of([&] { nothing.detach(); }), std::errc::invalid_argument);
    EXPECT_EQ(code_of([] { thrum::attributes().stack_size(std::size_t{2} << 30); }),
              std::errc::invalid_argument);
    EXPECT_EQ(code_of([] { thrum::thread(thrum::attributes().worker(1000), [] {}); }),
              std::errc::invalid_argument);
    std::error_code code;
    thrum::event may_join;
    thrum::thread self;
    self = thrum::thread([&] {
        may_join.wait();
        code = code_of([&] { self.join(); });
    });
    may_join.set();
    EXPECT_TRUE(eventually([&] { return code == std::errc::resource_deadlock_would_occur; }));
    self.join();
}

TEST_P(HppThread, Detaches) {
    everywhere([] {
        thrum::event over;
        thrum::thread thread([&over, held = Counted()] { over.set(); });
        thread.detach();
        EXPECT_FALSE(thread.joinable());
        over.wait();
    });
}

TEST_P(HppThread, IdsTellThreadsApart) {
    std::set<thrum::thread::id> ids{thrum::thread::id()};
    everywhere([&] {
        EXPECT_EQ(thrum::this_thread::get_id(), thrum::this_thread::get_id());
        EXPECT_TRUE(ids.insert(thrum::this_thread::get_id()).second);
        thrum::thread::id inside;
        thrum::event go;
        thrum::thread thread([&] {
            inside = thrum::this_thread::get_id();
            go.wait();
        });
        const thrum::thread::id outside = thread.get_id();
        go.set();
        thread.join();
        EXPECT_EQ(inside, outside);
        EXPECT_TRUE(ids.insert(outside).second);
        EXPECT_EQ(thread.get_id(), thrum::thread::id());
        std::ostringstream text;
        text << outside;
        EXPECT_FALSE(text.str().empty());
        EXPECT_EQ(std::hash<thrum::thread::id>()(inside), std::hash<thrum::thread::id>()(outside));
    });
}

TEST_P(HppThread, Sleeps) {
    everywhere([] {
        const auto before = std::chrono::steady_clock::now();
        thrum::this_thread::sleep_for(2ms);
        EXPECT_GE(std::chrono::steady_clock::now() - before, 2ms);
        thrum::this_thread::sleep_until(before + 4ms);
        EXPECT_GE(std::chrono::steady_clock::now() - before, 4ms);
        const auto moment = std::chrono::system_clock::now() + 2ms;
        thrum::this_thread::sleep_until(moment);
        EXPECT_GE(std::chrono::system_clock::now(), moment);
        thrum::this_thread::sleep_for(-1h);
        thrum::this_thread::sleep_until(before);
        thrum::this_thread::sleep_for(std::chrono::duration<double, std::micro>(0.5));
    });
}

TEST_P(HppThread, HasTheAttributesAskedFor) {
    std::size_t used = 0, size = 0;
    const unsigned last = workers() - 1;
    int where = -1;
    thrum::thread(thrum::attributes().stack_size(1 << 20), [&] {
        thrum_stack_used(thrum_self(), &used, &size);
    }).join();
    EXPECT_GE(size, std::size_t{1} << 20);
    thrum::thread(thrum::attributes().worker(last), [&] { where = thrum_worker_self(); }).join();
    EXPECT_EQ(where, static_cast<int>(last));
    bool began = true;
    in_ult([&] {
        std::atomic<bool> runs{false};
        thrum::thread queued(thrum::attributes().queued(), [&] { runs = true; });
        began = workers() == 1 && runs;
    });
    EXPECT_FALSE(began);
}

// thrum_exit unwinds it; what it has is destroyed.
TEST_P(HppThread, MayEndFromWithin) {
    everywhere([] {
        bool passed = false;
        thrum::thread thread([&passed, held = Counted()] {
            const Counted here;
            thrum_exit(nullptr);
            passed = true;
        });
        thread.join();
        EXPECT_FALSE(passed);
    });
}

class HppThreadPlain : public UltPlain {};

TEST_F(HppThreadPlain, KnowsHowManyWillRunAtATime) {
    const unsigned before = thrum::thread::hardware_concurrency();
    EXPECT_GT(before, 0U);
    {
        const thrum::runtime runtime;
        EXPECT_EQ(thrum::thread::hardware_concurrency(), before);
        EXPECT_EQ(runtime.workers(), before);
    }
    setenv("THRUM_WORKERS", "7", 1);
    EXPECT_EQ(thrum::thread::hardware_concurrency(), 7U);
    setenv("THRUM_WORKERS", "x", 1);
    const std::string said = stderr_of([] { EXPECT_EQ(thrum_workers_default(), 0U); });
    unsetenv("THRUM_WORKERS");
    EXPECT_NE(said.find("THRUM_WORKERS is 'x'"), std::string::npos) << said;
    const thrum::runtime runtime(3);
    EXPECT_EQ(thrum::thread::hardware_concurrency(), 3U);
}

ULT_OVER_WORKERS(HppThread);

class HppTerminate : public UltPlain {};

template <class Body>
int status_of(const Body &body) {
    return in_child([&body] {
        std::set_terminate([] { _exit(77); });
        const thrum::runtime runtime(2);
        body();
        return 1;
    });
}

TEST_F(HppTerminate, WhereTheStandardDoes) {
    const auto terminates = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 77; };
    EXPECT_TRUE(terminates(status_of([] { thrum::thread([] { throw Thrown(); }).join(); })));
    EXPECT_TRUE(terminates(status_of([] {
        thrum::thread([held = Counted(), more = 1L] { throw Thrown(std::to_string(more)); }).detach();
        thrum::this_thread::sleep_for(10s);
    })));
    EXPECT_TRUE(terminates(status_of([] {
        thrum::executor().execute([] { throw Thrown(); });
        thrum::this_thread::sleep_for(10s);
    })));
}

TEST_F(HppTerminate, TheRuntimeComesAndGoes) {
    for (int i = 0; i < 3; i++) {
        const thrum::runtime runtime(2);
        EXPECT_EQ(runtime.workers(), 2U);
        EXPECT_THROW(thrum::runtime(2), std::system_error);
    }
    EXPECT_EQ(thrum_workers(), 0U);
}

} // namespace
