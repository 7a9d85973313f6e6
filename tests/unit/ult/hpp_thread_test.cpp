// SPDX-License-Identifier: Apache-2.0
//
// thrum::thread and thrum::this_thread: std::jthread's shape.
#include <malloc.h>
#include <sys/wait.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <thread>
#include <vector>

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
TEST_P(HppThread, OwnsItsFunctionWhenItsCreatorContinues) {
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

// What `action` throws, in words; "": nothing.
template <class Action>
std::string thrown_by(const Action &action) {
    try {
        action();
    } catch (const std::exception &thrown) {
        return thrown.what();
    }
    return "";
}

TEST_P(HppThread, ExceptionsPropagateThroughJoin) {
    everywhere([] {
        thrum::thread small([] { throw Thrown("small"); });
        thrum::thread large([held = Counted(), more = std::string("large")] { throw Thrown(more); });
        thrum::thread stopped([](const std::stop_token &stop) {
            while (!stop.stop_requested())
                thrum::this_thread::yield();
            throw Thrown("stopped");
        });
        stopped.request_stop();
        EXPECT_EQ(thrown_by([&] { stopped.join(); }), "stopped");
        EXPECT_EQ(thrown_by([&] { small.join(); }), "small");
        EXPECT_EQ(thrown_by([&] { large.join(); }), "large");
        EXPECT_FALSE(small.joinable());
        EXPECT_EQ(thrown_by([] { thrum::thread([] {}).join(); }), "");
    });
}

// Descriptors serve one thread after another: each joiner gets the exception of its own thread.
TEST_P(HppThread, ExceptionsAreToldApart) {
    std::atomic<int> wrong{0};
    std::vector<thrum::thread> joiners;
    for (int i = 0; i < 4; i++)
        joiners.emplace_back([&wrong, i] {
            for (int round = 0; round < 200 / kStressDivisor + 1; round++) {
                const std::string mine = std::to_string(i) + " " + std::to_string(round);
                thrum::thread thread([mine] {
                    thrum_yield();
                    throw Thrown(mine);
                });
                wrong += thrown_by([&] { thread.join(); }) != mine;
            }
        });
    for (thrum::thread &joiner : joiners)
        joiner.join();
    EXPECT_EQ(wrong, 0);
}

TEST_P(HppThread, ExceptionsPropagateThroughWhenAny) {
    everywhere([] {
        thrum::thread thread([] { throw Thrown("when"); });
        EXPECT_EQ(thrown_by([&] { thrum::when_any(thread); }), "when");
        EXPECT_FALSE(thread.joinable());
        std::array<thrum::thread, 1> threads = {thrum::thread([] { throw Thrown("span"); })};
        EXPECT_EQ(thrown_by([&] { thrum::when_any(std::span(threads)); }), "span");
    });
}

// Results of those that end otherwise are no exceptions.
TEST_P(HppThread, EndsFromWithinAndWithoutThrowNothing) {
    everywhere([] {
        static int result;
        EXPECT_EQ(thrown_by([] { thrum::thread([] { thrum_exit(&result); }).join(); }), "");
        thrum::thread cancelled(thrum::attributes().cancellable().queued(),
                                [] { thrum::this_thread::sleep_for(1h); });
        thrum_cancel(cancelled.native_handle());
        EXPECT_EQ(thrown_by([&] { cancelled.join(); }), "");
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

// --- objects that outlive their runtime -------------------------------------------------------------------

class HppOutlives : public UltPlain {};

template <class Action>
int error_of(const Action &action) {
    try {
        action();
    } catch (const std::system_error &error) {
        return error.code().value();
    }
    return 0;
}

// A thread that never ends. What it holds is lost with it, but LeakSanitizer must find it.
const auto waits_for_ever = [](std::atomic<const void *> *held) {
    return [held, place = 0]() mutable {
        *held = &place;
        thrum_suspend();
    };
};

// In each of the states that the runtime's end may find a thread in, and from then on without a runtime, and in another.
TEST_F(HppOutlives, AThreadIsNotWaitedFor) {
    static std::atomic<const void *> held[2];
    thrum::thread ended, waits, queued, destroyed, assigned;
    {
        const thrum::runtime runtime(2);
        ended = thrum::thread([] {});
        waits = thrum::thread(waits_for_ever(&held[0]));
        destroyed = thrum::thread([] {});
        assigned = thrum::thread(waits_for_ever(&held[1]));
        EXPECT_TRUE(eventually([] { return held[0] != nullptr && held[1] != nullptr; }));
        queued = thrum::thread(thrum::attributes().queued().worker(0), [] {});
    }
    const auto expect_lost = [](thrum::thread &thread) {
        thrum::event never;
        EXPECT_TRUE(thread.joinable());
        EXPECT_EQ(error_of([&] { thread.join(); }), ESRCH);
        EXPECT_EQ(error_of([&] { thread.detach(); }), ESRCH);
        EXPECT_EQ(error_of([&] { thrum::when_any(never, thread); }), ESRCH);
        EXPECT_EQ(error_of([&] { thrum::when_any(std::span(&thread, 1)); }), ESRCH);
        EXPECT_EQ(thread.get_id(), thrum::thread::id());
        thread.request_stop();
        EXPECT_TRUE(thread.get_stop_token().stop_requested());
    };
    for (thrum::thread *thread : {&ended, &waits, &queued})
        expect_lost(*thread);
    const thrum::runtime another(2);
    for (thrum::thread *thread : {&ended, &waits, &queued})
        expect_lost(*thread);
    thrum::thread(std::move(destroyed)); // does not wait
    assigned = thrum::thread([] {});
    swap(assigned, waits);
    waits.join();
    EXPECT_EQ(error_of([&] { assigned.join(); }), ESRCH);
}

TEST_F(HppOutlives, ATaskGroupIsNotWaitedFor) {
    static std::atomic<const void *> held[2];
    std::optional<thrum::task_group> group, destroyed, ended;
    {
        const thrum::runtime runtime(2);
        group.emplace();
        destroyed.emplace();
        ended.emplace();
        group->run(waits_for_ever(&held[0]));
        destroyed->run(waits_for_ever(&held[1]));
        ended->run([] {});
        ended->wait();
        EXPECT_TRUE(eventually([] { return held[0] != nullptr && held[1] != nullptr; }));
    }
    destroyed.reset(); // does not wait
    ended->wait();
    EXPECT_EQ(error_of([&] { group->wait(); }), ESRCH);
    const thrum::runtime another(2); // in which it may be used again
    int runs = 0;
    group->run([&runs] { runs++; });
    group->wait();
    EXPECT_EQ(runs, 1);
}

// A thread that starts over with the same group does not wait for the lost threads.
TEST_F(HppOutlives, ATaskGroupIsUsedInTheNextRuntime) {
    static std::atomic<const void *> held;
    thrum::task_group group;
    for (int round = 0; round < 2; round++) {
        const thrum::runtime runtime(2);
        std::atomic<int> runs{0};
        for (int i = 0; i < 10; i++)
            group.run([&runs] { runs++; });
        group.wait();
        EXPECT_EQ(runs, 10);
        if (round == 0) {
            group.run(waits_for_ever(&held));
            EXPECT_TRUE(eventually([] { return held != nullptr; }));
        }
    }
}

// Nor is what was thrown and told to stop there of the next.
TEST_F(HppOutlives, ATaskGroupForgetsWhatWasThrown) {
    static std::atomic<const void *> held;
    thrum::task_group group;
    {
        const thrum::runtime runtime(2);
        group.run(waits_for_ever(&held));
        group.run([] { throw std::runtime_error("of a runtime that has ended"); });
        EXPECT_TRUE(eventually([&] { return held != nullptr && group.stopping(); }));
    }
    EXPECT_EQ(error_of([&] { group.wait(); }), ESRCH);
    const thrum::runtime another(2);
    bool is_stopped = true;
    group.run([&is_stopped](const std::stop_token &stop) { is_stopped = stop.stop_requested(); });
    group.wait();
    EXPECT_FALSE(is_stopped);
}

// Of no use, but not a crash: a branch is joined in its block.
TEST_F(HppOutlives, ABranchIsNotWaitedFor) {
    const auto nothing = [] {};
    std::optional<thrum::branch<decltype(nothing)>> joined, destroyed;
    {
        const thrum::runtime runtime(1);
        joined.emplace(nothing);
        destroyed.emplace(nothing);
    }
    EXPECT_EQ(error_of([&] { joined->join(); }), ESRCH);
    EXPECT_EQ(error_of([&] { joined->join(); }), EINVAL);
    destroyed.reset();
}

TEST_F(HppOutlives, ASchedulerLeavesTheNextRuntimeAlone) {
    thrum::pool pool, other;
    std::atomic<int> asked{0};
    const auto choose = [&] {
        asked++;
        return other.pop();
    };
    thrum::scheduler later(choose, other);
    {
        const auto none = [] { return thrum_t(); };
        std::optional<thrum::scheduler<decltype(none)>> first;
        {
            const thrum::runtime runtime(2);
            first.emplace(none, pool);
            first->run_on(1);
        }
        const thrum::runtime runtime(2);
        later.run_on(1);
        first.reset(); // worker 1 is not this one's any more
        bool has_run = false;
        thrum::thread(thrum::attributes().pool(other), [&] { has_run = true; }).join();
        EXPECT_TRUE(has_run);
        EXPECT_GT(asked, 0);
    }
}

TEST_F(HppOutlives, RuntimesHaveNumbers) {
    EXPECT_EQ(thrum_runtime_id(), 0U);
    std::set<std::uint64_t> ids{0};
    for (int i = 0; i < 3; i++) {
        const thrum::runtime runtime(1);
        EXPECT_TRUE(ids.insert(thrum_runtime_id()).second);
        EXPECT_EQ(in_child([] { return thrum_runtime_id() == 0 ? 0 : 1; }), 0);
    }
    EXPECT_EQ(thrum_runtime_id(), 0U);
}

// --- what exceptions say ----------------------------------------------------------------------------------

TEST_F(HppOutlives, ExceptionsSayWhatWasWrong) {
    const auto said = [](const char *text, const auto &action) {
        const std::string what = thrown_by(action);
        EXPECT_NE(what.find(text), std::string::npos) << what;
    };
    said("thrum::thread::join: there is no thread", [] { thrum::thread().join(); });
    said("thrum::latch: a count below 0", [] { thrum::latch(-1); });
    said("thrum::counting_semaphore: permits below 0", [] { thrum::counting_semaphore(-1); });
    said("thrum::attributes::stack_size: more than 1 GiB",
         [] { thrum::attributes().stack_size(std::size_t{2} << 30); });
    thrum::thread lost;
    {
        const thrum::runtime runtime(1);
        said("thrum::runtime: a runtime is running already", [] { const thrum::runtime second; });
        said("thrum::thread: no such worker", [] { thrum::thread(thrum::attributes().worker(1000), [] {}); });
        said("thrum::when_any: nothing to wait for", [] { thrum::when_any(std::span<thrum::event>()); });
        lost = thrum::thread(thrum::attributes().queued(), [] {});
        thrum::branch branch([] {});
        branch.join();
        said("thrum::branch::join: it has been joined already", [&] { branch.join(); });
    }
    said("thrum::thread::join: its runtime has ended", [&] { lost.join(); });
}

struct Block : thrum::detail::made_in_block {
    explicit Block(int value) : number(value) {}
    int number;
};
struct LargeBlock : thrum::detail::made_in_block {
    std::array<char, 2 * thrum::detail::block_size> bytes{};
};
struct alignas(256) AlignedBlock : thrum::detail::made_in_block {
    char byte = 0;
};

class HppBlocks : public UltPlain {};

// What one gives back another gets, as long as it is this kernel thread's.
TEST_F(HppBlocks, AreUsedAgain) {
    if (!thrum::detail::keeps_blocks)
        GTEST_SKIP() << "the sanitizers are to see each block";
    auto first = std::make_unique<Block>(1);
    auto second = std::make_unique<Block>(2);
    const auto *const last = reinterpret_cast<const char *>(second.get());
    first.reset();
    second.reset();
    const auto again = std::make_unique<Block>(3), other = std::make_unique<Block>(4);
    EXPECT_EQ(reinterpret_cast<const char *>(again.get()), last);
    EXPECT_NE(again.get(), other.get());
    EXPECT_EQ(again->number + other->number, 7);
}

TEST_F(HppBlocks, AreForWhatFits) {
    const auto large = std::make_unique<LargeBlock>();
    const auto aligned = std::make_unique<AlignedBlock>();
    large->bytes.fill(1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned.get()) % alignof(AlignedBlock), 0U);
}

// More than are kept, by kernel threads that come and go, and given back by others.
TEST_F(HppBlocks, GoBackToTheHeap) {
    constexpr int kThreads = 200, kBlocks = 2 * static_cast<int>(thrum::detail::blocks_kept);
    const auto rounds = [](int threads) {
        std::vector<std::unique_ptr<Block>> handed_on;
        for (int i = 0; i < threads; i++)
            std::thread([&handed_on] {
                std::vector<std::unique_ptr<Block>> mine = std::move(handed_on);
                for (int block = 0; block < kBlocks; block++)
                    handed_on.push_back(std::make_unique<Block>(block));
            }).join();
    };
    rounds(10);
    const std::size_t before = mallinfo2().uordblks;
    rounds(kThreads);
    const std::size_t after = mallinfo2().uordblks;
    EXPECT_LT(after, before + std::size_t{kThreads} * kBlocks * thrum::detail::block_size / 10);
}

class HppCancelled : public Hpp {};

// The destructor of what `create` returns waits for the end of the thread. The request is kept meanwhile, and acts at the
// next cancellation point.
template <class Create>
void waits_in_its_destructor(Create create) {
    std::atomic<bool> ended{false}, left{false};
    thrum::event created, go;
    const auto work = [&] {
        go.wait();
        ended = true;
    };
    thrum::thread cancelled(thrum::attributes().cancellable().queued(), [&] {
        const Counted held;
        {
            const auto object = create(work);
            created.set();
        }
        left = true;
        thrum_testcancel();
        ADD_FAILURE() << "it was not cancelled";
    });
    created.wait();
    thrum::this_thread::sleep_for(1ms);
    EXPECT_EQ(thrum_cancel(cancelled.native_handle()), 0);
    thrum::this_thread::sleep_for(1ms);
    EXPECT_FALSE(left);
    go.set();
    cancelled.join();
    EXPECT_TRUE(ended);
    EXPECT_TRUE(left);
}

TEST_P(HppCancelled, DestructorsWaitToTheEnd) {
    everywhere([] {
        waits_in_its_destructor([](auto work) { return thrum::thread(work); });
        waits_in_its_destructor([](auto work) { return thrum::async(work); });
        waits_in_its_destructor([](auto work) { return thrum::branch(work); });
        waits_in_its_destructor([](auto work) {
            auto group = std::make_unique<thrum::task_group>();
            group->run(work);
            return group;
        });
    });
}

ULT_OVER_WORKERS(HppCancelled);

class HppTerminate : public UltPlain {};

template <class Body>
int status_of(const Body &body) {
    return in_child([&body] {
        // which can say what it was
        std::set_terminate([] { _exit(std::current_exception() != nullptr ? 77 : 78); });
        const thrum::runtime runtime(2);
        body();
        return 1;
    });
}

TEST_F(HppTerminate, WhereAnExceptionWouldBeLost) {
    const auto terminates = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 77; };
    EXPECT_FALSE(
        terminates(status_of([] { EXPECT_THROW(thrum::thread([] { throw Thrown(); }).join(), Thrown); })));
    EXPECT_TRUE(terminates(status_of([] { const thrum::thread destroyed([] { throw Thrown(); }); })));
    EXPECT_TRUE(terminates(status_of([] {
        thrum::thread assigned([] { throw Thrown(); });
        assigned = thrum::thread();
    })));
    EXPECT_TRUE(terminates(status_of([] { // it is detached before it throws
        thrum::event go;
        thrum::thread thread([&go, held = Counted(), more = 1L] {
            go.wait();
            throw Thrown(std::to_string(more));
        });
        thread.detach();
        go.set();
        thrum::this_thread::sleep_for(10s);
    })));
    EXPECT_TRUE(terminates(status_of([] { // when it has thrown
        std::atomic<bool> throws{false};
        thrum::thread thread([&] {
            throws = true;
            throw Thrown();
        });
        while (!throws)
            thrum::this_thread::yield();
        thrum::this_thread::sleep_for(10ms);
        thread.detach();
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

TEST_F(HppTerminate, ARuntimeThatAnotherThreadDestroysIsTold) {
    testing::internal::CaptureStderr();
    {
        auto runtime = std::make_unique<thrum::runtime>(2);
        const External other([&runtime] { runtime.reset(); });
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "thrum: runtime: destroyed by another thread than its creator, so its workers continue; "
              "destroy it on the thread that created it\n");
    EXPECT_EQ(thrum_workers(), 2U);
    EXPECT_EQ(thrum_fini(), 0);
}

} // namespace
