// SPDX-License-Identifier: Apache-2.0
//
// The kthread layer with a libc and a kernel that fail: each call in its table, the descriptors' memory, and the
// attributes of a new thread. After each failure nothing may be left behind (the fixture looks), and the layer works.
#include "layer.hpp"

namespace {

void *number(uintptr_t value) {
    return reinterpret_cast<void *>(value);
}

class KthreadFault : public Layer {
  protected:
    // A start that must fail with this error and change nothing.
    void expect_failure(int error) {
        const struct thrum_cache_counters before = thrum_cache_counters;
        const size_t descriptors = known_descriptors() - before.idle;
        const sigbits mask = signals_mask_get();
        pthread_t handle = 77;
        auto never = [](void *) -> void * {
            ADD_FAILURE() << "ran all the same";
            return nullptr;
        };
        EXPECT_EQ(kthread_start(&kKind, false, never, nullptr, &handle), error);
        EXPECT_EQ(handle, 77u);
        EXPECT_EQ(thrum_cache_counters.created, before.created);
        EXPECT_EQ(thrum_cache_counters.reused, before.reused);
        EXPECT_EQ(thrum_cache_counters.live, before.live);
        EXPECT_EQ(known_descriptors() - thrum_cache_counters.idle, descriptors);
        EXPECT_EQ(signals_mask_get(), mask);
    }
    void expect_work() {
        EXPECT_EQ(join(start([] { return number(11); })), number(11));
    }
    // Idle threads that do not fit what the tests start.
    void make_others_idle(unsigned count) { make_idle(count, {2 * kStackSize, kGuardSize, 0, {}}); }
};

TEST_F(KthreadFault, NoRoomAndNothingIdle) {
    faults.create.next(1, EAGAIN);
    expect_failure(EAGAIN);
    EXPECT_EQ(faults.create.calls, 1) << "nothing was given up, so nothing is to be gained";
    expect_work();
}

TEST_F(KthreadFault, NoRoomUntilTheIdleOnesAreGivenUp) {
    make_others_idle(3);
    const uint64_t culled = thrum_cache_counters.culled;
    faults.create.clear();
    faults.create.next(1, EAGAIN);
    expect_work();
    EXPECT_EQ(faults.create.calls, 2);
    EXPECT_EQ(thrum_cache_counters.culled, culled + 3);
    EXPECT_EQ(thrum_cache_counters.idle, 1u) << "the new one alone";
}

TEST_F(KthreadFault, NoRoomEvenSo) {
    make_others_idle(2);
    faults.create.clear();
    faults.create.next(2, EAGAIN);
    expect_failure(EAGAIN);
    EXPECT_EQ(faults.create.calls, 2);
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
    expect_work();
}

TEST_F(KthreadFault, OtherErrorsCostNoIdleThread) {
    make_others_idle(2);
    faults.create.clear();
    for (int error : {EPERM, EINVAL, ENOMEM}) {
        faults.create.next(1, error);
        expect_failure(error);
    }
    EXPECT_EQ(faults.create.calls, 3);
    EXPECT_EQ(thrum_cache_counters.idle, 2u);
}

TEST_F(KthreadFault, AnIdleThreadNeedsNothingFromLibc) {
    const pid_t tid = run();
    faults.create.next(1000, EAGAIN);
    faults.mmap.next(1000, ENOMEM);
    EXPECT_EQ(run(), tid);
    EXPECT_EQ(faults.create.calls, 1) << "the first one's";
}

TEST_F(KthreadFault, AttributesThatLibcRefuses) {
    faults.attr_init.next(1, ENOMEM);
    expect_failure(ENOMEM);
    faults.attr_setstacksize.next(1, EINVAL);
    expect_failure(EINVAL);
    faults.attr_setguardsize.next(1, EINVAL);
    expect_failure(EINVAL);
    EXPECT_EQ(faults.create.calls, 0);
    Started small = start_of({1, kGuardSize, 0, {}}, [] { return number(0); });
    EXPECT_EQ(small.error, EINVAL) << "libc's own opinion of a stack of one byte";
    expect_work();
}

TEST_F(KthreadFault, NoMemoryForADescriptor) {
    faults.mmap.next(1000000, ENOMEM);
    std::vector<kthread *> all;
    while (kthread *one = registry_new()) // what is left of the last chunk
        all.push_back(one);
    EXPECT_EQ(known_descriptors(), all.size());
    expect_failure(KTHREAD_NO_DESCRIPTOR);
    EXPECT_EQ(faults.create.calls, 0);
    faults.mmap.next(0, 0);
    expect_work();
    for (kthread *one : all)
        registry_free(one);
}

TEST_F(KthreadFault, DescriptorsAreNewEachTime) {
    kthread *one = registry_new();
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(one) % 64, 0u);
    EXPECT_EQ(one->gate, GATE_CLOSED) << "nobody may visit it yet";
    one->tid = 5;
    one->lineage = 6;
    registry_free(one);
    kthread *again = registry_new();
    EXPECT_EQ(again, one);
    EXPECT_EQ(again->tid, 0);
    EXPECT_EQ(again->lineage, 0u);
    registry_free(again);
}

TEST_F(KthreadFault, RegistryKnowsTheRemainingThreads) {
    kthread *all[4];
    for (kthread *&one : all)
        one = registry_new();
    auto known = [&] {
        std::vector<kthread *> found;
        registry_each(
            [](kthread *one, void *to) { static_cast<std::vector<kthread *> *>(to)->push_back(one); },
            &found);
        return found;
    };
    EXPECT_EQ(known(), (std::vector<kthread *>{all[3], all[2], all[1], all[0]}));
    registry_free(all[1]); // the middle, the first, the last
    EXPECT_EQ(known(), (std::vector<kthread *>{all[3], all[2], all[0]}));
    registry_free(all[3]);
    EXPECT_EQ(known(), (std::vector<kthread *>{all[2], all[0]}));
    registry_free(all[0]);
    EXPECT_EQ(known(), (std::vector<kthread *>{all[2]}));
    registry_free(all[2]);
    EXPECT_TRUE(known().empty());
}

// libc's join can fail only by a misuse that is not ours: its answer changes nothing.
TEST_F(KthreadFault, FailingJoinOfARetiredThread) {
    Started started = start([]() -> void * {
        kthread_tie_sigsafe(RETIRE_TIES);
        return number(12);
    });
    faults.join.next(1, ESRCH);
    EXPECT_EQ(join(started), number(12));
    EXPECT_EQ(faults.join.calls, 1);
    EXPECT_EQ(known_descriptors(), 0u);
}

TEST_F(KthreadFault, FailingJoinInACull) {
    make_idle(2);
    faults.join.clear();
    faults.join.next(2, ESRCH);
    EXPECT_EQ(kthread_cull(), 2u);
    EXPECT_EQ(faults.join.calls, 2);
    EXPECT_EQ(known_descriptors(), 0u);
}

// It is seen off, whatever libc says.
TEST_F(KthreadFault, DetachOfARetiredThread) {
    for (int error : {0, ESRCH}) {
        Started started = start([]() -> void * {
            kthread_tie_sigsafe(RETIRE_TIES);
            return nullptr;
        });
        EXPECT_TRUE(eventually([&] { return load_acquire(&started.thread->life) == LIFE_RETIRED; }));
        faults.join.clear();
        faults.join.next(error != 0, error);
        EXPECT_EQ(kthread_detach(started.thread), 0);
        EXPECT_EQ(faults.join.calls, 1);
        EXPECT_EQ(known_descriptors(), 0u);
    }
    EXPECT_EQ(faults.detach.calls, 0);
}

TEST_F(KthreadFault, FailingDetachOfADetachedThreadThatRetires) {
    static std::atomic<pthread_t> handle;
    handle = 0;
    faults.detach.next(1, EINVAL);
    start(
        []() -> void * {
            handle = pthread_self();
            kthread_tie_sigsafe(RETIRE_TIES);
            return nullptr;
        },
        true);
    EXPECT_TRUE(eventually([] { return faults.detach.calls == 1 && known_descriptors() == 0; }));
    EXPECT_EQ(pthread_join(handle, nullptr), 0) << "still joinable, as libc said";
}

TEST_F(KthreadFault, NoModuleSeenWhenAThreadIsReused) {
    const pid_t tid = run([]() -> void * {
        linked_variables()->seven = 8;
        return nullptr;
    });
    faults.iterate.next(1, ENOMEM);
    EXPECT_EQ(run([]() -> void * {
                  EXPECT_EQ(linked_variables()->seven, 8);
                  return nullptr;
              }),
              tid);
    EXPECT_EQ(faults.iterate.calls, 1) << "once a reuse, never for a new thread";
}

TEST_F(KthreadFault, TheLandingIsTakenDownAsOftenAsPutUp) {
    auto finish = [this](Job job) {
        Started started = start(std::move(job));
        EXPECT_TRUE(eventually([&] { return load_acquire(&started.thread->life) >= LIFE_ENDED; }));
        join(started); // without sleeping, for which it would need a landing, too
    };
    finish([] { return nullptr; });
    EXPECT_EQ(faults.register_cancel, 1);
    EXPECT_EQ(faults.unregister_cancel, 1);
    EXPECT_EQ(faults.call_tls_dtors, 2) << "before and after the keys";
    finish([]() -> void * { kthread_exit(nullptr); });
    finish([]() -> void * {
        kthread_tie_sigsafe(RETIRE_TIES);
        return nullptr;
    });
    EXPECT_EQ(faults.unwind_next, 1);
    EXPECT_EQ(faults.register_cancel, 4) << "the exit has one of its own, ...";
    EXPECT_EQ(faults.unregister_cancel, 3) << "... which is left by unwinding";
    EXPECT_EQ(faults.call_tls_dtors, 6);
}

} // namespace
