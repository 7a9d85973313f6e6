// SPDX-License-Identifier: Apache-2.0
//
// Threads that block all signals, that of the ticks too, and wait meanwhile for what preempted threads hold or must
// do: with one worker these are in the queue of the very worker that waits (src/preempt/watch.h). Kernel threads do
// so without trouble.
#include <link.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "preempt.hpp"

namespace {

class Blocked : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        alarm(100);
    }
    void TearDown() override { alarm(0); }
};

INSTANTIATE_TEST_SUITE_P(Modes, Blocked, kSafeModes, name_of_mode);

// By the kernel's call, as those do it that have no libc.
template <typename Work>
void with_signals_blocked(const Work &work) {
    const uint64_t all = ~UINT64_C(0);
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    work();
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
}

// Others have turns in between.
void compute_for(uint64_t slices) {
    for (const uint64_t end = in_us(slices * kSlice); thrum_now() < end;) {
    }
}

// A holder that is preempted while so many others come to wait for it, each of which has been preempted before.
class Held {
  public:
    void hold() {
        held_ = true;
        while (waiting_ < expected_) {
        }
        compute_for(20);
        held_ = false;
    }
    explicit Held(int expected) : expected_(expected) {}
    void begins_to_wait() { waiting_++; }
    bool is_held() const { return held_; }
    // All have been preempted by then.
    void wait_until_held() {
        begun_++;
        while (!held_ || begun_ < expected_) {
        }
    }

  private:
    const int expected_;
    std::atomic<bool> held_{false};
    std::atomic<int> begun_{0}, waiting_{0};
};

// `wait` until held is over, with signals blocked, in so many threads on one worker.
template <typename Hold, typename Wait>
void expect_progress(unsigned mode, int waiters, const Hold &hold, const Wait &wait) {
    const Preempting runtime(1, mode);
    Held held(waiters);
    Thread holder([&] { hold([&] { held.hold(); }); });
    std::vector<Thread> threads;
    for (int i = 0; i < waiters; i++)
        threads.emplace_back([&] {
            held.wait_until_held();
            compute_for(2);
            with_signals_blocked([&] {
                held.begins_to_wait();
                wait(held);
            });
        });
    threads.clear();
    holder.join();
    EXPECT_FALSE(held.is_held());
}

template <typename Work>
void in_loaders_lock(const Work &work) {
    dl_iterate_phdr(
        [](dl_phdr_info *, std::size_t, void *function) {
            (*static_cast<const Work *>(function))();
            return 1;
        },
        const_cast<Work *>(&work));
}

const auto hold_nothing = [](const auto &work) { work(); };

} // namespace

TEST_P(Blocked, WhileItWaitsForAMutex) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    expect_progress(
        GetParam(), 1,
        [&](const auto &work) {
            pthread_mutex_lock(&mutex);
            work();
            pthread_mutex_unlock(&mutex);
        },
        [&](const Held &held) {
            pthread_mutex_lock(&mutex);
            EXPECT_FALSE(held.is_held());
            pthread_mutex_unlock(&mutex);
        });
}

TEST_P(Blocked, WhileItWaitsForALockOfLibc) {
    expect_progress(
        GetParam(), 1, [](const auto &work) { in_loaders_lock(work); },
        [](const Held &held) { in_loaders_lock([&] { EXPECT_FALSE(held.is_held()); }); });
}

TEST_P(Blocked, WhileItSleepsInALoop) {
    expect_progress(GetParam(), 1, hold_nothing, [](const Held &held) {
        const timespec nap{0, 1000};
        while (held.is_held())
            nanosleep(&nap, nullptr);
    });
}

TEST_P(Blocked, WhileItYieldsInALoop) {
    expect_progress(GetParam(), 1, hold_nothing, [](const Held &held) {
        while (held.is_held())
            sched_yield();
    });
}

// ... and all at one time: so do those that run in the place of the first.
TEST_P(Blocked, WhileSeveralWait) {
    constexpr int kWaiters = 6;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    expect_progress(
        GetParam(), kWaiters,
        [&](const auto &work) {
            pthread_mutex_lock(&mutex);
            work();
            pthread_mutex_unlock(&mutex);
        },
        [&](const Held &) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        });
}

// What the library reads of kernel threads meanwhile takes no descriptor's number that the program expects.
TEST_P(Blocked, TheProgramsDescriptorsAreItsOwn) {
    const Preempting runtime(1, GetParam());
    std::atomic<bool> begun{false}, over{false};
    std::thread opens([&] {
        const int expected = dup(STDERR_FILENO);
        EXPECT_EQ(close(expected), 0);
        int others = 0;
        for (const uint64_t end = in_us(500000); thrum_now() < end;) {
            const int fd = dup(STDERR_FILENO);
            others += fd != expected;
            EXPECT_EQ(close(fd), 0);
        }
        EXPECT_EQ(others, 0);
        over = true;
    });
    Thread computes([&] {
        begun = true;
        wait_for(over);
    });
    Thread blocks([&] {
        wait_for(begun); // and has preempted it
        with_signals_blocked([&] {
            while (!over)
                sched_yield();
        });
    });
    blocks.join();
    computes.join();
    opens.join();
}

TEST_P(Blocked, TimeAndAgain) {
    const Preempting runtime(1, GetParam());
    std::atomic<bool> computes{false};
    Thread other([&] {
        for (int i = 0; i < 10; i++) {
            computes = true;
            compute_for(5);
            computes = false;
            compute_for(2);
        }
    });
    Thread blocks([&] {
        for (int i = 0; i < 10; i++) {
            with_signals_blocked([&] {
                while (computes)
                    sched_yield();
            });
            compute_for(2);
        }
    });
    blocks.join();
    other.join();
}
