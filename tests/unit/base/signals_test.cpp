// SPDX-License-Identifier: Apache-2.0
//
// os/signals: the mask as 64 bits, and a thread's own pending signals told from the process's.
#include "layer.hpp"

namespace {

constexpr sigbits bit(int signal) {
    return UINT64_C(1) << (signal - 1);
}

const int kRealTime = SIGRTMIN + 5; // above the first 32

class Signals : public testing::Test {
  protected:
    void SetUp() override { before_ = signals_mask_get(); }
    void TearDown() override { signals_mask_set(before_); }

  private:
    sigbits before_ = 0;
};

void take(int signal) {
    sigset_t set;
    timespec none{};
    sigemptyset(&set);
    sigaddset(&set, signal);
    while (sigtimedwait(&set, nullptr, &none) == signal) {
    }
}

// kRealTime, which is blocked, as /proc shows it when it is pending: an emulator hands it to the kernel under another
// real-time signal's number.
sigbits shown_real_time() {
    if (!UNIT_EMULATED)
        return bit(kRealTime);
    pthread_kill(pthread_self(), kRealTime);
    const sigbits shown = signals_pending_thread();
    take(kRealTime);
    EXPECT_EQ(__builtin_popcountll(shown), 1) << shown;
    EXPECT_GT(shown, bit(33));
    return shown;
}

TEST_F(Signals, MaskIsTheKernelsAndTheOldOneIsGivenBack) {
    sigset_t libcs;
    const sigbits old = signals_mask_get();
    EXPECT_EQ(signals_mask_set(bit(SIGUSR1) | bit(kRealTime)), old);
    EXPECT_EQ(signals_mask_get(), bit(SIGUSR1) | bit(kRealTime));
    pthread_sigmask(SIG_SETMASK, nullptr, &libcs);
    EXPECT_EQ(sigismember(&libcs, SIGUSR1), 1);
    EXPECT_EQ(sigismember(&libcs, kRealTime), 1);
    EXPECT_EQ(sigismember(&libcs, SIGUSR2), 0);
    EXPECT_EQ(signals_mask_set(old), bit(SIGUSR1) | bit(kRealTime));
}

TEST_F(Signals, LibcsOwnAreThirtyTwoAndThirtyThree) {
    EXPECT_EQ(SIGBITS_LIBC, bit(32) | bit(33));
    EXPECT_EQ(SIGRTMIN, 34) << "libc keeps two for itself";
}

TEST_F(Signals, PendingForTheThread) {
    signals_mask_set(bit(SIGUSR1) | bit(kRealTime));
    EXPECT_EQ(signals_pending_thread(), 0u);
    const sigbits real_time = shown_real_time();
    EXPECT_EQ(signals_pending_thread(), 0u);
    pthread_kill(pthread_self(), SIGUSR1);
    pthread_kill(pthread_self(), kRealTime);
    EXPECT_EQ(signals_pending(), bit(SIGUSR1) | bit(kRealTime));
    EXPECT_EQ(signals_pending_thread(), bit(SIGUSR1) | real_time);
    Plain([] { EXPECT_EQ(signals_pending_thread(), 0u) << "not another thread's"; }).join();
    take(SIGUSR1);
    EXPECT_EQ(signals_pending_thread(), real_time);
    take(kRealTime);
    EXPECT_EQ(signals_pending_thread(), 0u);
}

TEST_F(Signals, PendingForTheProcessIsNotTheThreads) {
    signals_mask_set(bit(SIGUSR2));
    kill(getpid(), SIGUSR2);
    EXPECT_EQ(signals_pending(), bit(SIGUSR2));
    EXPECT_EQ(signals_pending_thread(), 0u);
    take(SIGUSR2);
}

TEST_F(Signals, AllBitsWhenTheyCannotBeRead) {
    rlimit files{}, none{};
    getrlimit(RLIMIT_NOFILE, &files);
    none.rlim_max = files.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const sigbits seen = signals_pending_thread();
    setrlimit(RLIMIT_NOFILE, &files);
    EXPECT_EQ(seen, SIGBITS_ALL);
    EXPECT_EQ(signals_pending_thread(), 0u);
}

} // namespace
