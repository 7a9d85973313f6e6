// SPDX-License-Identifier: Apache-2.0
//
// A creator that is bound to its worker, as main is: it calls the child that it has queued when it joins it. And what may
// come between: the child waits, is preempted, ends elsewhere or from within, or throws while main has an exception in flight.
#include <stdexcept>
#include <string>

#include "preempt.hpp"

namespace {

constexpr int kRounds = 100;

void *same(void *arg) {
    return arg;
}

thrum_t spawned(void *(*fn)(void *), void *arg) {
    thrum_t thread = nullptr;
    EXPECT_EQ(thrum_spawn(&thread, nullptr, fn, arg), 0);
    return thread;
}

void *joined(thrum_t thread) {
    void *result = nullptr;
    EXPECT_EQ(thrum_join(thread, &result), 0);
    return result;
}

void *yields(void *arg) {
    for (int i = 0; i < 3; i++)
        thrum_yield();
    return arg;
}

void *exits(void *arg) {
    thrum_exit(arg);
}

void *makes_its_own(void *arg) {
    return joined(spawned(same, joined(spawned(yields, arg))));
}

void *throws(void *what) {
    try {
        throw std::runtime_error(*static_cast<std::string *>(what));
    } catch (const std::runtime_error &error) {
        thrum_yield();
        return *static_cast<std::string *>(what) == error.what() ? what : nullptr;
    }
}

} // namespace

class BoundCreator : public Ult {};

TEST_P(BoundCreator, ChildrenOfAllKindsGiveTheirResults) {
    int place = 0;
    for (int i = 0; i < kRounds; i++)
        for (void *(*fn)(void *) : {same, yields, exits, makes_its_own})
            ASSERT_EQ(joined(spawned(fn, &place)), &place);
}

TEST_P(BoundCreator, SeveralAreJoinedInEitherOrder) {
    int places[kRounds];
    for (const bool oldest_first : {true, false}) {
        thrum_t threads[kRounds];
        for (int i = 0; i < kRounds; i++)
            threads[i] = spawned(i % 3 == 0 ? yields : same, &places[i]);
        for (int i = 0; i < kRounds; i++) {
            const int next = oldest_first ? i : kRounds - 1 - i;
            ASSERT_EQ(joined(threads[next]), &places[next]);
        }
    }
}

TEST_P(BoundCreator, KeepsItsExceptionsWhileItsChildThrows) {
    std::string inner = "inner";
    for (int i = 0; i < kRounds; i++) {
        try {
            throw std::runtime_error("outer");
        } catch (...) {
            ASSERT_EQ(joined(spawned(throws, &inner)), &inner);
            try {
                std::rethrow_exception(std::current_exception());
            } catch (const std::runtime_error &error) {
                EXPECT_STREQ(error.what(), "outer");
            }
        }
        EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
}

ULT_OVER_WORKERS(BoundCreator);

class BoundCreatorPlain : public UltPlain {};

// On a call there is no switch, neither to the child nor back.
TEST_F(BoundCreatorPlain, CallsTheChildThatItJoins) {
    for (const unsigned mode : {THRUM_PREEMPT_NONE, THRUM_PREEMPT_DEFAULT}) {
        const Preempting runtime(1, mode, 0);
        const uint64_t before = sum_of(&thrum_worker_counters::switches);
        for (int i = 0; i < kRounds; i++)
            ASSERT_EQ(joined(spawned(same, &i)), &i);
        EXPECT_LT(sum_of(&thrum_worker_counters::switches) - before, static_cast<uint64_t>(kRounds) / 2);
    }
}

// The child is preempted on the call, again and again, and comes back to main from where it was then.
TEST_F(BoundCreatorPlain, ChildIsPreemptedOnTheCall) {
    if (ULT_ASAN || ULT_TSAN)
        GTEST_SKIP() << "under sanitizers no thread is preempted";
    for (const unsigned mode : {THRUM_PREEMPT_LEND, THRUM_PREEMPT_KLT})
        for (const unsigned workers : {1U, 2U}) {
            const Preempting runtime(workers, mode);
            const uint64_t before = preemptions();
            std::atomic<bool> over{false};
            std::vector<Thread> others;
            for (unsigned i = 0; i < workers; i++)
                others.emplace_back([&] {
                    while (!over)
                        spin_us(10);
                });
            bool preempted = false;
            for (int i = 0; i < 1000 && !preempted; i++) {
                int place = 0;
                ASSERT_EQ(joined(spawned(
                              [](void *arg) -> void * {
                                  spin_us(4 * kSlice);
                                  return arg;
                              },
                              &place)),
                          &place);
                preempted = preemptions() > before + 5;
            }
            EXPECT_TRUE(preempted);
            over = true;
        }
}
