// SPDX-License-Identifier: Apache-2.0
//
// The kthread layer: one kernel thread runs one logical thread after another, and none can tell.
#include <fenv.h>
#include <string.h>
#include <sys/mman.h>

#include <fstream>

#include "layer.hpp"

namespace {

class KthreadReuse : public Layer {};

void *number(uintptr_t value) {
    return reinterpret_cast<void *>(value);
}

// A field of the thread's status, "" if there is no such thread.
std::string status_of(pid_t tid, const std::string &field) {
    std::ifstream status("/proc/self/task/" + std::to_string(tid) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.compare(0, field.size() + 1, field + ":") == 0)
            return line.substr(line.find_first_not_of(" \t", field.size() + 1));
    return "";
}

TEST_F(KthreadReuse, JobGetsItsArgumentAndJoinItsResult) {
    const struct thrum_cache_counters before = thrum_cache_counters;
    pthread_t handle = 0;
    uintptr_t argument = 20;
    auto twice = [](void *value) -> void * { return number(2 * *static_cast<uintptr_t *>(value)); };
    ASSERT_EQ(kthread_start(&kKind, false, twice, &argument, &handle), 0);
    kthread *thread = kthread_of_sigsafe(handle);
    ASSERT_NE(thread, nullptr);
    void *result = nullptr;
    EXPECT_EQ(kthread_join(thread, &result, KTHREAD_JOIN_WAIT, CLOCK_REALTIME, nullptr), 0);
    EXPECT_EQ(result, number(40));
    EXPECT_EQ(thrum_cache_counters.created, before.created + 1);
    EXPECT_EQ(thrum_cache_counters.reused, before.reused);
    EXPECT_EQ(thrum_cache_counters.live, 0u);
    EXPECT_EQ(thrum_cache_counters.idle, 1u);
    EXPECT_EQ(kthread_join(kthread_of_sigsafe(start([] { return number(0); }).handle), nullptr,
                           KTHREAD_JOIN_WAIT, CLOCK_REALTIME, nullptr),
              0)
        << "a result that nobody wants";
    EXPECT_EQ(thrum_cache_counters.reused, before.reused + 1);
    EXPECT_EQ(thrum_cache_counters.created, before.created + 1);
}

TEST_F(KthreadReuse, HandleAndSelfNameTheSameDescriptor) {
    kthread *seen = nullptr;
    pthread_t own = 0;
    Started started = start([&]() -> void * {
        seen = kthread_self_sigsafe();
        own = pthread_self();
        return nullptr;
    });
    join(started);
    EXPECT_EQ(seen, started.thread);
    EXPECT_EQ(own, started.handle);
    EXPECT_EQ(kthread_self_sigsafe(), nullptr);
    EXPECT_EQ(kthread_of_sigsafe(pthread_self()), nullptr);
    Plain plain([] { a_while(); });
    EXPECT_EQ(kthread_of_sigsafe(plain.handle()), nullptr) << "libc's own thread";
}

TEST_F(KthreadReuse, TheHandleIsWrittenBeforeTheJobRuns) {
    for (int round = 0; round < 200; round++) {
        pthread_t handle = 0;
        auto *place = new pthread_t *(&handle);
        auto check = [](void *argument) -> void * {
            auto **where = static_cast<pthread_t **>(argument);
            bool right = pthread_equal(**where, pthread_self()) != 0;
            delete where;
            return number(right);
        };
        ASSERT_EQ(kthread_start(&kKind, false, check, place, &handle), 0);
        void *right = nullptr;
        kthread_join(kthread_of_sigsafe(handle), &right, KTHREAD_JOIN_WAIT, CLOCK_REALTIME, nullptr);
        ASSERT_EQ(right, number(1));
        if (round % 2 == 0)
            kthread_cull(); // a new thread and a reused one in turn
    }
}

TEST_F(KthreadReuse, SameKernelThreadAgainLastOneFirst) {
    const pid_t tid = run();
    EXPECT_EQ(run(), tid);
    make_idle(3);
    EXPECT_EQ(thrum_cache_counters.idle, 3u);
    EXPECT_EQ(thrum_cache_counters.live, 0u);
    const pid_t last = run();
    EXPECT_EQ(run(), last);
    EXPECT_EQ(thrum_cache_counters.idle, 3u);
}

TEST_F(KthreadReuse, OnlyForTheSameKind) {
    const pid_t tid = run();
    for (const kthread_kind &other :
         {kthread_kind{2 * kStackSize, kGuardSize, 0, {}}, kthread_kind{kStackSize, 2 * kGuardSize, 0, {}},
          kthread_kind{kStackSize, kGuardSize, 99, {}}}) {
        pid_t others = 0;
        join(start_of(other, [&]() -> void * {
            others = own_tid();
            return nullptr;
        }));
        EXPECT_NE(others, tid);
    }
    EXPECT_EQ(thrum_cache_counters.idle, 4u);
    EXPECT_EQ(run(), tid);
}

// Larger than all of libc's cache of stacks, which may have a larger one for a small one.
TEST_F(KthreadReuse, NewThreadsHaveTheStackAndGuardOfTheirKind) {
    size_t size = 0, guard = 0;
    join(start_of({48 << 20, 16384, 0, {}}, [&]() -> void * {
        pthread_attr_t attributes;
        void *low;
        pthread_getattr_np(pthread_self(), &attributes);
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_getguardsize(&attributes, &guard);
        pthread_attr_destroy(&attributes);
        return nullptr;
    }));
    EXPECT_GE(size, size_t{48 << 20} - 16384);
    EXPECT_LE(size, size_t{49 << 20});
    EXPECT_EQ(guard, 16384u);
}

TEST_F(KthreadReuse, DetachedOnesListThemselves) {
    std::atomic<pid_t> tid{0};
    start(
        [&]() -> void * {
            tid = own_tid();
            return nullptr;
        },
        true);
    ASSERT_TRUE(eventually([] { return load_relaxed(&thrum_cache_counters.idle) == 1; }));
    EXPECT_EQ(run(), tid);
}

TEST_F(KthreadReuse, RestsAsLongAsItIsTold) {
    kthread *thread = nullptr;
    kthread_config.min_rest_ns = UINT64_C(200000000);
    const uint64_t before = clock_monotonic_ns();
    const pid_t tid = run();
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr) << "at once";
    EXPECT_TRUE(eventually([&] { return (thread = idle_pop(&kKind, -1)) != nullptr; }));
    EXPECT_GE(clock_monotonic_ns(), before + UINT64_C(200000000));
    EXPECT_TRUE(idle_push(thread));
    EXPECT_EQ(run(), tid);
    EXPECT_NE(run(), tid) << "it rests anew";
}

TEST_F(KthreadReuse, ThreadLocalsStartFromTheirImage) {
    const pid_t tid = run([]() -> void * {
        linked_variables()->seven = 8;
        linked_variables()->zero = 9;
        errno = EIO;
        return nullptr;
    });
    EXPECT_EQ(run([]() -> void * {
                  EXPECT_EQ(errno, 0);
                  EXPECT_EQ(linked_variables()->seven, 7);
                  EXPECT_EQ(linked_variables()->zero, 0);
                  return nullptr;
              }),
              tid);
}

TEST_F(KthreadReuse, MaskAndFloatingPointAreTheCreators) {
    const pid_t tid = run([]() -> void * {
        signals_mask_set(UINT64_C(1) << (SIGUSR2 - 1));
        fesetround(FE_DOWNWARD);
        return nullptr;
    });
    const sigbits usual = signals_mask_set(UINT64_C(1) << (SIGUSR1 - 1));
    fesetround(FE_UPWARD);
    EXPECT_EQ(run([]() -> void * {
                  EXPECT_EQ(signals_mask_get(), UINT64_C(1) << (SIGUSR1 - 1));
                  EXPECT_EQ(fegetround(), FE_UPWARD);
                  return nullptr;
              }),
              tid);
    fesetround(FE_TONEAREST);
    kthread_cull();
    run([]() -> void * {
        EXPECT_EQ(signals_mask_get(), UINT64_C(1) << (SIGUSR1 - 1)) << "of a new one, too";
        return nullptr;
    });
    EXPECT_EQ(signals_mask_get(), UINT64_C(1) << (SIGUSR1 - 1)) << "the creator's own is untouched";
    signals_mask_set(usual);
}

TEST_F(KthreadReuse, AlternateSignalStackIsDropped) {
    // Mapped: AddressSanitizer unmaps what it finds there when a kernel thread ends.
    constexpr std::size_t kRoom = 64 * 1024;
    static void *room = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto set = []() -> void * {
        stack_t stack{};
        stack.ss_sp = room;
        stack.ss_size = kRoom;
        syscall(SYS_sigaltstack, &stack, nullptr);
        return nullptr;
    };
    const pid_t tid = run(set);
    EXPECT_EQ(run([]() -> void * {
                  stack_t stack{};
                  syscall(SYS_sigaltstack, nullptr, &stack);
                  EXPECT_EQ(stack.ss_flags, SS_DISABLE);
                  return nullptr;
              }),
              tid);
}

TEST_F(KthreadReuse, CpuTimeOfEarlierJobsIsRemembered) {
    kthread *thread = nullptr;
    const pid_t tid = run([&]() -> void * {
        thread = kthread_self_sigsafe();
        EXPECT_EQ(thread->fresh.cpu_base_ns, 0u);
        while (clock_thread_cpu_ns() < 5000000) {
        }
        return nullptr;
    });
    EXPECT_EQ(run([&]() -> void * {
                  EXPECT_GE(thread->fresh.cpu_base_ns, 5000000u);
                  EXPECT_GE(clock_thread_cpu_ns(), thread->fresh.cpu_base_ns);
                  return nullptr;
              }),
              tid);
}

TEST_F(KthreadReuse, IdleThreadsBlockAllSignalsButLibcs) {
    const pid_t tid = run();
    std::string blocked;
    // SIGKILL and SIGSTOP cannot be, 32 and 33 must not be.
    EXPECT_TRUE(eventually([&] { return (blocked = status_of(tid, "SigBlk")) == "fffffffe7ffbfeff"; }))
        << blocked;
}

std::atomic<int> handled;

TEST_F(KthreadReuse, SignalsSentToAnIdleThreadReachNoThread) {
    struct sigaction action = {}, before;
    action.sa_handler = [](int) { handled++; };
    sigaction(SIGUSR1, &action, &before);
    handled = 0;
    const pid_t tid = run();
    for (int i = 0; i < 3; i++) {
        syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
        EXPECT_EQ(run(), tid);
    }
    EXPECT_EQ(handled, 0);
    EXPECT_EQ(run([&]() -> void * {
                  syscall(SYS_tgkill, getpid(), own_tid(), SIGUSR1);
                  EXPECT_EQ(handled, 1) << "its own do";
                  return nullptr;
              }),
              tid);
    sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(KthreadReuse, CullEndsAllIdleThreadsAndWaitsForThem) {
    const uint64_t before = thrum_cache_counters.culled;
    const size_t threads = threads_of_process();
    make_idle(5);
    EXPECT_EQ(threads_of_process(), threads + 5);
    EXPECT_EQ(known_descriptors(), 5u);
    EXPECT_EQ(kthread_cull(), 5u);
    EXPECT_EQ(known_descriptors(), 0u);
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
    EXPECT_EQ(thrum_cache_counters.culled, before + 5);
    EXPECT_TRUE(eventually([&] { return threads_of_process() == threads; }));
    EXPECT_EQ(kthread_cull(), 0u);
    EXPECT_EQ(thrum_cache_counters.culled, before + 5);
}

TEST_F(KthreadReuse, UnneededIdleThreadsGrowColdAndAreEnded) {
    constexpr uint64_t kSpare = 64; // documented in libthrum-cache(7)
    make_idle(kSpare + 4, {2 * kStackSize, kGuardSize, 0, {}});
    const uint64_t before = thrum_cache_counters.culled;
    const pid_t tid = run();
    EXPECT_EQ(thrum_cache_counters.culled, before + 1) << "a miss among more than are of use";
    EXPECT_EQ(thrum_cache_counters.idle, kSpare + 4);
    EXPECT_EQ(known_descriptors(), kSpare + 4);
    EXPECT_EQ(run(), tid);
    EXPECT_EQ(thrum_cache_counters.culled, before + 1) << "no miss";
    kthread_cull();
    make_idle(kSpare, {2 * kStackSize, kGuardSize, 0, {}});
    const uint64_t few = thrum_cache_counters.culled;
    run();
    EXPECT_EQ(thrum_cache_counters.culled, few);
}

TEST_F(KthreadReuse, ThreadsThatRestAreNotEndedByAMiss) {
    constexpr size_t kMany = 100;
    kthread_config.min_rest_ns = UINT64_C(3600000000000);
    make_idle(kMany);
    const uint64_t before = thrum_cache_counters.culled;
    run();
    EXPECT_EQ(thrum_cache_counters.culled, before);
    EXPECT_EQ(thrum_cache_counters.idle, kMany + 1);
}

TEST_F(KthreadReuse, CullLeavesRunningThreadsAlone) {
    std::atomic<bool> go{false};
    Started running = start([&]() -> void * {
        eventually([&] { return go.load(); });
        return number(3);
    });
    make_idle(1);
    EXPECT_EQ(kthread_cull(), 1u);
    go = true;
    EXPECT_EQ(join(running), number(3));
    EXPECT_EQ(thrum_cache_counters.idle, 1u);
}

// Its kernel thread is in the way; nothing was wrong with it.
TEST_F(KthreadReuse, CullEndsThreadsThatAreNotJoined) {
    const uint64_t before = counted(RETIRE_UNJOINED), changed = counted(RETIRE_LINEAGE);
    Started ended = start([]() -> void * { return number(5); });
    kthread *thread = kthread_of_sigsafe(ended.handle);
    ASSERT_TRUE(eventually([&] { return load_relaxed(&thread->life) == LIFE_ENDED; }));
    EXPECT_EQ(kthread_cull(), 1u);
    EXPECT_EQ(counted(RETIRE_UNJOINED), before + 1);
    EXPECT_EQ(counted(RETIRE_LINEAGE), changed);
    EXPECT_EQ(join(ended), number(5));
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
}

TEST_F(KthreadReuse, WipedStacksTellNothing) {
    kthread_config.wipe_stack = true;
    struct Secret {
        __attribute__((noinline)) static void leave(uintptr_t *where) {
            volatile char secret[64 * 1024];
            for (size_t i = 0; i < sizeof secret; i++)
                secret[i] = 0x5a;
            *where = reinterpret_cast<uintptr_t>(secret);
        }
    };
    uintptr_t where = 0;
    const pid_t tid = run([&]() -> void * {
        Secret::leave(&where);
        return nullptr;
    });
    EXPECT_EQ(run([&]() -> void * {
                  // Read by the kernel: nothing stands there for this program.
                  int ends[2];
                  char bytes[4096] = {};
                  EXPECT_EQ(pipe(ends), 0);
                  EXPECT_EQ(syscall(SYS_write, ends[1], where + 4096, sizeof bytes), 4096);
                  EXPECT_EQ(read(ends[0], bytes, sizeof bytes), 4096);
                  EXPECT_EQ(std::string(bytes, sizeof bytes).find('\x5a'), std::string::npos);
                  close(ends[0]);
                  close(ends[1]);
                  return nullptr;
              }),
              tid);
}

} // namespace
