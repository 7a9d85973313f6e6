// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: signals of the program's. Handlers without SA_ONSTACK come at random moments of threads that switch, and write
// to the stack that they interrupt: what lies there must stay as it was. And threads block all signals, that of the ticks too,
// and wait in it for a lock that preempted ones have.
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "preempt_stress.h"

namespace {

constexpr std::uint64_t kEnough = 1000; // of which some find a moment at which they are not blocked

std::atomic<std::uint64_t> handled;

void scribble(int) {
    volatile unsigned char bytes[300];
    for (unsigned turn = 0; turn < 20; turn++)
        for (volatile unsigned char &byte : bytes)
            byte = 7;
    handled.fetch_add(1, std::memory_order_relaxed);
}

class Signals : public Torture {
  public:
    const char *name() const override { return "signals"; }
    bool alone() const override { return true; }
    bool fits() const override { return options.mode != Mode::kYield; }

    void begin(unsigned) override {
        handled = 0;
        struct sigaction action = {};
        action.sa_handler = scribble;
        action.sa_flags = SA_RESTART;
        CHECK_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    }

    // To the process: that is to the kernel thread that called thrum_init, since the others block it.
    void started() override {
        sender_ = std::thread([this] {
            sigset_t signals;
            sigfillset(&signals);
            CHECK_EQ(pthread_sigmask(SIG_BLOCK, &signals, nullptr), 0);
            Random random(options.seed);
            while (!over) {
                kill(getpid(), SIGUSR1);
                sent_++;
                const timespec nap{0, static_cast<long>(random.below(100'000))};
                nanosleep(&nap, nullptr);
            }
        });
    }

    void step(Actor &actor) override {
        if (options.may_block() && actor.random.one_in(200))
            lock_with_signals_blocked(actor);
        else if (options.may_block() && actor.random.one_in(4))
            lock(actor);
        else
            switch_and_look(actor);
        safepoint();
    }

    void end() override {
        sender_.join();
        std::printf("  signals: %llu sent, %llu handled\n", static_cast<unsigned long long>(sent_),
                    static_cast<unsigned long long>(handled.load()));
        CHECK(handled > 0 || sent_ < kEnough);
        sent_ = 0;
    }

  private:
    void lock(Actor &actor) {
        CHECK_EQ(pthread_mutex_lock(&mutex_), 0);
        CHECK_EQ(locked_.fetch_add(1), 0);
        hold(actor);
        CHECK_EQ(locked_.fetch_sub(1), 1);
        CHECK_EQ(pthread_mutex_unlock(&mutex_), 0);
    }

    void lock_with_signals_blocked(Actor &actor) {
        sigset_t all, before;
        sigfillset(&all);
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
        lock(actor);
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
    }

    static void switch_and_look(Actor &actor) {
        volatile unsigned char bytes[2000];
        const auto first = static_cast<unsigned char>(actor.random.below(256));
        unsigned char next = first;
        for (volatile unsigned char &byte : bytes)
            byte = next++;
        for (unsigned i = actor.random.below(6); i > 0; i--)
            thrum_yield();
        next = first;
        for (const volatile unsigned char &byte : bytes)
            CHECK_EQ(byte, next++);
    }

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<int> locked_{0};
    std::thread sender_;
    std::uint64_t sent_ = 0;
};

} // namespace

void add_signals(Tortures &all) {
    all.push_back(std::make_unique<Signals>());
}
