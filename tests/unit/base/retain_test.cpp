// SPDX-License-Identifier: Apache-2.0
//
// What the warden of kthread/retain.h does, with memory that is short when a test says so: the linker gives the core
// our pressure_rose, which notes when it was asked.
#include <mutex>

#include "layer.hpp"

namespace {

std::mutex looks_lock;
std::vector<uint64_t> looks; // monotonic ns, of the test that runs
std::atomic<bool> memory_is_short{false};

class Retain : public Layer {
  protected:
    void SetUp() override {
        Layer::SetUp();
        std::lock_guard<std::mutex> guard(looks_lock);
        looks.clear();
        memory_is_short = false;
    }

    static std::vector<uint64_t> looks_so_far() {
        std::lock_guard<std::mutex> guard(looks_lock);
        return looks;
    }

    static void expect_a_second_between_looks() {
        const std::vector<uint64_t> all = looks_so_far();
        for (size_t i = 1; i < all.size(); i++)
            EXPECT_GE(all[i] - all[i - 1], 1000000000u) << "look " << i;
    }
};

// Each thread that parks while there is no warden does the chores: a program that creates and joins without a pause would
// have memory looked at as often.
TEST_F(Retain, ChurnDoesNotLookMoreOftenThanOnceASecond) {
    kthread_config.watch_pressure = true;
    EXPECT_TRUE(eventually([this] {
        for (int i = 0; i < 50; i++)
            run();
        return looks_so_far().size() >= 3;
    }));
    expect_a_second_between_looks();
}

// A warden that has to get up sooner for another policy does not look each time either.
TEST_F(Retain, AnotherPolicyThatIsDueSoonerDoesNotLookMoreOften) {
    kthread_config.watch_pressure = true;
    kthread_config.thread_ns = 30000000;
    EXPECT_TRUE(eventually([this] {
        make_idle(3);
        a_while();
        return looks_so_far().size() >= 3;
    }));
    expect_a_second_between_looks();
}

TEST_F(Retain, IdleThreadsAreEnoughForALook) {
    kthread_config.watch_pressure = true;
    make_idle(2);
    EXPECT_TRUE(eventually([] { return looks_so_far().size() >= 3; }));
    EXPECT_EQ(load_relaxed(&thrum_cache_counters.idle), 2u);
    expect_a_second_between_looks();
}

TEST_F(Retain, AllIdleThreadsEndWhenMemoryIsShort) {
    kthread_config.watch_pressure = true;
    const uint64_t culled = load_relaxed(&thrum_cache_counters.culled);
    make_idle(5);
    memory_is_short = true;
    EXPECT_TRUE(eventually([] { return load_relaxed(&thrum_cache_counters.idle) == 0; }));
    EXPECT_TRUE(eventually([culled] { return load_relaxed(&thrum_cache_counters.culled) == culled + 5; }));
}

} // namespace

extern "C" bool __wrap_pressure_rose(uint64_t now_ns);
extern "C" bool __wrap_pressure_rose(uint64_t now_ns) {
    std::lock_guard<std::mutex> guard(looks_lock);
    looks.push_back(now_ns);
    return memory_is_short;
}
