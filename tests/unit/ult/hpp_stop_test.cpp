// SPDX-License-Identifier: Apache-2.0
//
// Stop tokens in waits, select with operands that are switched off, when_all, deadlines of latches and barriers.
#include <array>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "hpp.hpp"

namespace {

class HppStop : public Hpp {};

// Everything that waits, as a call that returns whether it had what it waited for.
struct Objects {
    thrum::event event;
    thrum::latch latch{1};
    thrum::counting_semaphore<> sem{0};
    thrum::mutex mutex;
    thrum::recursive_mutex recursive;
    thrum::shared_mutex written, read;
    thrum::channel<std::string> full{1}, empty{1};
    thrum::channel<int> unbuffered;
    thrum::promise<int> promise;
    thrum::future<int> future = promise.get_future();
    thrum::barrier<> barrier{2};

    static constexpr int kWaits = 13;

    Objects() {
        mutex.lock();
        recursive.lock();
        written.lock();
        read.lock_shared();
        full.send("first");
    }
    // By the thread that made it.
    void make_ready() {
        event.set();
        latch.count_down();
        sem.release();
        mutex.unlock();
        recursive.unlock();
        written.unlock();
        read.unlock_shared();
        EXPECT_EQ(full.receive(), "first");
        empty.send("sent");
        promise.set_value(7);
        barrier.arrive_and_drop();
    }
    // Waits 9 and 10 are partners: one sends what the other receives.
    bool wait(int which, const std::stop_token &stop) {
        switch (which) {
        case 0: return event.wait(stop);
        case 1: return latch.wait(stop);
        case 2: return sem.acquire(stop);
        case 3: return then_unlock(mutex, mutex.lock(stop));
        case 4: return then_unlock(recursive, recursive.lock(stop));
        case 5: return then_unlock(written, written.lock(stop));
        case 6: return then_unlock(read, read.lock(stop));
        case 7: {
            const bool is_locked = written.lock_shared(stop);
            if (is_locked)
                written.unlock_shared();
            return is_locked;
        }
        case 8: return full.send("second", stop);
        case 9: return unbuffered.send(9, stop);
        case 10: return unbuffered.receive(stop) == 9;
        case 11: return empty.receive(stop) == "sent";
        default: return future.wait(stop);
        }
    }
    template <class Mutex>
    static bool then_unlock(Mutex &locked, bool is_locked) {
        if (is_locked)
            locked.unlock();
        return is_locked;
    }
};

// Before the wait, and during it.
TEST_P(HppStop, EndsEachWait) {
    for (int which = 0; which < Objects::kWaits; which++) {
        Objects objects;
        std::stop_source before;
        before.request_stop();
        std::atomic<int> waiting{0}, ended{0};
        {
            thrum::thread waits([&](const std::stop_token &stop) {
                EXPECT_FALSE(objects.wait(which, before.get_token())) << which;
                waiting++;
                EXPECT_FALSE(objects.wait(which, stop)) << which;
                ended++;
            });
            EXPECT_TRUE(eventually([&] { return waiting == 1; }));
            spin_us(20);
            EXPECT_EQ(ended, 0) << which;
        }
        EXPECT_EQ(ended, 1) << which;
        objects.make_ready(); // nothing is left of the wait
    }
}

// A token that is not told, or of no source, changes nothing. Nor does the wait before that was stopped.
TEST_P(HppStop, WaitsForWhatComes) {
    for (const bool has_source : {true, false}) {
        Objects objects;
        std::stop_source source;
        const std::stop_token token = has_source ? source.get_token() : std::stop_token();
        std::atomic<int> ended{0};
        std::vector<thrum::thread> waits;
        for (int which = 0; which < Objects::kWaits; which++)
            waits.emplace_back([&, which] {
                EXPECT_TRUE(objects.wait(which, token)) << which;
                ended++;
            });
        objects.make_ready();
        thrum::when_all(std::span(waits));
        EXPECT_EQ(ended, Objects::kWaits);
        EXPECT_EQ(objects.full.receive(), "second");
    }
}

// What stays ready is ready all the same; what would be taken is left.
TEST_P(HppStop, AStopThatWasRequestedTakesNothing) {
    std::stop_source stopped;
    stopped.request_stop();
    const std::stop_token stop = stopped.get_token();
    thrum::event event;
    event.set();
    EXPECT_TRUE(event.wait(stop));
    EXPECT_TRUE(thrum::latch(0).wait(stop));
    thrum::counting_semaphore<> sem(1);
    EXPECT_FALSE(sem.acquire(stop));
    EXPECT_TRUE(sem.try_acquire());
    thrum::channel<Counted> channel(2);
    channel.send(Counted(1));
    EXPECT_FALSE(channel.receive(stop));
    Counted second(2);
    EXPECT_FALSE(channel.send(std::move(second), stop));
    EXPECT_EQ(second.value(), 2);
    EXPECT_EQ(channel.size(), 1U);
    thrum::mutex mutex;
    EXPECT_FALSE(mutex.lock(stop));
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
}

TEST_P(HppStop, EndsSleep) {
    everywhere([] {
        std::atomic<int> slept{0};
        thrum::event in_time;
        {
            const thrum::jthread sleeper([&](const std::stop_token &stop) {
                EXPECT_TRUE(thrum::this_thread::sleep_for(stop, 10us));
                EXPECT_TRUE(thrum::this_thread::sleep_until(stop, std::chrono::system_clock::now() + 10us));
                in_time.set();
                EXPECT_FALSE(thrum::this_thread::sleep_for(stop, 1h));
                EXPECT_FALSE(thrum::this_thread::sleep_until(stop, std::chrono::system_clock::now() + 1h));
                slept++;
            });
            in_time.wait();
        }
        EXPECT_EQ(slept, 1);
    });
}

TEST_P(HppStop, EndsWhenAny) {
    thrum::channel<int> channel;
    std::optional<int> received;
    std::atomic<int> which{-1};
    {
        thrum::thread waits([&](const std::stop_token &stop) {
            which = static_cast<int>(thrum::when_any(channel.receiving(received), thrum::stopping(stop)));
        });
    }
    EXPECT_EQ(which, 1);
}

TEST_P(HppStop, OnlyIf) {
    everywhere([] {
        thrum::channel<std::string> in(2), out(2);
        std::optional<std::string> received, offered = "offered";
        in.send("in");
        EXPECT_EQ(thrum::when_any(thrum::only_if(false, in.receiving(received)),
                                  thrum::only_if(true, out.sending(offered))),
                  1U);
        EXPECT_FALSE(offered);
        EXPECT_EQ(in.size(), 1U);
        offered = "again";
        EXPECT_EQ(thrum::when_any(thrum::only_if(true, in.receiving(received)),
                                  thrum::only_if(false, out.sending(offered))),
                  0U);
        EXPECT_EQ(received, "in");
        EXPECT_EQ(offered, "again");
        // One value offered to several, of which one is switched off; then to none.
        EXPECT_EQ(thrum::when_any(thrum::only_if(false, in.sending(offered)), out.sending(offered),
                                  thrum::only_if(true, in.sending(offered))),
                  1U);
        EXPECT_FALSE(offered);
        offered = "kept";
        EXPECT_FALSE(thrum::when_any_for(10us, thrum::only_if(false, in.sending(offered)),
                                         thrum::only_if(true, out.sending(offered))));
        EXPECT_EQ(offered, "kept");
        EXPECT_THROW(thrum::when_any(thrum::only_if(false, in.sending(offered))), std::system_error);
        thrum::event event; // an lvalue is referred to
        event.set();
        EXPECT_EQ(thrum::when_any(thrum::only_if(true, event)), 0U);
    });
}

// As many sends as there are receivers just now.
TEST_P(HppStop, AListOfSends) {
    std::vector<std::unique_ptr<thrum::channel<int>>> channels;
    for (int i = 0; i < 5; i++)
        channels.push_back(std::make_unique<thrum::channel<int>>(1));
    for (int left = 5; left > 0; left--) {
        std::vector<thrum::channel<int>::sending_t> sends;
        std::optional<int> value = left;
        for (auto &channel : channels)
            if (channel->size() == 0)
                sends.push_back(channel->sending(value));
        EXPECT_EQ(sends.size(), static_cast<std::size_t>(left));
        thrum::when_any(std::span(sends));
        EXPECT_FALSE(value);
    }
    int sum = 0;
    for (auto &channel : channels)
        sum += channel->receive().value();
    EXPECT_EQ(sum, 15);
}

TEST_P(HppStop, WhenAll) {
    everywhere([] {
        thrum::future<int> one = thrum::async([] { return 1; }), two = thrum::async([] { return 2; });
        thrum::event event;
        thrum::counting_semaphore<> sem(1);
        thrum::thread setter([&] { event.set(); });
        thrum::when_all(one, two, event, sem, setter);
        EXPECT_EQ(one.get() + two.get(), 3);
        EXPECT_FALSE(sem.try_acquire());
        EXPECT_FALSE(setter.joinable());
        thrum::event never;
        EXPECT_FALSE(thrum::when_all_for(10us, event, never));
        EXPECT_FALSE(thrum::when_all_until(std::chrono::system_clock::now(), never, event));
        EXPECT_TRUE(thrum::when_all_for(1h, event, event));
    });
}

TEST_P(HppStop, WhenAllWaitsForTheOthersOfOneThatThrows) {
    std::vector<thrum::thread> threads;
    std::atomic<int> ended{0};
    for (int i = 0; i < 10; i++)
        threads.emplace_back([&ended, i] {
            thrum::this_thread::yield();
            ended++;
            if (i % 3 == 1)
                throw Thrown(std::to_string(i));
        });
    std::string what;
    try {
        thrum::when_all(std::span(threads));
    } catch (const Thrown &thrown) {
        what = thrown.what();
    }
    EXPECT_EQ(what, "1");
    EXPECT_EQ(ended, 10);
    for (const thrum::thread &thread : threads)
        EXPECT_FALSE(thread.joinable());
}

TEST_P(HppStop, LatchesAndBarriersInTime) {
    thrum::latch latch(1);
    EXPECT_FALSE(latch.wait_for(10us));
    EXPECT_FALSE(latch.wait_until(std::chrono::system_clock::now()));
    latch.count_down();
    EXPECT_TRUE(latch.wait_for(0s));
    thrum::barrier<> barrier(2);
    EXPECT_FALSE(barrier.wait_for(barrier.arrive(), 10us));
    auto phase = barrier.arrive(); // the second of the phase: it ends
    EXPECT_TRUE(barrier.wait_until(std::move(phase), std::chrono::steady_clock::now()));
    std::stop_source source;
    thrum::thread stops([&] { source.request_stop(); });
    EXPECT_FALSE(barrier.wait(barrier.arrive(), source.get_token()));
}

ULT_OVER_WORKERS(HppStop);

} // namespace
