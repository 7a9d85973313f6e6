// SPDX-License-Identifier: Apache-2.0
//
// A thread that waits in the kernel costs its worker a slice, and at its later turns a moment: others go on meanwhile.
// Mostly it is one of these that ends the wait, so that each of these tests would hang otherwise (thrum-preemption(7), "Waiting
// in the kernel"). Where it cannot be preempted: preempt_relief_test.cpp. All calls: preempt_calls_test.cpp.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "inside.h"
#include "preempt.hpp"

namespace {

class KernelWaits : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        alarm(60);
    }
    void TearDown() override { alarm(0); }
};

INSTANTIATE_TEST_SUITE_P(Modes, KernelWaits, kSafeModes, name_of_mode);

class Pipe {
  public:
    Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
    Pipe(const Pipe &) = delete;
    ~Pipe() {
        for (const int end : ends_)
            close(end);
    }
    void put(char byte) const { EXPECT_EQ(write(ends_[1], &byte, 1), 1); }
    char get() const {
        char byte = 0;
        EXPECT_EQ(read(ends_[0], &byte, 1), 1);
        return byte;
    }

  private:
    std::array<int, 2> ends_{};
};

// A lock that kernel threads share, in the hands of one of the program's until it is told.
class HeldByAnother {
  public:
    HeldByAnother()
        : holder_([this] {
              pthread_mutex_lock(&mutex_);
              held_ = true;
              told_.get();
              let_go_ = true;
              pthread_mutex_unlock(&mutex_);
          }) {
        while (!held_)
            std::this_thread::yield();
    }
    HeldByAnother(const HeldByAnother &) = delete;
    ~HeldByAnother() { holder_.join(); }
    void tell() const { told_.put('x'); }
    // Is it the caller's only after it has been let go?
    bool is_had_in_turn() {
        const bool had = pthread_mutex_lock(&mutex_) == 0;
        const bool in_turn = had && let_go_;
        pthread_mutex_unlock(&mutex_);
        return in_turn;
    }

  private:
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<bool> held_{false};
    bool let_go_ = false; // under mutex_
    Pipe told_;
    std::thread holder_; // last
};

} // namespace

TEST_P(KernelWaits, AReaderLetsTheWriterRun) {
    const Preempting runtime(1, GetParam());
    const Pipe pipe;
    std::atomic<bool> reads{false};
    char got = 0;
    Thread reader([&] {
        reads = true;
        got = pipe.get();
    });
    Thread writer([&] {
        while (!reads)
            thrum_yield();
        pipe.put('x');
    });
    reader.join();
    EXPECT_EQ(got, 'x');
    EXPECT_GE(preemptions(), 1U);
}

TEST_P(KernelWaits, NeitherDoesThePrimary) {
    const Preempting runtime(1, GetParam());
    const Pipe pipe;
    Thread writer([&] { pipe.put('x'); });
    EXPECT_EQ(pipe.get(), 'x');
    EXPECT_GE(preemptions(), 1U);
}

TEST_P(KernelWaits, AWaiterForAFileLockLetsItsHolderRun) {
    const Preempting runtime(1, GetParam());
    const int theirs = memfd_create("lock", MFD_CLOEXEC);
    const int ours = open(("/proc/self/fd/" + std::to_string(theirs)).c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(flock(theirs, LOCK_EX), 0);
    std::atomic<bool> wants{false}, let_go{false};
    int result = -1;
    bool in_turn = false;
    Thread waits([&] {
        wants = true;
        result = flock(ours, LOCK_EX);
        in_turn = let_go;
    });
    Thread holder([&] {
        while (!wants)
            thrum_yield();
        let_go = true;
        EXPECT_EQ(flock(theirs, LOCK_UN), 0);
    });
    waits.join();
    EXPECT_EQ(result, 0);
    EXPECT_TRUE(in_turn);
    EXPECT_GE(preemptions(), 1U);
    close(ours);
    close(theirs);
}

// The holder is none of the runtime's, and is told to let go by one that has had many turns meanwhile.
TEST_P(KernelWaits, AWaiterForAMutexLetsOthersRun) {
    const Preempting runtime(1, GetParam());
    HeldByAnother lock;
    std::atomic<bool> wants{false}, in_turn{false};
    Thread waits([&] {
        wants = true;
        in_turn = lock.is_had_in_turn();
    });
    Thread computes([&] {
        while (!wants)
            thrum_yield();
        for (const uint64_t enough = preemptions() + 20; preemptions() < enough;) {
        }
        lock.tell();
    });
    waits.join();
    EXPECT_TRUE(in_turn);
}

// The total time, and that of each computing thread.
TEST_P(KernelWaits, ComputingThreadsRunBesideWaiters) {
    constexpr int kThreads = 4, kSteps = 10;
    const Preempting runtime(1, GetParam());
    const Pipe pipe;
    std::atomic<bool> reads{false};
    std::atomic<int> left{kThreads};
    Thread reader([&] {
        reads = true;
        EXPECT_EQ(pipe.get(), 'x');
        EXPECT_EQ(left, 0);
    });
    std::array<std::atomic<int>, kThreads> steps{};
    std::vector<Thread> threads;
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back([&, i] {
            while (!reads)
                thrum_yield();
            auto &own = steps.at(static_cast<std::size_t>(i));
            const auto &next = steps.at(static_cast<std::size_t>((i + 1) % kThreads));
            while (own < kSteps) { // in step with the next, which has to have a turn between two of these
                own++;
                while (next < own) {
                }
            }
            if (--left == 0)
                pipe.put('x');
        });
    threads.clear();
    reader.join();
}

// By slices: ten that wait would have ten of them in each round.
TEST_P(KernelWaits, AThreadThatKeepsWaitingGetsAShortTurnOfEachRound) {
    constexpr unsigned kLong = ULT_EMULATED ? 100000 : 20000;
    constexpr std::size_t kReaders = 10, kRounds = 11;
    const Preempting runtime(1, GetParam(), kLong);
    const Pipe pipe;
    std::atomic<std::size_t> reads{0};
    std::vector<Thread> readers;
    for (std::size_t i = 0; i < kReaders; i++)
        readers.emplace_back([&] {
            reads++;
            pipe.get();
        });
    std::vector<uint64_t> between;
    Thread computes([&] {
        while (reads < kReaders)
            thrum_yield();
        for (uint64_t before = preemptions(), then = thrum_now(); between.size() < kRounds;) {
            const uint64_t now = thrum_now(), count = preemptions();
            if (count != before) { // it has come back, and so have they been preempted
                EXPECT_GT(count - before, kReaders / 2);
                between.push_back(now - then);
                before = count;
            }
            then = now;
        }
        for (std::size_t i = 0; i < kReaders; i++)
            pipe.put('x');
    });
    computes.join();
    readers.clear();
    std::sort(between.begin(), between.end());
    EXPECT_LT(between.at(kRounds / 3), 4 * kLong * uint64_t{1000}); // others may want the CPU
}

// Without having a turn at each look.
bool asleep_until(const std::function<bool()> &condition) {
    for (int i = 0; i < 4000 && !condition(); i++)
        thrum_sleep(5 * THRUM_MS);
    return condition();
}

// Threads that all wait in the kernel are asked less and less often; as often as before when one of them has something to do.
TEST_P(KernelWaits, WaitersAreAskedLessOften) {
    constexpr std::size_t kReaders = 8;
    const Preempting runtime(1, GetParam(), ULT_EMULATED ? 100000 : 10000);
    const Pipe pipe;
    std::atomic<std::size_t> reads{0};
    std::vector<Thread> readers;
    for (std::size_t i = 0; i < kReaders; i++)
        readers.emplace_back([&] {
            while (pipe.get() == 'x')
                reads++;
        });
    const auto is_patient = [] { return inside_kernel_wait(0) > THRUM_SLICE_MIN * 8000UL; };
    EXPECT_TRUE(asleep_until(is_patient));
    std::atomic<bool> over{false};
    Thread computes([&] { wait_for(over); });
    EXPECT_TRUE(asleep_until([] { return inside_kernel_wait(0) == 0; }));
    over = true;
    computes.join();
    EXPECT_TRUE(asleep_until(is_patient));
    for (std::size_t i = 0; i < kReaders; i++)
        pipe.put('x');
    EXPECT_TRUE(asleep_until([&] { return reads == kReaders; }));
    for (std::size_t i = 0; i < kReaders; i++)
        pipe.put('q');
    readers.clear();
}

// With slices no longer than the slack of the kernel's timers (50 us): else what nanosleep() says is left would never become less.
TEST_P(KernelWaits, ShortSlicesHaveAShortSlack) {
    const auto slack = [] { return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); };
    const int before = slack();
    for (const unsigned slice : {kShort, 20000U}) {
        const Preempting runtime(1, GetParam(), slice);
        std::atomic<bool> over{false};
        std::atomic<int> found{0};
        Thread sleeps([&] {
            const uint64_t count = preemptions();
            while (preemptions() < count + 20) {
            }
            found = slack();
            over = true;
        });
        Thread other([&] { wait_for(over); });
        sleeps.join();
        other.join();
        if (slice == kShort && kShort < 200)
            EXPECT_LE(found, static_cast<int>(kShort * 1000 / 8));
        else
            EXPECT_EQ(found, before);
    }
    EXPECT_EQ(slack(), before);
}

// The kernel does not restart such a call, and restarting it in the program begins its timeout anew.
TEST_P(KernelWaits, ATimeoutThatIsShorterThanASliceComesToItsEnd) {
    constexpr int kLong = ULT_EMULATED ? 100 : 20, kTimes = 5, kTurns = 500; // kLong: ms
    const Preempting runtime(1, GetParam(), kLong * 1000);
    std::atomic<bool> is_over{false};
    int turns = 0;
    Thread waits([&] {
        for (int times = 0; times < kTimes && turns < kTurns; turns++)
            if (poll(nullptr, 0, kLong / 3) == 0)
                times++;
            else
                EXPECT_EQ(errno, EINTR);
        is_over = true;
    });
    Thread computes([&] { wait_for(is_over); });
    waits.join();
    EXPECT_GT(turns, kTimes) << "it was preempted there";
    EXPECT_LT(turns, kTurns);
}

// Each waits for the one before it, and the first for the one that comes last.
TEST_P(KernelWaits, ManyWaitForEachOther) {
    for (const unsigned workers : {1U, 2U}) {
        constexpr std::size_t kThreads = 32;
        const Preempting runtime(workers, GetParam());
        std::array<Pipe, kThreads + 1> pipes;
        std::atomic<std::size_t> waiting{0};
        std::vector<Thread> threads;
        for (std::size_t i = 0; i < kThreads; i++)
            threads.emplace_back([&, i] {
                waiting++;
                pipes.at(i + 1).put(static_cast<char>(pipes.at(i).get() + 1));
            });
        Thread last([&] {
            while (waiting < kThreads) {
            }
            pipes.front().put(0);
        });
        threads.clear();
        EXPECT_EQ(pipes.back().get(), static_cast<char>(kThreads));
    }
}

TEST_P(KernelWaits, TwoThatTalkToEachOther) {
    constexpr int kTimes = 50;
    const Preempting runtime(1, GetParam());
    const Pipe to, fro;
    Thread answers([&] {
        for (int i = 0; i < kTimes; i++)
            fro.put(static_cast<char>(to.get() + 1));
    });
    Thread asks([&] {
        for (int i = 0; i < kTimes; i++) {
            to.put(static_cast<char>(i));
            EXPECT_EQ(fro.get(), i + 1);
        }
    });
    answers.join();
    asks.join();
}

// It resumes where another worker is free, and with the lock.
TEST_P(KernelWaits, AWaiterOwnsItsMutexWhereverItResumes) {
    constexpr int kThreads = 6, kTimes = 30;
    const Preempting runtime(2, GetParam(), kShort);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int inside = 0, wrong = 0, entries = 0; // under the mutex
    std::vector<Thread> threads;
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back([&] {
            for (int k = 0; k < kTimes; k++) {
                pthread_mutex_lock(&mutex);
                wrong += ++inside != 1;
                for (const uint64_t end = in_us(2 * kShort);
                     thrum_now() < end;) { // the slice ends in between
                }
                entries++;
                inside--;
                pthread_mutex_unlock(&mutex);
            }
        });
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(entries, kThreads * kTimes);
}
