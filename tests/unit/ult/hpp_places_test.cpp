// SPDX-License-Identifier: Apache-2.0
//
// Names, values and cancellation of threads, and where they run: thrum::local, worker, pool_scheduler, thread::migrate and the like.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "hpp.hpp"

namespace {

class HppPlaces : public Hpp {};

template <class Action>
int error_of(Action action) {
    try {
        action();
    } catch (const std::system_error &error) {
        return error.code().value();
    }
    return 0;
}

TEST_P(HppPlaces, ThreadsHaveNames) {
    std::string inside;
    thrum::event named;
    thrum::thread thread([&] {
        named.wait();
        inside = thrum::this_thread::name();
        thrum::this_thread::set_name("another");
        EXPECT_EQ(thrum::this_thread::name(), "another");
    });
    EXPECT_EQ(thread.name(), "");
    thread.set_name("reader");
    EXPECT_EQ(thread.name(), "reader");
    EXPECT_EQ(error_of([&] { thread.set_name("sixteen letters!"); }), ERANGE);
    named.set();
    thread.join();
    EXPECT_EQ(inside, "reader");
    EXPECT_EQ(error_of([&] { static_cast<void>(thread.name()); }), EINVAL);
    External outside([] {
        EXPECT_EQ(thrum::this_thread::name(), "");
        EXPECT_EQ(error_of([] { thrum::this_thread::set_name("x"); }), EINVAL);
    });
}

TEST_P(HppPlaces, ValuesAreEachThreadsOwn) {
    thrum::local<Counted> number;
    std::vector<thrum::thread> threads;
    for (int i = 1; i <= 20; i++)
        threads.emplace_back([&number, i] {
            EXPECT_EQ(number.find(), nullptr);
            EXPECT_EQ(number.get().value(), 0);
            number.emplace(i);
            thrum::this_thread::yield();
            EXPECT_EQ(number.get().value(), i);
            if (i % 2 == 0) {
                number.reset();
                EXPECT_EQ(number.find(), nullptr);
            }
        });
    for (thrum::thread &thread : threads)
        thread.join();
    EXPECT_TRUE(eventually([] { return Counted::alive == 0; }));
    External outside([&] { EXPECT_EQ(error_of([&] { number.get(); }), EPERM); });
}

TEST_P(HppPlaces, ThreadsAreCancelled) {
    thrum::event never;
    std::atomic<bool> unwound{false};
    struct Tells {
        std::atomic<bool> &told;
        ~Tells() { told = true; }
    };
    thrum::thread waits(thrum::attributes().cancellable(), [&] {
        const Tells tells{unwound};
        never.wait();
    });
    thrum::thread looks(thrum::attributes().cancellable(), [&] {
        for (;;) {
            thrum::this_thread::test_cancel();
            thrum::this_thread::yield();
        }
    });
    thrum::thread plain([&] { never.wait(); });
    waits.cancel(), looks.cancel();
    EXPECT_EQ(error_of([&] { plain.cancel(); }), ENOTSUP);
    waits.join(), looks.join();
    EXPECT_TRUE(unwound);
    never.set();
}

TEST_P(HppPlaces, ThreadsMoveToWorkers) {
    const unsigned last = thrum_workers() - 1;
    thrum::event go;
    thrum::thread thread([&] {
        go.wait();
        thrum::this_thread::yield(); // here it moves at the latest
        EXPECT_EQ(thrum::this_thread::worker(), last);
        thrum::this_thread::migrate(THRUM_ANY_WORKER);
        thrum::this_thread::migrate(last);
        EXPECT_EQ(thrum::this_thread::worker(), last);
    });
    thread.set_priority(THRUM_PRIORITY_MAX);
    EXPECT_EQ(error_of([&] { thread.set_priority(THRUM_PRIORITY_MAX + 1); }), EINVAL);
    EXPECT_EQ(error_of([&] { thread.migrate(5000); }), EINVAL);
    thread.migrate(last);
    go.set();
    thread.join();
    External outside([] {
        EXPECT_EQ(thrum::this_thread::worker(), std::nullopt);
        EXPECT_EQ(error_of([] { thrum::this_thread::migrate(0); }), EINVAL);
    });
}

TEST_P(HppPlaces, WorkersComeAndGo) {
    in_ult([] {
        const unsigned before = thrum_workers();
        thrum::worker first;
        {
            const thrum::worker second;
            EXPECT_EQ(thrum_workers(), before + 2);
            EXPECT_NE(first.number(), second.number());
            thrum::thread bound(thrum::attributes().worker(first.number()),
                                [&first] { EXPECT_EQ(thrum::this_thread::worker(), first.number()); });
            bound.join();
            EXPECT_GE(first.counters().switches, 1U);
        }
        EXPECT_EQ(thrum_workers(), before + 1);
        first.stop();
        EXPECT_EQ(error_of([&first] { first.stop(); }), EINVAL);
        EXPECT_EQ(thrum_workers(), before);
    });
}

// The order is that of the levels, whoever came first.
TEST_P(HppPlaces, SchedulersOfTheLibrary) {
    in_ult([] {
        thrum::worker place;
        thrum::pool high, low;
        const std::array natives{high.native_handle(), low.native_handle()};
        for (int kind = 0; kind < 3; kind++) {
            std::vector<int> order;
            std::vector<thrum::thread> threads;
            for (int i = 0; i < 6; i++)
                threads.emplace_back(thrum::attributes().pool(i % 2 == 0 ? low : high).queued(),
                                     [&order, i] { order.push_back(i % 2); });
            const auto run = [&](thrum::pool_scheduler &scheduler) {
                EXPECT_EQ(error_of([&] { scheduler.slice(1ns); }), EINVAL);
                scheduler.slice(5ms);
                scheduler.run_on(place.number());
                for (thrum::thread &thread : threads)
                    thread.join();
            };
            if (kind == 0) {
                thrum::pool_scheduler scheduler(THRUM_SCHED_FIRST, high, low);
                run(scheduler);
            } else if (kind == 1) {
                thrum::pool_scheduler scheduler(THRUM_SCHED_EXHAUST, natives);
                run(scheduler);
            } else {
                thrum::pool_scheduler scheduler(natives, 2, 0);
                run(scheduler);
            }
            EXPECT_EQ(order, (std::vector<int>{1, 1, 1, 0, 0, 0}));
        }
        EXPECT_EQ(error_of([&] { thrum::pool_scheduler(natives, 3, 0); }), EINVAL);
        EXPECT_EQ(
            error_of([&] { thrum::pool_scheduler(THRUM_SCHED_FIRST, std::span<const thrum_pool_t>()); }),
            EINVAL);
    });
}

ULT_OVER_WORKERS(HppPlaces);

} // namespace
